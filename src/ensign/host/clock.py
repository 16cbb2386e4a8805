"""The port to the clock, and one for tests that moves only when told."""

from __future__ import annotations

import time
from dataclasses import dataclass
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


@dataclass
class FakeClock:
    """Starts at `start_unix_s` and moves by `advance_ns` alone."""

    start_unix_s: float = 0.0
    elapsed_ns: int = 0

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return self.elapsed_ns

    def unix_s(self) -> float:
        """See `Clock.unix_s`."""
        return self.start_unix_s + self.elapsed_ns / 1e9

    def advance_ns(self, ns: int) -> None:
        """Let time pass."""
        self.elapsed_ns += ns
