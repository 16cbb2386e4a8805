"""The port to the clock, and one for tests that moves only when told."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since some fixed moment; never goes back."""
        ...

    def unix_s(self) -> float:
        """Seconds since 1970, as the machine believes them."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return time.monotonic_ns()

    def unix_s(self) -> float:
        """See `Clock.unix_s`."""
        return time.time()
