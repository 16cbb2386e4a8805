"""The figures of a report: kept when they are told, and held against what they follow from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ensign.model.quoting import quoted
from ensign.model.results import Result
from ensign.report import as_json

FIGURES = "figures"
_CLOSE = 1e-9
_MOST_TOLD = 20
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Verification:
    """`checked` says in sentences what was held against what, `differs` what is not as told."""

    checked: tuple[str, ...]
    differs: tuple[str, ...]

    def __add__(self, other: Verification) -> Verification:
        return Verification((*self.checked, *other.checked), (*self.differs, *other.differs))


def figures_of(result: Result) -> dict[str, object]:
    """All figures of a report, without how to repeat it."""
    said: dict[str, object] = json.loads(as_json.render(replace(result, trials=(), extra={})))
    return said


def verified_figures(kept: Mapping[str, object] | None, result: Result, basis: str) -> Verification:
    """Holds the figures that were kept (None: none were) against a result, made anew. Pure."""
    if kept is None:
        said = f"no figures were kept to compare with: they are computed anew from the {basis}"
        return Verification((said,), ())
    found = figures_of(result)
    differs = list(differences(kept, found))
    told = [f"{where}: it says {a}, but {b} follows" for where, a, b in differs[:_MOST_TOLD]]
    if len(differs) > _MOST_TOLD:
        told.append(f"and {len(differs) - _MOST_TOLD} more figures")
    return Verification((f"{_count(found)} figures are judged anew from the {basis}",), tuple(told))


def differences(a: object, b: object, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Where two JSON values differ, and both values; numbers may differ by rounding. Pure."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in [*b, *(each for each in a if each not in b)]:
            place = f"{where}.{name}" if where else str(name)
            yield from differences(a.get(name, _Missing), b.get(name, _Missing), place)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for number, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif not _equal(a, b):
        yield quoted(where)[1:-1], _shown(a), _shown(b)


class _Missing:
    """Nothing where something is expected."""


def _equal(a: object, b: object) -> bool:
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (a, b))
    if numbers and isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=_CLOSE, abs_tol=1e-300)
    return type(a) is type(b) and a == b


def _shown(value: object) -> str:
    if value is _Missing:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _count(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(map(_count, value.values()))
    if isinstance(value, list):
        return sum(map(_count, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))
