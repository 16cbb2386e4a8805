"""What it means that `ensign-meter` ended without having said how: killed, or its own fault."""

from __future__ import annotations

import signal

from ensign.model.errors import CommandFailed, InternalError

# Not SIGABRT: that is how it ends where no memory is left.
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")
_NOT_LOADED = 127  # by the loader of shared libraries, where it is no static program


def ended_early(status: int, said: str = "") -> CommandFailed | InternalError:
    """The error for an exit status as `subprocess` has it: negative where a signal ended it.

    `said` is what it wrote to standard error.
    """
    name = _name(-status)
    if name in _CRASHES:
        return InternalError(
            f"ensign-meter crashed ({name}); please report it, unless the machine ran out of memory"
        )
    if status < 0:
        return CommandFailed(
            f"ensign-meter was killed by {name}, and everything it ran was ended; if "
            "nobody did that, the machine ran out of memory ('dmesg' tells): run it again"
        )
    if status == _NOT_LOADED:
        return CommandFailed("ensign-meter could not be loaded; what the system refused is above")
    last = f": {said.strip().splitlines()[-1]}" if said.strip() else ""
    return InternalError(f"ensign-meter ended without a message (exit {status}){last}")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
