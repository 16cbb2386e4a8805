"""In which order a round is raced: one rule for commands and for studies. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

Workload = TypeVar("Workload")


def order_of(workloads: Iterable[Workload], seed: int, round_index: int) -> list[Workload]:
    """The workloads of a round in its own random order, the same on every resumption."""
    shuffled = list(workloads)
    random.Random(f"{seed} {round_index}").shuffle(shuffled)  # noqa: S311  # not for secrets
    return shuffled


def trial_seed(race_seed: int, round_index: int, workload: str) -> int:
    """The seed of one trial, from which the meter draws the order of its variants.

    A variant's place in the order moves its cost: of seven equal variants the first one took 0.24 ±
    0.05 % more than their mean (docs/background/calibration.md). With one order for all workloads
    of a round that would not average out over the workloads: the round's geometric mean would have
    all of it.
    """
    trial = random.Random(f"{race_seed} {round_index} {workload}")  # noqa: S311  # not for secrets
    return trial.getrandbits(32)
