"""Functions of raced builds, of which each round may have linked others. Reads the programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from ensign.builders.build_results import BuildResult
from ensign.experiment.study.sensitivity import SampleReader
from ensign.experiment.study.variants import VariantSet
from ensign.explain.function_costs import FunctionReader, function_costs
from ensign.explain.function_names import source_name
from ensign.explain.relinked_places import linked_functions
from ensign.model.finding_kinds.builds import UNTRAINED
from ensign.model.findings import Finding
from ensign.model.results import FunctionCosts
from ensign.model.study import Study
from ensign.model.trials import SampledFile, Trial, failed_variants, name_without_group
from ensign.proof.evidence import some

_LEAST_UNTRAINED = 0.01


def study_functions(
    study: Study, variants: VariantSet, trials: Sequence[Trial], builds: Sequence[BuildResult]
) -> tuple[tuple[FunctionCosts, ...], tuple[Finding, ...]]:
    """CPU time by function of each variant beside the baseline, and what no training ran of it.

    Nothing where nobody looked.
    """
    if not study.race.samples or not trials:
        return (), ()
    files = SampleReader(variants.trees)
    gone = failed_variants(trials)

    def place(trial: Trial, variant: str, file: SampledFile) -> Path | None:
        artifact = variants.artifact_of(name_without_group(variant), trial.round_index)
        return files.original(file, artifact)

    relinks = {
        Path(folder): Path(tree.folders[0])
        for tree in variants.trees.values()
        for folder in tree.folders[1:]
    }
    baseline, *others = (name for name, _ in variants.artifacts)
    explained = [study.explain.variant] if study.explain is not None else others
    # What lies between both ends is for the causes.
    between = set(others) - set(explained)
    left = [trial.without(gone | between) for trial in trials]
    found = function_costs(left, baseline, FunctionReader(place, relinks), study.race.level)
    order = [workload.name for workload in study.workloads]
    looked_at = [result for result in builds if result.facts.variant in (baseline, *explained)]
    known = _known_of(looked_at) if any(costs.by_symbol for costs in found) else _Known()
    named = [_with_known(costs, known) for costs in found]
    named.sort(key=lambda costs: order.index(costs.workload))
    return tuple(named), tuple(_untrained(named, known))


@dataclass(frozen=True, slots=True)
class _Known:
    """Sources by function; and functions that no training of a variant ran, by variant."""

    sources: Mapping[str, set[str]] = field(default_factory=dict[str, set[str]])
    idle: Mapping[str, set[str]] = field(default_factory=dict[str, set[str]])


def _with_known(costs: FunctionCosts, known: _Known) -> FunctionCosts:
    """With the source of each function that only one source has, and whether it was trained."""
    idle = known.idle.get(costs.variant, set())
    rows = tuple(
        replace(
            row,
            source=next(iter(sources)) if len(sources) == 1 else "",
            facts=(*row.facts, f"no training of {costs.variant} ran it")
            if row.name in idle and not row.file
            else row.facts,
        )
        for row in costs.by_symbol
        for sources in [known.sources.get(row.name, set())]
    )
    return replace(costs, by_symbol=rows)


def _untrained(every: Sequence[FunctionCosts], known: _Known) -> Iterator[Finding]:
    """Functions that take time in a workload, and that the compiler took to be cold."""
    for costs in every:
        idle = known.idle.get(costs.variant, set())
        whole = costs.total.after_ns if costs.total is not None else 0.0
        rows = [row for row in costs.by_symbol if row.name in idle and not row.file]
        rows = [row for row in rows if row.after_ns >= _LEAST_UNTRAINED * whole > 0]
        if rows:
            rows.sort(key=lambda row: -row.after_ns)
            share = sum(row.after_ns for row in rows) / whole
            names = some([row.name for row in rows])
            text = f"no training ran {names}: {100 * share:.0f} % of its CPU time on "
            yield UNTRAINED.found(f"{text}{costs.workload}", costs.variant)


def _known_of(builds: Sequence[BuildResult]) -> _Known:
    """By the programs as they were linked: relinks have no lines."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    idle: defaultdict[str, set[str]] = defaultdict(set)
    for build in builds:
        if build.files is None or build.seen is None:
            continue
        folder = f"{build.seen.proof.build_path}/"
        paths = [build.files / file.path for file in build.facts.files if file.loaded]
        untrained = set(map(source_name, build.idle))
        for _, symbol, place in chain.from_iterable(linked_functions(paths).values()):
            function = source_name(place.function)
            source = (place.unit or place.file).removeprefix(folder)
            if source and function:
                known[function].add(source)
            if source_name(symbol) in untrained:
                idle[build.facts.variant].add(function)
    return _Known(known, idle)
