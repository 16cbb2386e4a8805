"""A race of commands that ended, not judged yet. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.experiment.compare.failures import (
    FailedCommand,
    deadline_hint,
    failed_commands,
    failure_of,
)
from ensign.experiment.compare.options import CommandVariant
from ensign.experiment.compare.race import RaceOutcome
from ensign.experiment.compare.workloads import PlannedWorkloads
from ensign.experiment.interim import SoFar
from ensign.model.errors import EnsignError
from ensign.model.experiment import Experiment
from ensign.model.findings import Finding
from ensign.model.results import MachineFacts
from ensign.model.trials import Trial, VariantFailure


@dataclass(frozen=True, slots=True)
class FinishedRace:
    """A race that ended, not judged yet.

    `so_far` has who took part, `early` the commands that failed before it, `planned` what was seen
    of each workload; `withheld` is why nothing may be said, `same` who was not raced because an
    earlier command is the same program, `confinement` what confined it.
    """

    experiment: Experiment
    commands: tuple[CommandVariant, ...]
    so_far: SoFar
    planned: PlannedWorkloads
    outcome: RaceOutcome
    spent_ns: int
    machine: MachineFacts
    machine_findings: tuple[Finding, ...]
    made_at: str
    early: tuple[FailedCommand, ...] = ()
    shared: tuple[Finding, ...] = ()
    withheld: str = ""
    same: frozenset[str] = frozenset()
    confinement: str = ""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """What was raced; what failed for a deadline that nobody set says how to set one."""
        return tuple(
            replace(trial, failures=tuple(self._told(each) for each in trial.failures))
            if trial.failures
            else trial
            for trial in self.outcome.trials
        )

    @property
    def error(self) -> EnsignError | None:
        """What failed, also where some was measured."""
        late = [each for trial in self.trials for each in trial.failures]
        failed = (*self.early, *failed_commands(self.commands, late))
        return self.outcome.error or (failure_of(failed) if failed else None)

    def _told(self, failure: VariantFailure) -> VariantFailure:
        deadline_ns = self.planned.deadline_ns
        if failure.code != "deadline" or deadline_ns is None:
            return failure
        return replace(failure, text=f"{failure.text}; {deadline_hint(deadline_ns)}")
