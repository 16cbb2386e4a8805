"""Comparison of the asked with the seen, by subject. Pure.

A subject is what a flag or an option decides: `O`, `lto`, `D:NAME`, `opt-level`. What holds for
several parts (compile units, objects, crates) is said once, with the names of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

Choices = Mapping[str, str]
"""Choices of the flags or options of one part: subject to value."""

_Key = TypeVar("_Key")
_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Difference:
    """A subject with two values; None where it has none."""

    subject: str
    asked: str | None
    there: str | None


def differences(
    asked: Choices, there: Choices, subjects: Iterable[str] | None = None
) -> Iterator[Difference]:
    """Differences in the order of `subjects`; without these, of all subjects by their names."""
    for subject in sorted(asked.keys() | there.keys()) if subjects is None else subjects:
        if asked.get(subject) != there.get(subject):
            yield Difference(subject, asked.get(subject), there.get(subject))


def grouped(pairs: Iterable[tuple[_Key, _Part]]) -> dict[_Key, list[_Part]]:
    """The parts of each key, in the order of the pairs."""
    groups: dict[_Key, list[_Part]] = {}
    for key, part in pairs:
        groups.setdefault(key, []).append(part)
    return groups
