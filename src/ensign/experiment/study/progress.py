"""Whom a run tells what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ensign.experiment.study.round_plan import RoundPlan, RoundProgress
from ensign.model.build_events import OnEvent
from ensign.model.findings import Finding


@dataclass(frozen=True, slots=True)
class ProgressCallbacks:
    """Whom to tell what happens: builds, pilots by workload, the plan of the rounds, trials.

    A finding is told that is worth to be known before the rounds have ended.
    """

    build: OnEvent
    pilot: Callable[[str], None]
    plan: Callable[[RoundPlan], None]
    trial: Callable[[RoundProgress], None]
    finding: Callable[[Finding], None]
