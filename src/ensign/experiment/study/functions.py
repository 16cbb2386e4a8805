"""Functions of raced builds, of which each round may have linked others. Reads the programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    sources = _Sources([each for each in builds if each.facts.variant in (baseline, *explained)])
    named = (sources.named(costs) for costs in found)
    return tuple(sorted(named, key=lambda costs: order.index(costs.workload)))


@dataclass(frozen=True, slots=True)
class _Sources:
    """Sources of functions, from programs as they were linked: relinks have no lines."""

    builds: Sequence[BuildResult]

    def named(self, costs: FunctionCosts) -> FunctionCosts:
        """With the source of each function that only one source has."""
        known = self._known() if costs.by_symbol else {}
        rows = tuple(
            replace(row, source=next(iter(found)) if len(found) == 1 else "")
            for row in costs.by_symbol
            for found in [known.get(row.name, set())]
        )
        return replace(costs, by_symbol=rows)

    def _known(self) -> Mapping[str, set[str]]:
        known: defaultdict[str, set[str]] = defaultdict(set)
        for build in self.builds:
            if build.files is None or build.seen is None:
                continue
            folder = f"{build.seen.proof.build_path}/"
            paths = [build.files / file.path for file in build.facts.files if file.loaded]
            starts = {path: _starts(path) for path in paths}
            for places in located(find_meter(), starts).values():
                for each in places:
                    source = (each.unit or each.file).removeprefix(folder)
                    if source and each.function:
                        known[source_name(each.function)].add(source)
        return known


def _starts(path: Path) -> tuple[int, ...]:
    """Offsets at which functions begin."""
    code = read_code_map(path)
    return () if code is None else tuple(filter(None, map(code.offset_of, code.starts)))
