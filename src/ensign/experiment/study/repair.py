"""Small changes that may take a variant's losses away, as a study that confirms them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.experiment.study.causes import derived_study, guilty_sources
from ensign.experiment.study_file import StudyFile
from ensign.explain.causes import can_mix_sources, choice_causes, source_causes
from ensign.model.comparisons import Direction, Size
from ensign.model.results import Result
from ensign.model.study_race import Confirm
from ensign.model.training_choice import TrainingChoice
from ensign.model.variants import Variant, trained
from ensign.store.folder import StudyFolder

_MOST_CHOICES = 4
_ENDING = "repair"
_PARTIAL_TRAINING = "-fprofile-partial-training"


def losers(result: Result, variant: str) -> tuple[str, ...]:
    """Workloads on which a variant is not shown to be no slower than the margin.

    Those where it is shown to be slower come first; among equals the worst does.
    """
    rows = [row for row in result.workloads if row.comparison.variant == variant]
    open_rows = [row for row in rows if row.comparison.direction is not Direction.FASTER]
    doubtful = [row for row in open_rows if row.comparison.size is not Size.WITHIN]
    ordered = sorted(
        doubtful,
        key=lambda row: (row.comparison.direction is not Direction.SLOWER, -row.comparison.ratio),
    )
    return tuple(row.workload for row in ordered)


def repairs_of(
    baseline: Variant, variant: Variant, first: Result, lost: Sequence[str], *, gcc: bool
) -> list[Variant]:
    """Variants that are nearly the one to be repaired, the smallest changes first.

    What compilers offer, a training on what is `lost` as well, then sources that are compiled as in
    the baseline (those whose functions add most on the losing workloads, one by one and together),
    then without one of its choices.
    """
    variants: list[Variant] = []
    if variant.pgo == "on" and gcc and _PARTIAL_TRAINING not in variant.flags:
        flags = f"{variant.flags} {_PARTIAL_TRAINING}".strip()
        variants.append(replace(variant, name="", flags=flags))
    if trained(variant) and not variant.training:
        also = str(TrainingChoice(tuple(lost)))
        variants.append(replace(variant, name="", training=also))
    mixes = can_mix_sources(baseline, variant)
    sources = guilty_sources(first, variant.name, worse=True) if mixes else []
    if sources:
        *single, others = source_causes(baseline, variant, [[source] for source in sources])
        variants += [cause.removed for cause in single]
        variants += [others.added] if len(single) > 1 else []
    if variant.alignment == "default" and variant.compiler == baseline.compiler:
        variants.append(replace(variant, name="", alignment="loops"))
    choices = choice_causes(baseline, variant)
    if len(choices) > 1:
        variants += [cause.removed for cause in choices[:_MOST_CHOICES]]
    return variants


def repair_study(
    file: StudyFile, ends: tuple[Variant, Variant], tried: Sequence[Variant], budget: str
) -> StudyFile:
    """The study of a variant beside its repairs; the best are confirmed on fresh relinks.

    It is the first attempt, or one more than other repairs of the study that were confirmed.
    """
    baseline, variant = ends
    race = file.study.race.model_copy(update={"budget": budget, "slice_check": []})
    named = (_ENDING, f"Repairs of {variant.name}")
    derived = derived_study(file, named, (baseline, [variant, *tried]), race)
    folder = StudyFolder.beside(file.path, derived.study.name)
    attempt = 1 + folder.confirmed_beside(f"{file.study.name}-{_ENDING}-")
    confirm = Confirm(finalists=3, relinks=True, attempt=attempt)
    confirmed = race.model_copy(update={"confirm": confirm})
    return replace(derived, study=derived.study.model_copy(update={"race": confirmed}))
