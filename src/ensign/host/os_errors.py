"""Refusals of the system whoever asks: no space, memory, files or processes left.

Any call may meet it, so it is told in one place, in words that say what to do. What is not here
(a file that is missing, say) whoever made the call has to expect.
"""

from __future__ import annotations

import errno
import os

_ADVICE: dict[int, str] = {
    errno.ENOSPC: "make space there ('ensign clean' empties ensign's own cache)",
    errno.EDQUOT: "make space there ('ensign clean' empties ensign's own cache)",
    errno.EIO: "the disk, or what is between, fails: the kernel's log ('dmesg') may say more",
    errno.EMFILE: "'ulimit -n' says how many files a process may have open",
    errno.ENFILE: "all programs together have as many files open as the system allows",
    errno.ENOMEM: "the machine has no memory left, or a limit of it is reached",
    errno.EAGAIN: "no more processes may be started ('ulimit -u'), or there is no memory for one",
    errno.ENOLCK: "the file system has no locks left, or none at all: use another for this",
    errno.EACCES: "see who may use it, and as whom ensign runs",
    errno.EPERM: "see who may use it, and as whom ensign runs",
    errno.EROFS: "use a file system that may be written to",
    errno.ESTALE: "the file system it was on went away; run it again",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.ELOOP: "see where its links lead",
}
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
_NO_THREAD = "can't start new thread"


def refusal(error: BaseException) -> str | None:
    """Refusal of the system, and its remedy; None where the error is something else."""
    if isinstance(error, MemoryError):
        return f"no memory left: {_ADVICE[errno.ENOMEM]}"
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return f"no thread can be started: {os.strerror(errno.EAGAIN)}; {_ADVICE[errno.EAGAIN]}"
    if not isinstance(error, OSError) or error.errno not in _ADVICE:
        return None
    reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
    what = reason if error.filename is None else f"{_text(error.filename)}: {reason}"
    return f"{what}; {_ADVICE[error.errno]}"


def is_shortage(error: BaseException) -> bool:
    """True if it says nothing of the file, but that the system lacks something or a disk fails."""
    return isinstance(error, OSError) and error.errno in _SHORTAGES


def shortage_behind(error: BaseException | None) -> Exception | None:
    """The shortage, of memory too, while which was handled an error came: None if there is none.

    Readers of files raise what they like after that.
    """
    while error is not None:
        if isinstance(error, OSError | MemoryError) and (
            isinstance(error, MemoryError) or is_shortage(error)
        ):
            return error
        error = error.__context__
    return None


def _text(name: str | bytes | int) -> str:
    return os.fsdecode(name) if isinstance(name, bytes) else str(name)
