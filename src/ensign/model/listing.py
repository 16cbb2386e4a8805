"""What there is to know of a published suite's tests at a glance. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listed:
    """One test. `hindrance` says why it is not expressible, `missing` why it cannot be run.

    `value_bytes` is the mean size of its data, 0 where it sends none; `keys` is how many keys it
    draws from, 0 where its commands name theirs; `preload_bytes` is about what the preload sends.
    With `follows_replies` a request depends on the reply before it.
    """

    name: str
    groups: tuple[str, ...]
    commands: tuple[str, ...]
    pipeline: int = 0
    connections: int = 0
    value_bytes: int = 0
    keys: int = 0
    preload_operations: int = 0
    preload_bytes: int = 0
    fixed_requests: int | None = None
    sent: tuple[str, ...] = ()
    follows_replies: bool = False
    hindrance: str | None = None
    missing: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_expressible(self) -> bool:
        """Whether it can be said as drives."""
        return self.hindrance is None

    @property
    def is_runnable(self) -> bool:
        """Whether the server's version has all that it needs."""
        return self.is_expressible and self.missing is None


def totals(rows: Iterable[Listed]) -> tuple[int, int, int]:
    """How many tests there are, are expressible, and are runnable."""
    every = list(rows)
    return (
        len(every),
        sum(row.is_expressible for row in every),
        sum(row.is_runnable for row in every),
    )
