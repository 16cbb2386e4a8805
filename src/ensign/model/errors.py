"""The tree of errors. Only `cli` turns them into exit statuses.

EnsignError
├── InputError        exit 2   the user's command, study or file is wrong
│   ├── StudyError    exit 2   … in a study file, with line and key
│   └── FolderBusy    exit 2   … another ensign is at work on the same results
├── CommandFailed     exit 3   a program under test, a load generator or a build failed
│   ├── RaceFailed    exit 3   … while a study raced: what it measured until then is stored
│   ├── StorageFailed exit 3   … or a file could not be written: disk full, not permitted
│   └── ClusterUnreachable     … or Slurm did not answer
├── Interrupted       exit 4   Ctrl-C; what was measured is saved
└── InternalError     exit 5   ensign or its meter broke a promise of its own
"""

from __future__ import annotations


class EnsignError(Exception):
    """Base of all errors that ensign raises on purpose; `str()` is the text for the user.

    What else went wrong because of it is a note (`add_note`), shown in a line of its own.
    """


class InputError(EnsignError):
    """Wrong use or wrong input; the text says what, where, and what to do."""


class StudyError(InputError):
    """A wrong study file; `line` counts from 1, or is None where no line can be named."""

    def __init__(self, text: str, *, path: str, line: int | None = None) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {text}")
        self.path = path
        self.line = line


class FolderBusy(InputError):
    """Another ensign is at work on the same results."""


class BudgetTooShort(InputError):
    """A request that does not fit into the budget; about `needed_ns` would hold it."""

    def __init__(self, text: str, needed_ns: float) -> None:
        super().__init__(text)
        self.needed_ns = needed_ns


class CommandFailed(EnsignError):
    """A command that ensign was asked to run ended wrongly, or never became ready."""


class DeadlineMet(CommandFailed):
    """A command did not end in the time that it had."""


class RaceFailed(CommandFailed):
    """The baseline failed in a race, or no variant is left; there may be a report all the same."""


class StorageFailed(CommandFailed):
    """A file could not be written; nothing half-written is left in its place."""


class ClusterUnreachable(CommandFailed):
    """Slurm does not answer, or refuses a job; what runs there goes on."""


class Interrupted(EnsignError):
    """The user asked to stop; nothing that was measured is lost."""


class InternalError(EnsignError):
    """Something that should be impossible; worth a bug report."""
