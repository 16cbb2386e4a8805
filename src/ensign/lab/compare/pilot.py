"""One unmeasured run of each command: whether it works, what it prints, whether it computes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ensign.host.meter import Meter
from ensign.lab.compare.options import Candidate
from ensign.measure.perform import run_once
from ensign.measure.probe import OutcomeLine
from ensign.model.errors import CommandFailed
from ensign.model.findings import Finding, Severity
from ensign.model.requests import ProcessSpec
from ensign.model.trials import ArmFailure

# A run that waits, or runs in parallel, for less than this is too short to be called either.
_NOTEWORTHY_NS = 5_000_000
_SLEEPING_SHARE = 0.5
_PARALLEL_SHARE = 1.2
_SYSTEM_SHARE = 0.6
_IGNORE = " (--ignore-failure measures it all the same)"


@dataclass(frozen=True, slots=True)
class PilotRun:
    """What one unmeasured run of a command used and printed; what its `--prepare` took."""

    name: str
    wall_ns: int
    user_ns: int
    system_ns: int
    output_sha256: str
    prepare_ns: int = 0

    @property
    def cpu_ns(self) -> int:
        """User and system time."""
        return self.user_ns + self.system_ns

    @property
    def sleeps(self) -> bool:
        """It mostly waits: stopping it would not stop what it waits for."""
        waiting_ns = self.wall_ns - self.cpu_ns
        return waiting_ns > _NOTEWORTHY_NS and self.cpu_ns < _SLEEPING_SHARE * self.wall_ns

    @property
    def parallel(self) -> bool:
        """It keeps more than one CPU busy."""
        surplus_ns = self.cpu_ns - self.wall_ns
        return surplus_ns > _NOTEWORTHY_NS and self.cpu_ns > _PARALLEL_SHARE * self.wall_ns


class RunFailed(CommandFailed):
    """An unmeasured run failed; `failure` says how, of an arm still to be named."""

    def __init__(self, what: str, failure: ArmFailure) -> None:
        super().__init__(f"'{what}' {failure.text}")
        self.failure = failure


def pilot_run(meter: Meter, candidate: Candidate, process: ProcessSpec) -> PilotRun:
    """Runs the command once, its output hashed. CommandFailed if it fails, unless ignored."""
    with _unnamed_file() as (path, digest):
        outcome = run_once(meter, replace(process, stdout=path))
        if not process.ignore_failure:
            _require_success(candidate.name, outcome, _IGNORE)
        return PilotRun(
            candidate.name, outcome.active_wall_ns, outcome.user_ns, outcome.system_ns, digest()
        )


def run_unmeasured(meter: Meter, what: str, process: ProcessSpec) -> int:
    """A set-up or clean-up command: what it took (ns). CommandFailed if it fails."""
    outcome = run_once(meter, process)
    _require_success(what, outcome)
    return outcome.active_wall_ns


def usage_findings(run: PilotRun) -> Iterator[Finding]:
    """What the use of the CPU by one run already tells."""
    cpus = run.cpu_ns / max(run.wall_ns, 1)
    if run.sleeps:
        yield Finding(
            "mostly-sleeping",
            Severity.WARNING,
            f"mostly sleeping ({cpus:.0%} of its time on a CPU): a compiler will not help; "
            "raced by whole executions",
            run.name,
        )
    if run.parallel:
        text = f"keeps {cpus:.1f} CPUs busy: raced by whole executions, wall time compared"
        yield Finding("several-cpus", Severity.NOTE, text, run.name)
    if run.cpu_ns > _NOTEWORTHY_NS and run.system_ns > _SYSTEM_SHARE * run.cpu_ns:
        share = run.system_ns / run.cpu_ns
        text = f"{share:.0%} of its CPU time is the kernel's: flags of this program reach the rest"
        yield Finding("mostly-system", Severity.NOTE, text, run.name)


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
    said = f"; it said: {tail[-1]}" if tail else ""
    raise RunFailed(what, ArmFailure("", code, f"{how}{said}", outcome.exit, outcome.signal))


@contextmanager
def _unnamed_file() -> Iterator[tuple[str, _Digest]]:
    # A file without a name cannot be left behind, whatever kills this process.
    with tempfile.TemporaryFile() as file:
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}", _Digest(file.fileno())


@dataclass(frozen=True, slots=True)
class _Digest:
    descriptor: int

    def __call__(self) -> str:
        with open(f"/proc/self/fd/{self.descriptor}", "rb") as file:  # noqa: PTH123  # no path
            return hashlib.file_digest(file, "sha256").hexdigest()
