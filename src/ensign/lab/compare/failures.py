"""Commands that failed: out of the race, or measured all the same where that is asked. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensign.lab.compare.options import Candidate
from ensign.model.errors import CommandFailed
from ensign.model.findings import Finding, Severity
from ensign.model.results import FailedArm, FailingRuns
from ensign.model.trials import ArmFailure, Trial
from ensign.model.units import format_duration


@dataclass(frozen=True, slots=True)
class Ended:
    """A command, and what ended it."""

    entry: Candidate
    failure: ArmFailure

    @property
    def arm(self) -> FailedArm:
        """For reports."""
        failure = self.failure
        return FailedArm(
            name=self.entry.name,
            command=self.entry.text,
            code=failure.code,
            text=failure.text,
            execution=None if failure.sweep is None else failure.sweep + 1,
            exit=failure.exit,
            signal=failure.signal,
        )

    @property
    def finding(self) -> Finding:
        """The error that speaks against it."""
        arm = self.arm
        text = f"failed {arm.when}, so it is out and not compared: {arm.text}"
        return Finding("command-failed", Severity.ERROR, text, arm.name)


def ended(entries: Sequence[Candidate], failures: Sequence[ArmFailure]) -> tuple[Ended, ...]:
    """The commands that failed, in the order of failing."""
    by_arm = {entry.arm: entry for entry in entries}
    return tuple(Ended(by_arm[each.arm], each) for each in failures if each.arm in by_arm)


def require_rest(entries: Sequence[Candidate], failures: Sequence[ArmFailure]) -> None:
    """CommandFailed where nothing is left to compare with the baseline (the first of them)."""
    out = {failure.arm for failure in failures}
    if entries[0].arm in out or all(entry.arm in out for entry in entries[1:]):
        raise failure_of(ended(entries, failures))


def failure_of(found: Sequence[Ended]) -> CommandFailed:
    """What to say of them at the end."""
    said = (f"'{each.entry.name}' failed {each.arm.when}: {each.failure.text}" for each in found)
    return CommandFailed("; ".join(said))


def failing_runs(trials: Sequence[Trial], arm: str) -> tuple[FailingRuns, ...]:
    """How often the command ended with which failure; nothing where it never did."""
    ends = Counter(
        (totals.exit, totals.signal)
        for trial in trials
        for totals in trial.arms
        if totals.arm == arm and (totals.exit or totals.signal)
    )
    return tuple(
        FailingRuns(exit_, signal, count, len(trials))
        for (exit_, signal), count in ends.most_common()
    )


def way_out_of(deadline_ns: int) -> str:
    """What helps against a deadline that the user did not set."""
    took = format_duration(deadline_ns)
    return (
        f"what takes {took}, far longer than every run before the race, hangs; if not: --deadline"
    )


def ignored_findings(trials: Sequence[Trial], entries: Sequence[Candidate]) -> Iterator[Finding]:
    """`failing-runs`: what failed and was measured all the same."""
    for entry in entries:
        said = ", ".join(map(str, failing_runs(trials, entry.arm)))
        if said:
            text = f"{said}; measured all the same (--ignore-failure)"
            yield Finding("failing-runs", Severity.WARNING, text, entry.name)
