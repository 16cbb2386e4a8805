"""The effects that the use cases need, as one parameter; tests pass fakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ensign.experiment.tracing import MeterTracer, Tracer
from ensign.host.clock import Clock, SystemClock
from ensign.host.race_lock import RaceLock
from ensign.meter.client import LocalMeter, Meter, StoppableMeter, Surroundings
from ensign.meter.processes import MeterProcesses


def _in_surroundings(surroundings: Surroundings) -> StoppableMeter:
    return LocalMeter(surroundings=surroundings)


@dataclass(frozen=True, slots=True)
class Ports:
    """The meter, who traces through it, clocks, environment, and one race at a time.

    `surrounded` makes a meter whose runs take place elsewhere; `commands` runs single commands,
    where that is another meter. `confinement` says what confines what is raced.
    """

    meter: StoppableMeter = field(default_factory=LocalMeter)
    commands: StoppableMeter | None = None
    confinement: str = ""
    surrounded: Callable[[Surroundings], StoppableMeter] = _in_surroundings
    tracing: Callable[[Meter], Tracer] = MeterTracer
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    race_lock: RaceLock = field(default_factory=RaceLock)

    def processes(self) -> MeterProcesses:
        """Runs single commands through the meter."""
        return MeterProcesses(self.commands or self.meter)

    def raced_in(self, surroundings: Surroundings, said: str = "") -> Ports:
        """The same, with races, traces and trainings in there, and what is said of it."""
        meter, commands = self.surrounded(surroundings), self.commands or self.meter
        return replace(self, meter=meter, commands=commands, confinement=said)
