"""Waiting for other races on this machine, told on standard error."""

from __future__ import annotations

import os

from ensign.cli.output import complain
from ensign.host.race_lock import VARIABLE, Holder, RaceLock, default_path
from ensign.report.words import clean


def machine_lock(*, share: bool) -> RaceLock:
    """The lock of this machine, or of the file that the environment names."""
    return RaceLock(default_path(os.environ.get(VARIABLE)), share=share, on_wait=_tell)


def _tell(holder: Holder) -> None:
    complain(
        f"waiting for {clean(str(holder))}: two races at once widen each other's intervals "
        "(--share-machine races all the same, Ctrl-C gives up)"
    )
