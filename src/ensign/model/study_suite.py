"""Tests of a published suite that a study takes as its workloads. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from ensign.model.validation import Section


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
        """True if it can be said as drives."""
        return self.hindrance is None

    @property
    def is_runnable(self) -> bool:
        """True if the server's version has all that it needs."""
        return self.is_expressible and self.missing is None


def totals(rows: Iterable[Listed]) -> tuple[int, int, int]:
    """Numbers of tests: all, expressible, and runnable."""
    every = list(rows)
    return (
        len(every),
        sum(row.is_expressible for row in every),
        sum(row.is_runnable for row in every),
    )


_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*([a-z]+[0-9]+)?")


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError(f"'{text}' is not a version such as 0.3.47")
    return text


Tests = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class Suite(Section):
    """Tests that others published, taken as workloads: from a pinned wheel, or from a folder.

    `tests` are names or glob patterns. `scale` shrinks key spaces, preloads and fixed numbers of
    requests; ranges of up to 1000 keys stay. Values keep their sizes, unless `scale_values`.
    """

    kind: str = Field(description="whose tests, such as redis-benchmarks-specification")
    version: Annotated[str, AfterValidator(_version)] | None = Field(
        default=None, description="of the wheel on the Python package index"
    )
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$", description="of that wheel")
    path: str | None = Field(
        default=None, min_length=1, description="a checkout's folder instead, relative to the study"
    )
    tests: Tests = Field(description="names or glob patterns of the tests")
    scale: float = Field(default=1.0, gt=0, le=1, description="of key spaces and preloads")
    scale_values: bool = Field(default=False, description="of the sizes of values, too")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.path is not None and (self.version or self.sha256):
            raise ValueError("[suite] has 'path', so 'version' and 'sha256' mean nothing")
        if self.path is None and (self.version is None or self.sha256 is None):
            raise ValueError("[suite] needs 'version' and 'sha256', or 'path'")
        return self
