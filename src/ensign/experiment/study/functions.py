"""Functions of raced builds, of which each round may have linked others. Reads the programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ensign.experiment.study.sensitivity import SampleReader
from ensign.experiment.study.variants import VariantSet
from ensign.explain.function_costs import FunctionReader, function_costs
from ensign.model.results import FunctionCosts
from ensign.model.study import Study
from ensign.model.trials import SampledFile, Trial, failed_variants, name_without_group


def study_functions(
    study: Study, variants: VariantSet, trials: Sequence[Trial], build_path: str
) -> tuple[FunctionCosts, ...]:
    """CPU time by function of each variant beside the baseline; nothing where nobody looked.

    Sources are told from `build_path`, the folder that builds were done in.
    """
    if not study.race.samples or not trials:
        return ()
    files = SampleReader(variants.trees)
    gone = failed_variants(trials)

    def place(trial: Trial, variant: str, file: SampledFile) -> Path | None:
        artifact = variants.artifact_of(name_without_group(variant), trial.round_index)
        return files.original(file, artifact)

    left = [trial.without(gone) for trial in trials]
    if study.explain is not None:
        # What lies between both ends is for the causes.
        between = {name for name, _ in variants.artifacts[1:]} - {study.explain.variant}
        left = [trial.without(between) for trial in left]
    reader = FunctionReader(place)
    found = function_costs(left, variants.artifacts[0][0], reader, study.race.level)
    order = [workload.name for workload in study.workloads]
    told = (_with_sources(costs, f"{build_path}/") for costs in found)
    return tuple(sorted(told, key=lambda costs: order.index(costs.workload)))


def _with_sources(costs: FunctionCosts, folder: str) -> FunctionCosts:
    rows = (
        replace(row, source=row.source.removeprefix(folder)) if folder != "/" else row
        for row in costs.by_symbol
    )
    return replace(costs, by_symbol=tuple(rows))
