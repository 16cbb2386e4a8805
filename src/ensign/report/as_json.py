"""Results as JSON: cost ratios (below 1 is faster); what is infinite or unknown is null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from typing import Any

from ensign.model.builds import BuildFacts
from ensign.model.comparisons import Comparison, Effect, OtherMetric, TimeShares
from ensign.model.findings import Finding
from ensign.model.quoting import json_visible
from ensign.model.results import (
    Confirmation,
    Result,
    VariantFacts,
    WorkloadComparison,
)
from ensign.model.trials import SliceRecord, Trial, VariantFailure, VariantTotals
from ensign.report.layouts import within_spread
from ensign.report.verdict import was_checked

Json = str | int | float | bool | None | list["Json"] | Mapping[str, "Json"]

_INTERVAL = "ratio low high"
_LAYOUTS = "raced kind unable splits spreads worst variants"
_SLICE_COLUMNS = (
    "variant",
    "start_ns",
    "wall_ns",
    "cpu_ns",
    "load_cpu_ns",
    "filler",
    "cpu_wait_ns",
)


def render(result: Result) -> str:
    """`comparisons`, `suite`, `workloads`, `variants`, `findings`; `experiment` is about all.

    `comparisons` has each variant over all workloads, `aa` the baseline's copy; `suite` has the
    same rows with what is claimed of all workloads together, `workloads` each variant on each.
    `variants` says what they used. `failed` has those that failed (`round_index` counts from 0).

    `confirmation` is there where the study has that phase, with the same rows once it is finished;
    all others are an exploration then. `factorial` has the effects of the axes; `significant` says
    which are shown to differ after Holm's adjustment. `layouts` is there where relinks were raced;
    a spread's ratios are over the natural link. `other_metric` is the same pair by the other cost.
    `non_inferior` is the claim "no workload slower than the margin", null where none is made.
    `within_layout_spread` says whether the whole interval lies in it; null where there is none.
    `trials` are raw, where no store has them; those late in a long race have no slices.
    """
    phase = result.confirmation
    second = {} if phase is None else {"confirmation": _confirmation(phase)}
    raw: dict[str, Json] = {}
    if result.trials:
        raw["slice_columns"] = list(_SLICE_COLUMNS)
        raw["trials"] = [_trial(trial) for trial in result.trials]
    about: dict[str, Json] = {
        "experiment": _about(result),
        "machine": dict(result.machine.facts),
    }
    return _written({**about, **second, **_rows_of(result), **raw})


def _confirmation(phase: Confirmation) -> dict[str, Json]:
    return {
        **_fields(phase, "finalists rounds rounds_done level plan_sha256 fresh"),
        **({} if phase.result is None else _rows_of(phase.result)),
    }


def _rows_of(result: Result) -> dict[str, Json]:
    effects = ("main", "conditional", "interactions")
    return {
        "comparisons": [_comparison(compared) for compared in result.comparisons],
        "aa": None if result.aa is None else _comparison(result.aa),
        "suite": [
            {
                **_fields(compared.comparison, f"variant {_INTERVAL} level direction size"),
                **_judged(compared.comparison),
                **_fields(compared, "workloads non_inferior not_shown"),
                "within_layout_spread": within_spread(compared.comparison, result),
            }
            for compared in result.suite
        ],
        "workloads": [_workload(compared, result) for compared in result.workloads],
        "bands": [_fields(band, "variant by_mean by_minimum") for band in result.bands],
        "significant": [
            _fields(significant, "variant slower faster") for significant in result.significant
        ],
        "factorial": {
            kind: [_effect(effect) for effect in getattr(result.factorial, kind)]
            for kind in effects
        },
        "latency": [
            {
                "workload": compared.workload,
                "variant": compared.comparison.variant,
                "percentile": compared.percentile,
                **_fields(compared.comparison, f"{_INTERVAL} executions"),
                **_fields(compared, "baseline_ns variant_ns"),
            }
            for compared in result.latency
        ],
        **({} if result.layouts is None else {"layouts": _fields(result.layouts, _LAYOUTS)}),
        "variants": [_variant(facts, result) for facts in result.measured],
        "failed": [_failed(failure, result) for failure in result.failures],
        "builds": [_build(build) for build in result.builds],
        **_said(result, "ran"),
        **_said(result, "functions"),
        **_said(result, "causes"),
        **_said(result, "curves"),
        "findings": [_finding(finding) for finding in result.findings],
    }


def _workload(compared: WorkloadComparison, result: Result) -> dict[str, Json]:
    scores = compared.scores or (None, None)
    pair = compared.comparison
    return {
        "workload": compared.workload,
        **_fields(pair, f"variant metric {_INTERVAL} direction size executions"),
        **_judged(pair),
        **_fields(compared, "baseline_cost_ns variant_cost_ns"),
        "baseline_score": scores[0],
        "variant_score": scores[1],
        **_fields(compared, "unit user_share"),
        "within_layout_spread": within_spread(pair, result, compared.workload),
    }


def _failed(failure: VariantFailure, result: Result) -> dict[str, Json]:
    document = asdict(failure)
    name = document.pop("variant")
    return {"variant": name, **document, "command": dict(result.commands).get(name)}


def _effect(effect: Effect) -> dict[str, Json]:
    other = effect.other
    return {
        "changes": _plain(effect.changes),
        "given": dict(effect.given),
        "only": dict(effect.only),
        "groups": effect.groups,
        **_fields(effect.comparison, f"{_INTERVAL} level direction size"),
        "significant": effect.significant,
        "other_metric": {} if other is None else _fields(other, f"metric {_INTERVAL}"),
    }


def _comparison(compared: Comparison) -> dict[str, Json]:
    names = f"variant baseline metric {_INTERVAL} level direction size executions"
    return {**_fields(compared, names), **_judged(compared)}


def _judged(compared: Comparison) -> dict[str, Json]:
    """Why nothing is claimed, if so; lag-1 correlation; the other cost, and where time went."""
    return {
        "withheld": compared.withheld or None,
        "correlation": compared.correlation,
        "other_metric": None if compared.beside is None else _beside(compared.beside),
    }


def _beside(beside: OtherMetric) -> dict[str, Json]:
    return {
        **_fields(beside.other, f"metric {_INTERVAL} direction size"),
        "disagrees": beside.disagrees,
        "baseline": None if beside.baseline is None else _shares(beside.baseline),
        "variant": None if beside.variant is None else _shares(beside.variant),
    }


def _shares(shares: TimeShares) -> dict[str, Json]:
    return {**asdict(shares), "waiting": shares.waiting}


def _finding(finding: Finding) -> dict[str, Json]:
    return _fields(finding, "code severity text subject")


def _build(build: BuildFacts) -> dict[str, Json]:
    return {
        "variant": build.variant,
        "choices": dict(build.choices),
        **_fields(build, "compiler flags link_flags status"),
        **_said(build, "same_as"),
        **_fields(build, "build_s size_bytes text_bytes loadable_sha256"),
        **_said(build, "files evidence coverage"),
        **_fields(build, "log_path log_tail"),
        **_said(build, "error"),
        **_fields(build, "check check_failed out check_tail"),
    }


def _about(result: Result) -> dict[str, Json]:
    return {
        **_fields(
            result,
            "name title question baseline twin metric mode slice_ns freezer level margin",
        ),
        "checked": was_checked(result),
        "executions": result.rounds_done,
        **_fields(
            result,
            "rounds_done rounds_planned racing_s budget_s used_s running_share stopped withheld",
        ),
        "precision": {
            "asked": result.precision,
            "expected": _plain(result.expected),
            "reached": _plain(result.reached),
        },
        **_fields(result, "band_edges seed prefer confinement"),
        "commands": dict(result.commands),
        "toolchains": dict(result.toolchains),
        "source": dict(result.source),
        **_fields(result, "version made_at"),
        **dict(sorted(result.extra.items())),
    }


def _variant(facts: VariantFacts, result: Result) -> dict[str, Json]:
    wall = facts.wall
    return {
        **_fields(facts, "variant workload"),
        "command": dict(result.commands).get(facts.variant),
        **_fields(facts, "user_s system_s"),
        "wall_s": _plain(wall.mean),
        "wall_sd_s": _plain(wall.sd),
        "wall_min_s": _plain(wall.least),
        "wall_max_s": _plain(wall.greatest),
        **_fields(facts, "peak_memory_bytes cost_ns operations score unit most_gain log_ratios"),
        "shares": None if facts.shares is None else _shares(facts.shares),
        "exit_codes": list(facts.exits),
        "failing_runs": _plain(facts.failing_runs),
        "ran": [{"path": file.path, "sha256": file.sha256 or None} for file in facts.ran],
        "not_judged": facts.not_judged,
    }


def _trial(trial: Trial) -> dict[str, Json]:
    return {
        "workload": trial.workload,
        "round": trial.round_index,
        **_fields(
            trial, "seed mode freezer slice_ns started_unix_s wall_ns running_share steal_ns"
        ),
        "variants": [_totals(totals) for totals in trial.variants],
        "slices": [_slice(record) for record in trial.slices],
        "findings": [_finding(finding) for finding in trial.findings],
        "failures": _plain(trial.failures),
    }


def _totals(totals: VariantTotals) -> dict[str, Json]:
    document = {**asdict(totals), "counters": dict(totals.counters)}
    del document["code_samples"]  # only studies ask for them, whose trials are in their store
    return document


def _slice(record: SliceRecord) -> list[Json]:
    return [getattr(record, column) for column in _SLICE_COLUMNS]


def _fields(of: object, names: str) -> dict[str, Json]:
    """Fields by these names, in this order."""
    return {name: _plain(getattr(of, name)) for name in names.split()}


def _said(of: object, names: str) -> dict[str, Json]:
    """Those of the fields that say something."""
    return {name: value for name, value in _fields(of, names).items() if value}


def _plain(value: Any) -> Json:
    """A value as JSON has it; a number that is infinite or unknown is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    plain: Json = value.value if isinstance(value, Enum) else value
    return plain


def _written(content: Mapping[str, Json]) -> str:
    # A row a line: readable, and small where there are many slices.
    parts = [f" {_dumped(key)}: {_rows(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rows(value: Json) -> str:
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_dumped, value)) + "\n ]"
    if isinstance(value, Mapping):
        pairs = (f"{_dumped(key)}: {_dumped(one)}" for key, one in value.items())
        return "{\n  " + ",\n  ".join(pairs) + "\n }"
    return _dumped(value)


def _dumped(value: Json) -> str:
    return json_visible(json.dumps(value, ensure_ascii=False, allow_nan=False))
