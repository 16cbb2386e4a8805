"""The effects that the use cases need, as one parameter; tests pass fakes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ensign.host.meter import LocalMeter, Meter


@dataclass(frozen=True, slots=True)
class Ports:
    """`clock_ns` is monotonic, `unix_s` the wall clock."""

    meter: Meter = field(default_factory=LocalMeter)
    clock_ns: Callable[[], int] = time.monotonic_ns
    unix_s: Callable[[], float] = time.time
