"""What happens during builds, for whoever shows progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

EventKind = Literal["started", "finished", "cached", "failed", "replaced"]


@dataclass(frozen=True, slots=True)
class BuildEvent:
    """A stage, or the source, started, finished, was found in the cache or failed.

    Or something in the cache was not what was put there, and is made again.

    `label` is the variant's name, or says what it is. `expected_s` is what earlier builds took,
    or a default; `elapsed_s` the time it took, 0 at the start; `text` says why it failed.
    """

    kind: EventKind
    label: str
    elapsed_s: float
    expected_s: float
    text: str = ""


OnEvent = Callable[[BuildEvent], None]


def ignore(event: BuildEvent) -> None:
    """Show nothing."""
    del event
