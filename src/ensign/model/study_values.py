"""Values of a study file: text that is checked where it is read. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from ensign.model.errors import InputError
from ensign.model.quoting import visible
from ensign.model.study_axes import Allocator
from ensign.model.trials import SHORTEST_SLICE_NS
from ensign.model.units import parse_duration_ns, parse_rate_bits, parse_share, parse_size_bytes

_LEVELS = (0.9, 0.95, 0.975, 0.99)
_FIRST_PORT, _LAST_PORT, _FEWEST_PORTS = 1024, 65_535, 100


def _positive(
    parse: Callable[[str], float], *, least: float = 0.0, least_text: str = "0"
) -> object:
    def check(text: str) -> str:
        if text.strip().startswith("-"):
            raise ValueError(f"'{text}' must be above {least_text}")
        try:
            value = parse(text)
        except InputError as error:
            raise ValueError(str(error)) from None
        if value <= 0 or value < least:
            raise ValueError(f"'{text}' must be {'at least' if least else 'above'} {least_text}")
        return text

    return AfterValidator(check)


def _inside(text: str) -> str:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"'{text}' must be a path inside the source folder, without '..'")
    return text


def _below_the_study(text: str) -> str:
    path = PurePosixPath(text)
    outside = path.is_absolute() or ".." in path.parts or path.parts[:1] in ((), (".ensign",))
    if outside or not text.isprintable():
        raise ValueError(f"'{visible(text)}' must be a path in the study's folder, without '..'")
    return text


def _no_dash(text: str) -> str:
    if not text.strip() or text.startswith("-"):
        raise ValueError(f"'{text}' must not be empty or start with a dash")
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a path has no NUL")
    return text


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"'{text}' is not a valid regular expression: {error}") from None
    if not groups:
        raise ValueError(f"'{text}' needs a group around the number: ([0-9.]+)")
    return text


def _allocators(words: dict[str, str]) -> dict[str, str]:
    known = get_args(Allocator)
    for name in words:
        if name not in known:
            raise ValueError(f"'{name}' is no allocator; there are {', '.join(known)}")
    return words


def _ports(ports: tuple[int, int]) -> tuple[int, int]:
    first, last = ports
    if not _FIRST_PORT <= first <= last <= _LAST_PORT:
        raise ValueError(
            f"'{list(ports)}' must be a first and a last port from {_FIRST_PORT} to {_LAST_PORT}"
        )
    if last - first + 1 < _FEWEST_PORTS:
        raise ValueError(f"'{list(ports)}' must span at least {_FEWEST_PORTS} ports")
    return ports


def _level(level: float) -> float:
    if level not in _LEVELS:
        raise ValueError(f"'{level}' must be one of {', '.join(map(str, _LEVELS))}")
    return level


def _none_of_text(value: object) -> object:
    return None if value == "none" else value


def _inputs(value: object) -> object:
    several = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    if not several and not isinstance(value, str):
        raise ValueError('give a file, or a list of files such as ["a.txt", "b.txt"]')
    return value


def _group_size(value: object) -> object:
    if isinstance(value, bool) or (value not in ("auto", "all") and not isinstance(value, int)):
        raise ValueError("give 'auto', 'all' or a number of variants")
    if isinstance(value, int) and value < 1:
        raise ValueError("give at least 1 variant, or 'auto' or 'all'")
    return value


Duration = Annotated[str, _positive(parse_duration_ns), Field(examples=["90s", "5m"])]
SliceText = Annotated[
    str,
    _positive(parse_duration_ns, least=SHORTEST_SLICE_NS, least_text="100us"),
    Field(examples=["5ms"]),
]
Share = Annotated[str, _positive(parse_share), Field(examples=["0.5%"])]
Rate = Annotated[str, _positive(parse_rate_bits), Field(examples=["1Gbit/s"])]
SizeText = Annotated[str, _positive(parse_size_bytes), Field(examples=["4GiB"])]
PathText = Annotated[str, AfterValidator(_no_nul), Field(min_length=1)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.+-]*$", max_length=60)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ScoreName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+:-]*$", max_length=60)]
Argv = Annotated[list[str], Field(min_length=1)]
# The pattern makes it a table of its own in the schema.
InputPath = Annotated[str, Field(pattern="^"), AfterValidator(_below_the_study)]
Inside = Annotated[str, AfterValidator(_inside)]
Reference = Annotated[str, AfterValidator(_no_dash)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Level = Annotated[float, AfterValidator(_level)]
CpuList = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
GroupSize = Annotated[int | str, BeforeValidator(_group_size)]
Inputs = Annotated[str | list[str], BeforeValidator(_inputs)]
OptionalShare = Annotated[Share | None, BeforeValidator(_none_of_text)]
AllocatorWords = Annotated[dict[str, str], AfterValidator(_allocators)]
PortRange = Annotated[tuple[int, int], Field(strict=False), AfterValidator(_ports)]
