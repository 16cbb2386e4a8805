"""The document of `ensign-meter follow`, read (docs/reference/meter-protocol.md). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from ensign.model.errors import CommandFailed
from ensign.model.traced_execution import Way
from ensign.model.validation import first_error

GAPS = {
    "not-allowed": "this machine does not let one process trace another (ptrace)",
    "architecture": "executions are not traced on this architecture yet",
    "no-filter": "the kernel offers no filter of system calls (seccomp), so what was loaded "
    "and unloaded again was not seen",
    "foreign-calls": "a program made system calls of another kind than this machine's",
    "too-many": "more files than are kept",
}
UNFINISHED = "the program was killed before the trace was complete"


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class FollowedFile(_Part):
    """A mapping for execution."""

    path: str
    device: str
    inode: int
    deleted: bool
    other_root: bool


class FollowedProgram(_Part):
    """Program that was asked for, and what the kernel executed: a script's interpreter."""

    path: str
    executable: str


class FollowedChange(_Part):
    """A file that was changed, and how."""

    path: str
    ways: frozenset[Way]


class FollowedTime(_Part):
    """CPU time by the file in whose code tasks were found; "" is code in no file.

    `kernel_ns` is what of it was in system calls.
    """

    path: str
    cpu_ns: int
    kernel_ns: int

    @property
    def user_ns(self) -> int:
        """The time in that code itself."""
        return self.cpu_ns - self.kernel_ns


class FollowedCall(_Part):
    """CPU time that was found within one system call, by its name."""

    call: str
    cpu_ns: int


class Followed(_Part):
    """The whole document."""

    schema_: int
    complete: bool
    exit: int | None
    signal: int | None
    not_judged: tuple[str, ...]
    programs: tuple[FollowedProgram, ...]
    mapped: tuple[FollowedFile, ...]
    jit: bool
    cpu_ns: int
    written: tuple[FollowedChange, ...]
    read: tuple[str, ...]
    read_in_part: bool
    cpu_clock_reads: int
    children_clock_reads: int
    cpu_timers: int
    cpu_limits_reached: int
    processes: int
    threads: int
    samples: tuple[FollowedTime, ...] = ()
    calls: tuple[FollowedCall, ...] = ()

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=lambda n: n.rstrip("_"))

    @property
    def saw_anything(self) -> bool:
        """True if the program was followed at all."""
        return not {"not-allowed", "architecture"}.intersection(self.not_judged)

    def gaps(self) -> Sequence[str]:
        """Gaps in what was seen, for people."""
        gaps = [GAPS.get(code, code) for code in self.not_judged]
        return gaps if self.complete else [*gaps, UNFINISHED]


def read_followed(text: bytes) -> Followed:
    """The document as it was written.

    CommandFailed where it is no such document: the program may have written into it.
    """
    try:
        return Followed.model_validate_json(text)
    except ValidationError as error:
        why = first_error(error)
        raise CommandFailed(f"what was seen of a program was overwritten ({why})") from None
