"""Unmeasured runs of each command: whether it works, what it prints, whether it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

from ensign.experiment.metric_and_mode import Behavior, behavior_of
from ensign.host.signals import restore_signal_handlers
from ensign.meter.client import Meter
from ensign.meter.racing import observe_once, run_once
from ensign.meter.records import OutcomeLine
from ensign.meter.requests import ProcessSpec
from ensign.model.errors import CommandFailed, EnsignError, Interrupted
from ensign.model.traced_execution import TracedExecution
from ensign.model.trials import TaskActivity, VariantFailure, VariantTotals

TMP = "{tmp}"
_IGNORE = " (--ignore-failure measures it all the same)"


@dataclass(frozen=True, slots=True)
class PilotRun:
    """Resources of one unmeasured run of a command; what its `--prepare` took."""

    wall_ns: int
    user_ns: int
    system_ns: int
    activity: TaskActivity | None = None
    peak_memory_bytes: int = 0
    prepare_ns: int = 0
    load_cpu_ns: int = 0
    page_faults: int = 0
    voluntary_switches: int = 0
    operations: int = 1

    @property
    def cpu_ns(self) -> int:
        """User and system time."""
        return self.user_ns + self.system_ns


@dataclass(frozen=True, slots=True)
class CommandPilot:
    """All unmeasured runs of a command.

    `output` is the hash of what the first one printed, `again` of the second; "" if unknown.
    `traced` is one more, looked at where its tasks are.
    """

    name: str
    runs: tuple[PilotRun, ...]
    output: str = ""
    again: str = ""
    traced: TracedExecution | None = None

    @property
    def wall_ns(self) -> int:
        """Wall time of a run."""
        return round(median(run.wall_ns for run in self.runs))

    @property
    def cpu_ns(self) -> int:
        """CPU time of a run."""
        return round(median(run.cpu_ns for run in self.runs))

    @property
    def least_cpu_ns(self) -> int:
        """CPU time of the cheapest run, its load included."""
        return min(run.cpu_ns + run.load_cpu_ns for run in self.runs)

    @property
    def prepare_ns(self) -> int:
        """Time to prepare a run."""
        return round(median(run.prepare_ns for run in self.runs))

    @property
    def peak_memory_bytes(self) -> int:
        """The most that a run had."""
        return max(run.peak_memory_bytes for run in self.runs)

    @property
    def behavior(self) -> Behavior:
        """Behavior of its tasks."""
        return behavior_of([(run.cpu_ns, run.activity) for run in self.runs])


def run_of_totals(totals: VariantTotals, prepare_ns: int = 0) -> PilotRun:
    """An unmeasured execution that was raced; what it took besides was `prepare_ns`."""
    return PilotRun(
        totals.wall_ns,
        totals.user_ns,
        totals.system_ns,
        totals.activity,
        totals.peak_memory_bytes,
        prepare_ns,
        load_cpu_ns=totals.load_cpu_ns,
        page_faults=totals.page_faults,
        voluntary_switches=totals.voluntary_switches,
        operations=totals.operations,
    )


class RunFailed(CommandFailed):
    """An unmeasured run failed; `failure` says how, of a variant still to be named."""

    def __init__(self, what: str, failure: VariantFailure) -> None:
        super().__init__(f"'{what}' {failure.text}")
        self.failure = failure


def pilot_run(
    meter: Meter, name: str, process: ProcessSpec, *, digest: bool
) -> tuple[PilotRun, str]:
    """Runs the command once as in the race, and what hash its output has where that is asked for.

    CommandFailed if it fails, unless ignored.
    """
    outcome = observe_once(meter, process, digest=digest)
    if not process.ignore_failure:
        _require_success(name, outcome, _IGNORE)
    run = PilotRun(
        outcome.active_wall_ns,
        outcome.user_ns,
        outcome.system_ns,
        outcome.activity,
        outcome.peak_memory_bytes,
        page_faults=outcome.page_faults,
        voluntary_switches=outcome.voluntary_switches,
    )
    return run, outcome.digest or ""


def run_unmeasured(meter: Meter, what: str, process: ProcessSpec) -> int:
    """A set-up or clean-up command: what it took (ns). CommandFailed if it fails."""
    outcome = run_once(meter, process)
    _require_success(what, outcome)
    return outcome.active_wall_ns


def for_variant(process: ProcessSpec, variant: str, tmp: str | None = None) -> ProcessSpec:
    """A process that is run outside a race, with `{variant}` (and `{tmp}`) filled in."""

    def filled(text: str) -> str:
        text = text.replace("{variant}", variant)
        return text if tmp is None else text.replace(TMP, tmp)

    def path(text: str | None) -> str | None:
        return None if text is None else filled(text)

    return replace(
        process,
        argv=tuple(filled(word) for word in process.argv),
        env=tuple((name, filled(value)) for name, value in process.env),
        stdin=path(process.stdin),
        stdout=path(process.stdout),
    )


@dataclass(frozen=True, slots=True)
class CommandsAround:
    """Commands around all executions, each with how errors call it. Equal ones run once."""

    meter: Meter
    setups: Mapping[ProcessSpec, str]
    cleanups: Mapping[ProcessSpec, str]

    def set_up(self) -> None:
        """Runs all set-up commands. CommandFailed by the first one that fails."""
        for process, name in self.setups.items():
            run_unmeasured(self.meter, name, process)

    @contextmanager
    def cleaned_up(
        self, cleaned: list[EnsignError], is_needed: Callable[[], bool] = lambda: True
    ) -> Iterator[None]:
        """Cleans up after the block. What fails then is a note of its error, or `cleaned`."""
        try:
            yield
        except BaseException as error:
            if is_needed() and (failure := self._clean_up()) is not None:
                error.add_note(f"cleaning up failed, too: {failure}")
            raise
        if is_needed() and (failure := self._clean_up()) is not None:
            cleaned.append(failure)

    def _clean_up(self) -> EnsignError | None:
        """Complaint of the first command that fails. Ctrl-C skips the rest."""
        failure: EnsignError | None = None
        try:
            if self.cleanups:
                restore_signal_handlers()
            for process, name in self.cleanups.items():
                try:
                    run_unmeasured(self.meter, name, process)
                except EnsignError as error:
                    failure = failure or error
        except KeyboardInterrupt:
            return failure or Interrupted("interrupted while cleaning up")
        return failure


def _require_success(what: str, outcome: OutcomeLine, hint: str = "") -> None:
    if outcome.exit == 0 and outcome.reason == "exited":
        return
    if outcome.reason == "deadline":
        code, how = "deadline", "did not end before its deadline (--deadline)"
    elif outcome.signal is not None:
        code, how = "crashed", f"was ended by signal {outcome.signal}"
    else:
        code, how = "failed", f"exited with status {outcome.exit}{hint}"
    tail = (outcome.stderr_tail or outcome.stdout_tail).strip().splitlines()
    last_words = f"; it said: {tail[-1]}" if tail else ""
    raise RunFailed(
        what, VariantFailure("", code, f"{how}{last_words}", outcome.exit, outcome.signal)
    )
