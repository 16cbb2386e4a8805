"""Results as JSON: cost ratios (below 1 is faster); what is infinite or unknown is null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict

from ensign.model.builds import BuildFacts
from ensign.model.comparisons import Comparison, Effect, OtherMetric, TimeShares
from ensign.model.experiment import Precision
from ensign.model.findings import Finding
from ensign.model.quoting import json_visible
from ensign.model.results import Confirmation, LayoutFacts, Result, VariantFacts
from ensign.model.trials import SliceRecord, Trial, VariantFailure, VariantTotals
from ensign.report.layouts import within_spread
from ensign.report.verdict import was_checked

Json = str | int | float | bool | None | list["Json"] | Mapping[str, "Json"]

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
        "finalists": list(phase.finalists),
        "rounds": phase.rounds,
        "rounds_done": phase.rounds_done,
        "level": phase.level,
        "plan_sha256": phase.plan_sha256,
        "fresh": list(phase.fresh),
        **({} if phase.result is None else _rows_of(phase.result)),
    }


def _rows_of(result: Result) -> dict[str, Json]:
    return {
        "comparisons": [_comparison(compared) for compared in result.comparisons],
        "aa": None if result.aa is None else _comparison(result.aa),
        "suite": [
            {
                "variant": compared.comparison.variant,
                **_interval(compared.comparison),
                "level": compared.comparison.level,
                **_statements(compared.comparison),
                **_judged(compared.comparison),
                "workloads": compared.workloads,
                "non_inferior": compared.non_inferior,
                "not_shown": list(compared.not_shown),
                "within_layout_spread": within_spread(compared.comparison, result),
            }
            for compared in result.suite
        ],
        "workloads": [
            {
                "workload": compared.workload,
                "variant": compared.comparison.variant,
                "metric": compared.comparison.metric.value,
                **_interval(compared.comparison),
                **_statements(compared.comparison),
                "executions": compared.comparison.executions,
                **_judged(compared.comparison),
                "baseline_cost_ns": _number(compared.baseline_cost_ns),
                "variant_cost_ns": _number(compared.variant_cost_ns),
                "baseline_score": None if compared.scores is None else compared.scores[0],
                "variant_score": None if compared.scores is None else compared.scores[1],
                "unit": compared.unit,
                "user_share": _number(compared.user_share),
                "within_layout_spread": within_spread(
                    compared.comparison, result, compared.workload
                ),
            }
            for compared in result.workloads
        ],
        "bands": [
            {
                "variant": compared.variant,
                "by_mean": list(compared.by_mean),
                "by_minimum": list(compared.by_minimum),
            }
            for compared in result.bands
        ],
        "significant": [
            {
                "variant": compared.variant,
                "slower": list(compared.slower),
                "faster": list(compared.faster),
            }
            for compared in result.significant
        ],
        "factorial": {
            "main": [_effect(each) for each in result.factorial.main],
            "conditional": [_effect(each) for each in result.factorial.conditional],
            "interactions": [_effect(each) for each in result.factorial.interactions],
        },
        "latency": [
            {
                "workload": compared.workload,
                "variant": compared.comparison.variant,
                "percentile": compared.percentile,
                **_interval(compared.comparison),
                "executions": compared.comparison.executions,
                "baseline_ns": _number(compared.baseline_ns),
                "variant_ns": _number(compared.variant_ns),
            }
            for compared in result.latency
        ],
        **({} if result.layouts is None else {"layouts": _layouts(result.layouts)}),
        "variants": [_variant(each, result) for each in result.measured],
        "failed": [_failed(failure, result) for failure in result.failures],
        "builds": [_build(build) for build in result.builds],
        **({"ran": [asdict(each) for each in result.ran]} if result.ran else {}),
        "findings": [_finding(finding) for finding in result.findings],
    }


def _failed(failure: VariantFailure, result: Result) -> dict[str, Json]:
    said = asdict(failure)
    name = said.pop("variant")
    return {"variant": name, **said, "command": dict(result.commands).get(name)}


def _effect(effect: Effect) -> dict[str, Json]:
    other = effect.other
    beside = {} if other is None else {"metric": other.metric.value, **_interval(other)}
    return {
        "changes": [asdict(change) for change in effect.changes],
        "given": dict(effect.given),
        "only": dict(effect.only),
        "groups": effect.groups,
        **_interval(effect.comparison),
        "level": effect.comparison.level,
        **_statements(effect.comparison),
        "significant": effect.significant,
        "other_metric": beside,
    }


def _comparison(compared: Comparison) -> dict[str, Json]:
    return {
        "variant": compared.variant,
        "baseline": compared.baseline,
        "metric": compared.metric.value,
        **_interval(compared),
        "level": compared.level,
        **_statements(compared),
        "executions": compared.executions,
        **_judged(compared),
    }


def _judged(compared: Comparison) -> dict[str, Json]:
    """Why nothing is claimed, if so; lag-1 correlation; the other cost, and where time went."""
    return {
        "withheld": compared.withheld or None,
        "correlation": compared.correlation,
        "other_metric": None if compared.beside is None else _beside(compared.beside),
    }


def _beside(beside: OtherMetric) -> dict[str, Json]:
    return {
        "metric": beside.other.metric.value,
        **_interval(beside.other),
        **_statements(beside.other),
        "disagrees": beside.disagrees,
        "baseline": None if beside.baseline is None else _shares(beside.baseline),
        "variant": None if beside.variant is None else _shares(beside.variant),
    }


def _shares(shares: TimeShares) -> dict[str, Json]:
    return {**asdict(shares), "waiting": shares.waiting}


def _interval(compared: Comparison) -> dict[str, Json]:
    return {
        "ratio": _number(compared.ratio),
        "low": _number(compared.low),
        "high": _number(compared.high),
    }


def _statements(compared: Comparison) -> dict[str, Json]:
    size = None if compared.size is None else compared.size.value
    return {"direction": compared.direction.value, "size": size}


def _finding(finding: Finding) -> dict[str, Json]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "text": finding.text,
        "subject": finding.subject,
    }


def _build(build: BuildFacts) -> dict[str, Json]:
    return {
        "variant": build.variant,
        "choices": dict(build.choices),
        "compiler": build.compiler,
        "flags": list(build.flags),
        "link_flags": list(build.link_flags),
        "status": build.status,
        **({"same_as": build.same_as} if build.same_as else {}),
        "build_s": _number(build.build_s),
        "size_bytes": build.size_bytes,
        "text_bytes": build.text_bytes,
        "loadable_sha256": build.loadable_sha256,
        **({"files": [asdict(each) for each in build.files]} if build.files else {}),
        **({"evidence": list(build.evidence)} if build.evidence else {}),
        **({"coverage": [asdict(each) for each in build.coverage]} if build.coverage else {}),
        "log_path": build.log_path,
        "log_tail": build.log_tail,
        **({"error": asdict(build.error)} if build.error is not None else {}),
        "check": build.check,
        "check_failed": build.check_failed,
        "out": build.out,
        "check_tail": build.check_tail,
    }


def _layouts(layouts: LayoutFacts) -> dict[str, Json]:
    return {
        "raced": layouts.raced,
        "kind": layouts.kind,
        "unable": list(layouts.unable),
        "splits": [asdict(split) for split in layouts.splits],
        "spreads": [asdict(spread) for spread in layouts.spreads],
        "worst": [asdict(each) for each in layouts.worst],
        "variants": [asdict(each) for each in layouts.variants],
    }


def _about(result: Result) -> dict[str, Json]:
    return {
        "name": result.name,
        "title": result.title,
        "question": result.question,
        "baseline": result.baseline,
        "twin": result.twin,
        "metric": result.metric.value,
        "mode": result.mode.value,
        "slice_ns": result.slice_ns,
        "freezer": result.freezer,
        "level": result.level,
        "margin": result.margin,
        "checked": was_checked(result),
        "executions": result.rounds_done,
        "rounds_done": result.rounds_done,
        "rounds_planned": result.rounds_planned,
        "racing_s": _number(result.racing_s),
        "budget_s": result.budget_s,
        "used_s": result.used_s,
        "running_share": _number(result.running_share),
        "stopped": None if result.stopped is None else result.stopped.value,
        "withheld": result.withheld,
        "precision": {
            "asked": result.precision,
            "expected": _precision(result.expected),
            "reached": _precision(result.reached),
        },
        "band_edges": list(result.band_edges),
        "seed": result.seed,
        "prefer": result.prefer,
        "confinement": result.confinement,
        "commands": dict(result.commands),
        "toolchains": dict(result.toolchains),
        "source": dict(result.source),
        "version": result.version,
        "made_at": result.made_at,
        **dict(sorted(result.extra.items())),
    }


def _variant(facts: VariantFacts, result: Result) -> dict[str, Json]:
    return {
        "variant": facts.variant,
        "workload": facts.workload,
        "command": dict(result.commands).get(facts.variant),
        "user_s": _number(facts.user_s),
        "system_s": _number(facts.system_s),
        "wall_s": _number(facts.wall.mean),
        "wall_sd_s": _number(facts.wall.sd),
        "wall_min_s": _number(facts.wall.least),
        "wall_max_s": _number(facts.wall.greatest),
        "peak_memory_bytes": facts.peak_memory_bytes,
        "cost_ns": _number(facts.cost_ns),
        "operations": _number(facts.operations),
        "score": facts.score,
        "unit": facts.unit,
        "log_ratios": [_number(value) for value in facts.log_ratios],
        "exit_codes": list(facts.exits),
        "failing_runs": [asdict(runs) for runs in facts.failing_runs],
        "ran": [{"path": file.path, "sha256": file.sha256 or None} for file in facts.ran],
        "not_judged": facts.not_judged,
    }


def _trial(trial: Trial) -> dict[str, Json]:
    return {
        "workload": trial.workload,
        "round": trial.round_index,
        "seed": trial.seed,
        "mode": trial.mode.value,
        "freezer": trial.freezer,
        "slice_ns": trial.slice_ns,
        "started_unix_s": _number(trial.started_unix_s),
        "wall_ns": trial.wall_ns,
        "running_share": _number(trial.running_share),
        "steal_ns": trial.steal_ns,
        "variants": [_totals(totals) for totals in trial.variants],
        "slices": [_slice(record) for record in trial.slices],
        "findings": [_finding(finding) for finding in trial.findings],
        "failures": [asdict(failure) for failure in trial.failures],
    }


def _totals(totals: VariantTotals) -> dict[str, Json]:
    said = {**asdict(totals), "counters": dict(totals.counters)}
    del said["code_samples"]  # only studies ask for them, whose trials are in their store
    return said


def _slice(record: SliceRecord) -> list[Json]:
    return [getattr(record, column) for column in _SLICE_COLUMNS]


def _precision(found: Precision | None) -> Json:
    return None if found is None else asdict(found)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
