"""What it means that `ensign-meter` ended without having said how: killed, or a fault of its own."""

from __future__ import annotations

import signal

from ensign.model.errors import CommandFailed, InternalError


def ended_early(status: int, said: str = "") -> CommandFailed | InternalError:
    """The error for an exit status as `subprocess` has it: negative where a signal ended it.

    `said` is what it wrote to standard error.
    """
    if status < 0:
        return CommandFailed(
            f"ensign-meter was killed by {_name(-status)}, and everything it ran was ended; if "
            "nobody did that, the machine ran out of memory ('dmesg' tells): run it again"
        )
    last = f": {said.strip().splitlines()[-1]}" if said.strip() else ""
    return InternalError(f"ensign-meter ended without a message (exit {status}){last}")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
