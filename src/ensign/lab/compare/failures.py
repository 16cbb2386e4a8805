"""Commands that failed: out of the race, or measured all the same where that is asked. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensign.lab.compare.options import CommandVariant
from ensign.model.errors import CommandFailed
from ensign.model.finding_kinds.ran import COMMAND_FAILED, FAILING_RUNS
from ensign.model.findings import Finding
from ensign.model.results import FailedVariant, FailingRuns
from ensign.model.trials import Trial, VariantFailure
from ensign.model.units import format_duration


@dataclass(frozen=True, slots=True)
class Ended:
    """A command, and what ended it."""

    command: CommandVariant
    failure: VariantFailure

    @property
    def variant(self) -> FailedVariant:
        """For reports."""
        failure = self.failure
        return FailedVariant(
            name=self.command.name,
            command=self.command.text,
            code=failure.code,
            text=failure.text,
            execution=None if failure.round_index is None else failure.round_index + 1,
            exit=failure.exit,
            signal=failure.signal,
        )

    @property
    def finding(self) -> Finding:
        """The error that speaks against it."""
        variant = self.variant
        text = f"failed {variant.when}, so it is out and not compared: {variant.text}"
        return COMMAND_FAILED.found(text, variant.name)


def ended(
    commands: Sequence[CommandVariant], failures: Sequence[VariantFailure]
) -> tuple[Ended, ...]:
    """The commands that failed, in the order of failing."""
    by_variant = {command.variant: command for command in commands}
    return tuple(
        Ended(by_variant[each.variant], each) for each in failures if each.variant in by_variant
    )


def require_rest(commands: Sequence[CommandVariant], failures: Sequence[VariantFailure]) -> None:
    """CommandFailed where nothing is left to compare with the baseline (the first of them)."""
    out = {failure.variant for failure in failures}
    if commands[0].variant in out or all(command.variant in out for command in commands[1:]):
        raise failure_of(ended(commands, failures))


def failure_of(found: Sequence[Ended]) -> CommandFailed:
    """What to say of them at the end."""
    said = (
        f"'{each.command.name}' failed {each.variant.when}: {each.failure.text}" for each in found
    )
    return CommandFailed("; ".join(said))


def failing_runs(trials: Sequence[Trial], variant: str) -> tuple[FailingRuns, ...]:
    """How often the command ended with which failure; nothing where it never did."""
    ends = Counter(
        (totals.exit, totals.signal)
        for trial in trials
        for totals in trial.variants
        if totals.variant == variant and (totals.exit or totals.signal)
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


def ignored_findings(
    trials: Sequence[Trial], commands: Sequence[CommandVariant]
) -> Iterator[Finding]:
    """`failing-runs`: what failed and was measured all the same."""
    for command in commands:
        said = ", ".join(map(str, failing_runs(trials, command.variant)))
        if said:
            text = f"{said}; measured all the same (--ignore-failure)"
            yield FAILING_RUNS.found(text, command.name)
