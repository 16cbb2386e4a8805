"""Whom a run tells what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ensign.lab.study.sweeps import SweepPlan, SweepProgress
from ensign.model.build_events import OnEvent


@dataclass(frozen=True, slots=True)
class Telling:
    """Whom to tell what happens: builds, pilots by workload, the plan of the sweeps, trials."""

    build: OnEvent
    pilot: Callable[[str], None]
    plan: Callable[[SweepPlan], None]
    trial: Callable[[SweepProgress], None]
