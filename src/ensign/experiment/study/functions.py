"""Functions of raced builds, of which each round may have linked others. Reads the programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ensign.builders.build_results import BuildResult
from ensign.experiment.study.sensitivity import SampleReader
from ensign.experiment.study.variants import VariantSet
from ensign.explain.function_costs import FunctionReader, function_costs
from ensign.explain.function_names import source_name
from ensign.meter.client import find_meter
from ensign.meter.questions import located
from ensign.model.results import FunctionCosts
from ensign.model.study import Study
from ensign.model.trials import SampledFile, Trial, failed_variants, name_without_group
from ensign.proof.sampled_code import read_code_map


def study_functions(
    study: Study, variants: VariantSet, trials: Sequence[Trial], builds: Sequence[BuildResult]
) -> tuple[FunctionCosts, ...]:
    """CPU time by function of each variant beside the baseline; nothing where nobody looked."""
    if not study.race.samples or not trials:
        return ()
    files = SampleReader(variants.trees)
    gone = failed_variants(trials)

    def place(trial: Trial, variant: str, file: SampledFile) -> Path | None:
        artifact = variants.artifact_of(name_without_group(variant), trial.round_index)
        return files.original(file, artifact)

    baseline, *others = (name for name, _ in variants.artifacts)
    explained = [study.explain.variant] if study.explain is not None else others
    # What lies between both ends is for the causes.
    between = set(others) - set(explained)
    left = [trial.without(gone | between) for trial in trials]
    found = function_costs(left, baseline, FunctionReader(place), study.race.level)
    order = [workload.name for workload in study.workloads]
    looked_at = [each for each in builds if each.facts.variant in (baseline, *explained)]
    sources = _sources_of(looked_at) if any(costs.by_symbol for costs in found) else {}
    named = (_with_sources(costs, sources) for costs in found)
    return tuple(sorted(named, key=lambda costs: order.index(costs.workload)))


def _with_sources(costs: FunctionCosts, sources: Mapping[str, set[str]]) -> FunctionCosts:
    """With the source of each function that only one source has."""
    rows = tuple(
        replace(row, source=next(iter(found)) if len(found) == 1 else "")
        for row in costs.by_symbol
        for found in [sources.get(row.name, set())]
    )
    return replace(costs, by_symbol=rows)


def _sources_of(builds: Sequence[BuildResult]) -> Mapping[str, set[str]]:
    """Sources by function, from programs as they were linked: relinks have no lines."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for build in builds:
        if build.files is None or build.seen is None:
            continue
        folder = f"{build.seen.proof.build_path}/"
        paths = [build.files / file.path for file in build.facts.files if file.loaded]
        places = located(find_meter(), {path: _starts(path) for path in paths})
        for each in (place for found in places.values() for place in found):
            source = (each.unit or each.file).removeprefix(folder)
            if source and each.function:
                known[source_name(each.function)].add(source)
    return known


def _starts(path: Path) -> tuple[int, ...]:
    """Offsets at which functions begin."""
    code = read_code_map(path)
    return () if code is None else tuple(filter(None, map(code.offset_of, code.starts)))
