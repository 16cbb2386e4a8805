"""Commands that failed, so that they are out of the race. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ensign.experiment.compare.commands import CommandVariant
from ensign.model.errors import CommandFailed
from ensign.model.trials import VariantFailure
from ensign.model.units import format_duration


@dataclass(frozen=True, slots=True)
class FailedCommand:
    """A command, and what ended it."""

    command: CommandVariant
    failure: VariantFailure


def failed_commands(
    commands: Sequence[CommandVariant], failures: Sequence[VariantFailure]
) -> tuple[FailedCommand, ...]:
    """The commands that failed, in the order of failing."""
    by_variant = {command.variant: command for command in commands}
    return tuple(
        FailedCommand(by_variant[each.variant], each)
        for each in failures
        if each.variant in by_variant
    )


def require_rest(commands: Sequence[CommandVariant], failures: Sequence[VariantFailure]) -> None:
    """CommandFailed where nothing is left to compare with the baseline (the first of them)."""
    out = {failure.variant for failure in failures}
    if commands[0].variant in out or all(command.variant in out for command in commands[1:]):
        raise failure_of(failed_commands(commands, failures))


def failure_of(found: Sequence[FailedCommand]) -> CommandFailed:
    """What to say of them at the end."""
    said = (
        f"'{each.command.name}' failed {each.failure.where}: {each.failure.text}" for each in found
    )
    return CommandFailed("; ".join(said))


def deadline_hint(deadline_ns: int) -> str:
    """What helps against a deadline that the user did not set."""
    took = format_duration(deadline_ns)
    return (
        f"what takes {took}, far longer than every run before the race, hangs; if not: --deadline"
    )
