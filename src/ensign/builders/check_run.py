"""Running the commands and workloads of a check in a variant's sandbox, and comparing outputs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from ensign.builders.build_context import Runner
from ensign.builders.build_results import BuildResult
from ensign.builders.check_context import CheckContext, expected_path
from ensign.builders.rebuilt_programs import Ran, TreeBefore, what_ran
from ensign.host.files import file_sha256
from ensign.host.processes import Outcome
from ensign.model.placeholders import fill, fill_all, program_values
from ensign.model.quoting import quoted, shortened
from ensign.model.study import longest_run_ns
from ensign.model.study_workload import Workload
from ensign.model.units import parse_duration_ns

_FOLLOWED = "followed-{}.json"
_NOT_KEPT = ("deadline", "disk", "ended", "memory", "processes")
# How often the baseline gets the chance to show that its output changes from run to run.
_AGAIN = 3
_LONGEST_SAID = 160
_NUMBER = re.compile(
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?\b(?:nan|inf(?:inity)?)\b)", re.IGNORECASE
)
_LONGEST_LINE = 80
# NUL, and bytes that are no UTF-8.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")


class LimitMetError(Exception):
    """A command ended at a limit: that says as much about this machine as about the program."""

    def __init__(self, text: str, *, out: bool) -> None:
        super().__init__(text)
        self.out = out


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of a check: what failed, empty if nothing did; the last lines of its log.

    `outputs` has the output of each workload that is compared, as far as it came. `void` says what
    else than the program was checked; `ran` whether the program ran, None where it was not seen.
    `out`: it is not to be raced, because a workload failed or gave another output. `apart` has the
    workloads that are not compared, and why: the baseline's, and what a variant showed of it later.
    `otherwise` has those of which another revision prints something else, and where.
    """

    failed: str
    tail: str
    log: Path
    outputs: Path
    void: str = ""
    ran: bool | None = None
    out: bool = False
    apart: Mapping[str, str] = field(default_factory=dict)
    otherwise: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The commands of a check in the sandbox of one variant; outputs go to `outputs`."""

    context: CheckContext
    result: BuildResult
    runner: Runner
    outputs: Path
    follow: bool

    def commands(self, jobs: int) -> str:
        """Run the study's commands, up to the first that fails. Say which; empty if none did."""
        check, stage = self.context.check, self.result.stage
        commands: Sequence[Sequence[str]] = check.commands
        if check.in_build_tree and stage is not None:
            commands = stage.check_commands
        for number, argv in enumerate(commands):
            values = {**self._values(), "jobs": str(jobs)}
            filled = fill_all(argv, values)
            outcome = self.runner.run(filled, follower=self._follower(number))
            failed = self._failure(outcome, argv[0])
            if failed:
                return failed
        return ""

    def _follower(self, number: int) -> tuple[str, ...]:
        build_context = self.context.build_context
        if build_context.meter is None or not self.follow:
            return ()
        log = f"{build_context.sandboxes.temporary_path}/{_FOLLOWED.format(number)}"
        return (str(build_context.meter), "follow", "--log", log, "--")

    def what_ran(self, seen: TreeBefore) -> Ran:
        """Programs that ran, by what the followed commands wrote down, as far as they came."""
        sandbox, sandboxes = self.runner.sandbox, self.context.build_context.sandboxes
        logs = sorted(sandbox.temporary.glob(_FOLLOWED.format("*")))
        if not logs:
            return Ran(None)
        inside = {sandboxes.build_path: sandbox.tree, sandboxes.temporary_path: sandbox.temporary}
        return what_ran(logs, sandbox, seen, inside)

    def baseline(self, apart: dict[str, str]) -> str:
        """Run each workload of the baseline twice; `apart` gets those that cannot be compared.

        What the study names must run; what is compared by default need not.
        """
        asked = self.context.check.same_output is not None
        for workload in self.context.workloads:
            if workload.has_expectation:
                failed = self._expectation(workload)
                if failed:
                    return failed
                continue
            first, again = (self.outputs / f"{name}{workload.name}" for name in ("", ".again-"))
            try:
                failed = self.workload(workload, first) or self.workload(workload, again)
            except LimitMetError as met:
                if asked:
                    raise
                failed = str(met)
            if failed and asked:
                return failed
            if failed:
                apart[workload.name] = f"{failed} where checks are run"
                continue
            differs = self._difference(first, again)
            if differs:
                apart[workload.name] = varying(differs)
            again.unlink()
        return ""

    def workloads(self, expected: Checked, differing: dict[str, str]) -> str:
        """Run those of which there is something to compare with. Say what failed.

        `differing` gets those whose output is not the baseline's, and where.
        """
        for workload in self.context.workloads:
            if workload.name in expected.apart:
                continue
            if workload.has_expectation:
                failed = self._expectation(workload)
                if failed:
                    return failed
                continue
            output, wanted = self.outputs / workload.name, expected.outputs / workload.name
            failed = self.workload(workload, output)
            if failed:
                return failed
            differs = self._difference(wanted, output)
            if differs:
                differing[workload.name] = differs
        return ""

    def changed(self, workload: Workload, wanted: Path) -> str:
        """In what an output changed from run to run, if it did: it has a time in it, or chance."""
        again = self.outputs / f".again-{workload.name}"
        for _ in range(_AGAIN):
            try:
                failed = self.workload(workload, again)
                differs = "" if failed else self._difference(wanted, again)
            except LimitMetError:
                return ""
            finally:
                again.unlink(missing_ok=True)
            if differs:
                return differs
        return ""

    def _difference(self, wanted: Path, given: Path, whose: str = "the baseline") -> str:
        tolerance = self.context.check.tolerance
        return difference(read_output(wanted), read_output(given), tolerance, whose)

    def _expectation(self, workload: Workload) -> str:
        """Run it and hold its output against what the study says."""
        output = self.outputs / workload.name
        failed = self.workload(workload, output)
        if failed:
            return failed
        problem = f"the output of workload {workload.name} is not the expected one"
        given = file_sha256(output)
        if workload.expected_sha256 not in (None, given):
            return f"{problem}: its SHA-256 is {given}"
        if workload.expected_file is None:
            return ""
        wanted = expected_path(self.context, workload)
        differs = self._difference(wanted, output, "it")
        return f"{problem} ({workload.expected_file}): {differs}" if differs else ""

    def workload(self, workload: Workload, output: Path) -> str:
        """Run in the study's folder, as races do. Say what failed; empty if nothing did."""
        values = self._values()
        command = fill_all(workload.command or (), values)
        where = fill(workload.folder or ".", values)
        env = fill_all((f"{key}={text}" for key, text in workload.env.items()), values)
        outcome = self.runner.run(
            ("env", "-C", str(self.context.folder / where), *env, *command),
            self._deadline_ns(workload),
            stdin=None if workload.stdin is None else self._stdin(workload.stdin),
            stdout=output,
        )
        return self._failure(outcome, f"workload {workload.name}", workload)

    def _stdin(self, name: str) -> Path:
        """File for standard input, as it is opened: in front of the sandbox."""
        return self.context.folder / fill(name, {"files": str(self.runner.sandbox.tree)})

    def _deadline_ns(self, workload: Workload) -> int:
        """Its own; where nobody asked for the check, no longer than could be raced."""
        if self.context.check.same_output is not None:
            return parse_duration_ns(workload.deadline)
        return longest_run_ns(self.context.study, workload)

    def _failure(self, outcome: Outcome, called: str, workload: Workload | None = None) -> str:
        """Say what failed; empty if nothing did."""
        if outcome.ok:
            return ""
        deadline = f"'check.deadline' is {self.context.check.deadline}"
        if workload is not None:
            deadline += f", its own {workload.deadline}"
        limit = f" ({deadline})" if outcome.reason == "deadline" else ""
        limit = limit or self.runner.limit_met(outcome)
        failed = f"'{called}' {outcome.describe()}{limit}"
        if outcome.reason in _NOT_KEPT:
            raise LimitMetError(failed, out=workload is not None)
        return failed if workload is not None else f"{failed}{_last_said(outcome)}"

    def _values(self) -> dict[str, str]:
        sandboxes = self.context.build_context.sandboxes
        place = sandboxes.build_path
        tools = {name: f"{place}/{path}" for name, path in self.context.tools.items()}
        artifact = f"{place}/{self.context.study.build.artifact}"
        return {
            **tools,
            **program_values(artifact),
            "files": place,
            "tmp": sandboxes.temporary_path,
        }


def varying(differs: str) -> str:
    """Why a workload is not compared of which the baseline's own output changes, and where."""
    return f"the baseline's differs from run to run ({differs})"


def _last_said(outcome: Outcome) -> str:
    lines = [line.strip() for line in outcome.tail.splitlines() if line.strip()]
    if not lines or lines[-1].startswith("$ "):  # it said nothing
        return ""
    return f": {shortened(lines[-1], _LONGEST_SAID)}"


def read_output(path: Path) -> str:
    """Output of a workload, any bytes as they are."""
    return path.read_bytes().decode(errors="surrogateescape")


def difference(
    expected: str, actual: str, tolerance: float = 0.0, whose: str = "the baseline"
) -> str:
    """The first line in which two outputs differ, in words; empty where they are the same.

    With a tolerance above 0, numbers may differ by that share of the larger one; all other text,
    blanks too, must be equal. So 0 differs from every other number, and NaN equals NaN. Of bytes
    that are no text the first that differs is told, counted from 1.
    """
    if expected == actual:
        return ""
    if not tolerance and (_NO_TEXT.search(expected) or _NO_TEXT.search(actual)):
        return _first_byte(_bytes(expected), _bytes(actual), whose)
    differs = _first_line(expected, actual, tolerance, whose)
    return differs or ("" if tolerance else "the ends of its lines differ")


def _first_line(expected: str, actual: str, tolerance: float, whose: str) -> str:
    lines = zip_longest(expected.splitlines(), actual.splitlines())
    for number, (wanted, given) in enumerate(lines, start=1):
        if wanted is None:
            return f"line {number}: {_shown(given)} where {whose} ends"
        if given is None:
            return f"it ends before line {number}: {_shown(wanted)}"
        if not _alike(wanted, given, tolerance):
            return f"line {number}: {_shown(given)} instead of {_shown(wanted)}"
    return ""


def _first_byte(wanted: bytes, given: bytes, whose: str) -> str:
    alike = zip(wanted, given, strict=False)
    place = next((at for at, (one, other) in enumerate(alike) if one != other), None)
    if place is not None:
        return f"byte {place + 1}: {given[place]:#04x} instead of {wanted[place]:#04x}"
    return f"{len(given)} bytes where {whose} has {len(wanted)}"


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _alike(wanted: str, given: str, tolerance: float) -> bool:
    if wanted == given:
        return True
    if not tolerance:
        return False
    # Splitting at the numbers leaves text at even places, numbers at odd ones.
    parts, others = _NUMBER.split(wanted), _NUMBER.split(given)
    return len(parts) == len(others) and all(
        part == other or (place % 2 == 1 and _close(float(part), float(other), tolerance))
        for place, (part, other) in enumerate(zip(parts, others, strict=True))
    )


def _close(one: float, other: float, tolerance: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=tolerance)


def _shown(line: str) -> str:
    return quoted(line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…")
