"""Requests of the meter's own load generator to a server of the Redis protocol. Pure.

The written form is the same in a study file and in the meter's requests, which always say
`operations` and `seed`. Placeholders inside arguments: `{key}` (one key for each), `{data}` (what
belongs to the command's last key), `{random}` (a number up to the last key's), `{expiry}` (in
seconds), `{cursor}` (of the connection's last reply; 0 at first and after an iteration's end),
`{script:NAME}` (the SHA-1 of a script) and `{hex:00ff}` (these bytes, which JSON cannot hold).

Types and bounds are those of the meter's schema, as a test compares; what several keys must be
together, and placeholders, the meter alone checks, before anything is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ensign.model.validation import Section

MOST_CONNECTIONS = 10_000
LARGEST_VALUE_BYTES = 512 * 2**20
_SHOWN = 100
_LAST_KEY = 2**53 - 1  # exact as a floating-point number

Count = Annotated[int, Field(ge=1)]
Size = Annotated[int, Field(ge=0, le=LARGEST_VALUE_BYTES)]
Pair = Annotated[tuple[Size, Size], Field(strict=False)]
Weighted = Annotated[tuple[Size, Annotated[int, Field(ge=0)]], Field(strict=False)]
Words = Annotated[list[str], Field(min_length=1)]
ReplyKind = Literal["status", "integer", "bulk", "array", "any", "nil"]


class Keys(Section):
    """Keys that a command draws; a key is `prefix` and its number, padded to `width` digits.

    `sequential`: every connection walks the whole range; `parallel`: each walks its own part of it;
    `gaussian` around `center` (default the middle) with `deviation` (default a sixth of the range);
    `zipf` with `exponent`, the first key most often.
    """

    prefix: str = Field(default="memtier-", description="in front of the number")
    first: int = Field(default=0, ge=0, le=_LAST_KEY, description="least number")
    last: int = Field(default=999_999, ge=0, le=_LAST_KEY, description="greatest number")
    pattern: Literal["random", "sequential", "parallel", "gaussian", "zipf"] = Field(
        default="random", description="how numbers are drawn"
    )
    width: int = Field(default=0, ge=0, le=64, description="digits, padded with zeros")
    center: float | None = Field(default=None, description="of a gaussian pattern")
    deviation: float | None = Field(default=None, gt=0, description="of a gaussian pattern")
    exponent: float | None = Field(
        default=None, gt=0, le=5, description="of a zipf pattern; 1 without it"
    )

    @property
    def number(self) -> int:
        """Number of keys."""
        return self.last - self.first + 1


class Data(Section):
    """Content of `{data}`: of one size, of sizes between two, or of weighted sizes (bytes)."""

    size: Size | None = Field(default=None, description="bytes")
    sizes: Pair | None = Field(default=None, description="least and most bytes, evenly")
    weighted: list[Weighted] | None = Field(
        default=None, min_length=1, description="[bytes, weight]"
    )
    random: bool = Field(default=False, description="bytes that cannot be compressed")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [form for form in (self.size, self.sizes, self.weighted) if form is not None]
        if len(given) > 1:
            raise ValueError("only one of 'size', 'sizes' and 'weighted' can be given")
        if self.weighted is not None and not sum(weight for _, weight in self.weighted):
            raise ValueError("'weighted': at least one weight must be above 0")
        return self

    @property
    def mean_bytes(self) -> float:
        """The mean size."""
        if self.sizes is not None:
            return sum(self.sizes) / 2
        if self.weighted is not None:
            total = sum(weight for _, weight in self.weighted)
            return math.fsum(size * weight for size, weight in self.weighted) / total
        return _DEFAULT_SIZE if self.size is None else self.size


_DEFAULT_SIZE = 32


class DriveCommand(Section):
    """One command, or one transaction, sent `share` times in turn by each connection."""

    argv: Words | None = Field(default=None, description="the command's arguments")
    transaction: list[Words] | None = Field(
        default=None, min_length=1, description="commands between MULTI and EXEC; one operation"
    )
    share: Count = Field(default=1, description="times in a row")
    keys: Keys | None = Field(default=None, description="what {key} is")
    reply: ReplyKind | list[ReplyKind] | None = Field(
        default=None, description="what a reply must be; without it anything but an error"
    )
    value: bool = Field(default=False, description="the reply must be what belongs to the key")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.argv is None) == (self.transaction is None):
            raise ValueError("a command needs exactly one of 'argv' and 'transaction'")
        return self

    @property
    def name(self) -> str:
        """The command's name, as it is written."""
        return self.lines[0][0]

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The argument lists: one, or those of the transaction."""
        return tuple(map(tuple, self.transaction or [self.argv or []]))

    def texts(self) -> Iterator[str]:
        """All arguments."""
        for line in self.lines:
            yield from line


class Drive(Section):
    """Requests that ensign's own load generator sends to a server.

    Each connection sends `pipeline` requests and reads their replies before it sends more. With
    `rate_per_s` operations have intended times, and latency counts from these. Equal seeds give
    equal requests; without `seed` each execution has its own, the same for all variants.
    """

    protocol: Literal[2, 3] = Field(default=2, description="version of RESP")
    connections: int = Field(default=50, ge=1, le=MOST_CONNECTIONS, description="all together")
    pipeline: int = Field(default=1, ge=1, le=100_000, description="requests sent at a time")
    threads: int = Field(default=1, ge=1, le=256, description="share the connections")
    operations: int | None = Field(
        default=None,
        ge=1,
        le=2**53,
        description="sent in all; chosen from a pilot where a workload has none",
    )
    rate_per_s: float | None = Field(default=None, gt=0, description="an open loop of that rate")
    latency: bool = Field(default=False, description="keep percentiles")
    seed: int | None = Field(default=None, ge=0, le=_LAST_KEY, description="of all random choices")
    init: list[Words] = Field(default_factory=list, description="sent once before all else")
    scripts: dict[str, str] = Field(default_factory=dict, description="Lua sources by name")
    commands: list[DriveCommand] = Field(min_length=1, description="sent in turn")
    data: Data = Field(default=Data(), description="what {data} is")
    expiry_s: Annotated[tuple[Count, Count], Field(strict=False)] | None = Field(
        default=None, description="least and most seconds of {expiry}"
    )

    def request_bytes(self, command: DriveCommand) -> float:
        """The mean size of a command's arguments, without what the protocol adds."""
        texts = "".join(command.texts())
        return len(texts.encode()) + texts.count("{data}") * self.data.mean_bytes

    @property
    def shown(self) -> str:
        """The commands, as one would type them, with what matters of the rest."""
        lines = (" ".join(line) for command in self.commands for line in command.lines)
        text = "; ".join(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…" for line in lines)
        return f"{text} ({self.connections} connections, pipeline {self.pipeline})"


def drive_json(drive: Drive, *, operations: int | None, seed: int) -> dict[str, object]:
    """A drive as the meter reads it; `operations` and `seed` stand where the drive has none.

    ValueError where nobody says how many operations there are.
    """
    count = drive.operations or operations
    if count is None:
        raise ValueError("a drive without operations")
    document: dict[str, object] = drive.model_dump(mode="json")
    chosen = seed if drive.seed is None else drive.seed
    commands = [_command_json(command) for command in drive.commands]
    data = drive.data.model_dump(mode="json", exclude_none=True)
    if set(data) == {"random"}:
        data["size"] = _DEFAULT_SIZE
    return {**document, "operations": count, "seed": chosen, "commands": commands, "data": data}


def _command_json(command: DriveCommand) -> dict[str, object]:
    document: dict[str, object] = command.model_dump(mode="json")
    if command.transaction is None:
        return {name: value for name, value in document.items() if name != "transaction"}
    # What a transaction has not is said where it is there: the meter refuses it.
    demands = {name: document[name] for name in ("reply", "value") if document[name]}
    return {**{name: document[name] for name in ("transaction", "share", "keys")}, **demands}
