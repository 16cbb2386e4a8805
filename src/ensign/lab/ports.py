"""The effects that the use cases need, as one parameter; tests pass fakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ensign.host.clock import Clock, SystemClock
from ensign.host.race_lock import RaceLock
from ensign.lab.traced import MeterTracer, Tracer
from ensign.meter.client import LocalMeter, Meter, StoppableMeter
from ensign.meter.processes import MeterProcesses


@dataclass(frozen=True, slots=True)
class Ports:
    """The meter, who traces through it, clocks, environment, and one race at a time."""

    meter: StoppableMeter = field(default_factory=LocalMeter)
    tracing: Callable[[Meter], Tracer] = MeterTracer
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    race_lock: RaceLock = field(default_factory=RaceLock)

    def processes(self) -> MeterProcesses:
        """Runs single commands through the meter."""
        return MeterProcesses(self.meter)
