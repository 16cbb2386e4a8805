"""Functions of raced builds, of which each round may have linked others. Reads the programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ensign.experiment.study.sensitivity import SampleReader
from ensign.experiment.study.variants import VariantSet
from ensign.explain.function_costs import FunctionReader, function_costs
from ensign.model.results import FunctionCosts
from ensign.model.study import Study
from ensign.model.trials import SampledFile, Trial, failed_variants, name_without_group


def study_functions(
    study: Study, variants: VariantSet, trials: Sequence[Trial]
) -> tuple[FunctionCosts, ...]:
    """CPU time by function of each variant beside the baseline; nothing where nobody looked."""
    if not study.race.samples or not trials:
        return ()
    files = SampleReader(variants.trees)
    gone = failed_variants(trials)

    def place(trial: Trial, variant: str, file: SampledFile) -> Path | None:
        artifact = variants.artifact_of(name_without_group(variant), trial.round_index)
        return files.original(file, artifact)

    left = [trial.without(gone) for trial in trials]
    reader = FunctionReader(place)
    found = function_costs(left, variants.artifacts[0][0], reader, study.race.level)
    order = [workload.name for workload in study.workloads]
    return tuple(sorted(found, key=lambda costs: order.index(costs.workload)))
