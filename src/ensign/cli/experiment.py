"""Common part of every command that measures: race, write, print, exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeVar

from ensign.cli.options import FailOn, Outputs
from ensign.cli.output import complain, say_in_color, write
from ensign.cli.progress import screen_of
from ensign.experiment.steps import ExperimentOutcome, ExperimentSteps, run_experiment
from ensign.host.race_lock import VARIABLE, Holder, RaceLock, default_path
from ensign.host.signals import signals_deferred
from ensign.model.results import Result, Stopped
from ensign.report import as_terminal
from ensign.report.confirmation import confirmed
from ensign.report.words import clean

_INTERRUPTED = 4

Prepared = TypeVar("Prepared")
Planned = TypeVar("Planned")
Raced = TypeVar("Raced")


def carry_out(
    steps: ExperimentSteps[Prepared, Planned, Raced],
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
    keep: Callable[[Result], str] = lambda _: "",
) -> int:
    """The exit status; errors pass, after what was measured is told.

    `keep` writes what is kept in any case, and says where.
    """
    return tell(run_experiment(steps), outputs, fail_on, details=details, keep=keep)


def tell(
    outcome: ExperimentOutcome,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
    keep: Callable[[Result], str] = lambda _: "",
) -> int:
    """As `carry_out`, of what was carried out."""
    with signals_deferred():
        kept = keep(outcome.result)
        show(outcome.result, outputs, details=details)
        if kept:
            write(sys.stderr if outputs.to_standard_output else sys.stdout, kept)
    return _status(outcome, fail_on)


def show(result: Result, outputs: Outputs, *, details: bool, every_workload: bool = False) -> None:
    """First what lasts: standard output may be on a full disk."""
    outputs.write(result)
    if not outputs.to_standard_output:
        screen = screen_of(sys.stdout)
        say_in_color(
            as_terminal.render(result, screen, details=details, every_workload=every_workload)
        )


def _status(outcome: ExperimentOutcome, fail_on: FailOn) -> int:
    if outcome.error is not None:
        raise outcome.error
    phases = (outcome.result, confirmed(outcome.result))
    if any(phase is not None and phase.stopped is Stopped.INTERRUPTED for phase in phases):
        return _INTERRUPTED
    return fail_on.status(outcome.result)


def machine_lock(*, share: bool) -> RaceLock:
    """The lock of this machine, or of the file that the environment names."""
    return RaceLock(default_path(os.environ.get(VARIABLE)), share=share, on_wait=_tell_of_wait)


def _tell_of_wait(holder: Holder) -> None:
    complain(
        f"waiting for {clean(str(holder))}: two races at once widen each other's intervals "
        "(--share-machine races all the same, Ctrl-C gives up)"
    )
