"""The effects that the use cases need, as one parameter; tests pass fakes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ensign.host.clock import Clock, SystemClock
from ensign.host.meter import LocalMeter, StoppableMeter


@dataclass(frozen=True, slots=True)
class Ports:
    """The meter, the clocks and the caller's environment."""

    meter: StoppableMeter = field(default_factory=LocalMeter)
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
