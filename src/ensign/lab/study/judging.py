"""A study's rounds as a result, with what only studies show. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ensign.lab.judge import JudgedRounds, judge
from ensign.lab.record import Record
from ensign.lab.study.effects import design_of
from ensign.lab.study.layouts import layout_facts
from ensign.lab.study.longer_slices import slice_length_findings
from ensign.lab.study.overlap import overlap_findings
from ensign.lab.study.spread import layouts_spread
from ensign.model.effects import NO_EFFECTS, Factorial
from ensign.model.experiment import Experiment
from ensign.model.results import Result
from ensign.model.study import Study
from ensign.model.trials import TWIN, Trial
from ensign.model.units import parse_duration_ns, parse_share
from ensign.stats.factorial import factorial_reading


def experiment_of(study: Study) -> Experiment:
    """What a study measures, and by which rule."""
    race = study.race
    return Experiment(
        name=study.name,
        title=study.title or study.name,
        question=study.question,
        workloads=tuple(each.name for each in study.workloads),
        metric=race.cost,
        level=race.level,
        margin=None if race.margin is None else parse_share(race.margin),
        precision=None if race.precision is None else parse_share(race.precision),
        sequential=race.stopping == "sequential",
        by_ranks=race.stopping == "sequential",
        slice_ns=parse_duration_ns(race.slice),
        seed=race.seed,
        budget_ns=parse_duration_ns(race.budget),
    )


def study_result(
    study: Study,
    record: Record,
    trials: tuple[Trial, ...],
    longer: tuple[Trial, ...] = (),
    relinked: tuple[Trial, ...] = (),
    *,
    finalists: int = 1,
) -> Result:
    """The result of the whole rounds. InputError without a single one.

    `longer` are the trials at longer slices, `relinked` those of the baseline's relinks, if there
    are any; what failed in one of them is nowhere.
    """
    beside = (each for trial in (*longer, *relinked) for each in trial.failures)
    record = replace(record, early=(*record.early, *beside))
    judged = judge(experiment_of(study), record, trials, finalists=finalists)
    gone = frozenset(each.variant for each in judged.result.failures)
    usual = [trial.without(gone) for trial in trials]
    raced = tuple(name for name in record.raced if name not in gone)
    moved = slice_length_findings(study, raced, usual, [each.without(gone) for each in longer])
    spread = layouts_spread(study, judged.executions, record.relinks)
    return replace(
        judged.result,
        findings=(*overlap_findings(study), *moved, *spread, *judged.result.findings),
        layouts=layout_facts(study, replace(record, raced=raced), judged.executions, relinked),
        factorial=_effects(judged, record),
        prefer=study.race.prefer,
    )


def _effects(judged: JudgedRounds, record: Record) -> Factorial:
    if not np.isfinite(judged.others.y).all():
        return NO_EFFECTS
    design = design_of(
        record.builds,
        [each for each in judged.costs.variants if each != TWIN],
        judged.result.findings,
    )
    return factorial_reading(judged.costs, judged.others, design, judged.rule)
