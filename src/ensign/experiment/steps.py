"""One experiment, from what was asked to its result: the whole program on one page.

    read → prepare → plan → race → confirm → judge → report

Commands that exist (`ensign compare`) and variants that are built (a study) take the same steps;
what a step means for them is in `compare/run.py` and `study/run.py`. Each step gives the next one
typed values. What was there already (builds, plans, trials) a step finds by its key, so the same
command goes on where it was interrupted.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ensign.model.errors import EnsignError
from ensign.model.results import Result

Prepared = TypeVar("Prepared")
Planned = TypeVar("Planned")
Raced = TypeVar("Raced")


class ExperimentSteps(Protocol[Prepared, Planned, Raced]):
    """Meaning of the steps of an experiment for one kind of variants."""

    def held(self) -> AbstractContextManager[ExperimentSteps[Prepared, Planned, Raced]]:
        """The steps, with what must be there from the first to the last and be gone afterwards."""

    def prepare(self) -> Prepared:
        """Obtain, build, prove and check the variants, or set commands up."""

    def plan(self, prepared: Prepared) -> Planned:
        """Look at unmeasured executions: how to race, by which metric, for how long."""

    def race(self, planned: Planned) -> Raced:
        """Race what the plan asks for."""

    def confirm(self, raced: Raced) -> Raced:
        """Race the best anew, by a plan of its own, where that is asked for."""

    def judge(self, raced: Raced) -> ExperimentOutcome:
        """The result, by the rule that was fixed before."""


@dataclass(frozen=True, slots=True)
class ExperimentOutcome:
    """The result, and what failed beside it (None: nothing)."""

    result: Result
    error: EnsignError | None = None


def run_experiment(steps: ExperimentSteps[Prepared, Planned, Raced]) -> ExperimentOutcome:
    """All steps in their order. What fails before anything was measured passes."""
    with steps.held() as ready:
        prepared = ready.prepare()
        planned = ready.plan(prepared)
        raced = ready.race(planned)
        confirmed = ready.confirm(raced)
    return ready.judge(confirmed)
