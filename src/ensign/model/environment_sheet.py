"""A sheet of facts about an environment, and how two of them differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SCHEMA = 1
PROCESSOR_FLAGS = "cpu.flags"
_WHY: tuple[tuple[str, str], ...] = (
    (r"libc", "another version has other memory, string and math functions, and another malloc"),
    (r"python\.", "-fno-semantic-interposition lets calls within libpython skip the PLT"),
    (r"compilers\..*\.target", "which instructions the compiler may use without being asked"),
    (r"compilers\.", "another compiler makes other code of the same source"),
    (r"flags\.", "programs that the distribution built were built with these"),
    (r"glibc tunables|hwcaps", "decides which implementations of functions the loader picks"),
    (r"cpu\.model|cpu\.flags", "another processor, or other instructions to choose from"),
    (r"cpu\.mitigations", "mitigations cost time at system calls and at indirect branches"),
    (r"kernel", "system calls, scheduling and memory are the kernel's"),
    (r"huge pages", "large pages lower the cost of address translation for large memory"),
    (r"cpu\.", "how fast the processor runs, and who shares it"),
    (r"limits\.", "a program may be refused memory, files or processes"),
    (r"packages\.", "libraries of a program may be others"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EnvironmentSheet:
    """What is known of an environment: facts by their dotted names, as text."""

    name: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """As `read_sheet` takes it."""
        return {
            "schema": SCHEMA,
            "environment": self.name,
            "facts": dict(sorted(self.facts.items())),
        }


@dataclass(frozen=True, slots=True)
class FactDifference:
    """One fact that differs; empty where one of the two does not have it. `why` it may matter."""

    fact: str
    one: str
    other: str
    why: str


def read_sheet(content: object) -> EnvironmentSheet:
    """The sheet in the content of a JSON file. ValueError where it is none."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise ValueError(f"it is no sheet of schema {SCHEMA}")
    name, facts = content.get("environment"), content.get("facts")
    if not isinstance(name, str) or not isinstance(facts, dict):
        raise ValueError("it has no environment, or no facts")  # noqa: TRY004
    if not all(isinstance(each, str) for each in facts.values()):
        raise ValueError("a fact is no text")
    return EnvironmentSheet(name, facts)


def sheet_differences(one: EnvironmentSheet, other: EnvironmentSheet) -> tuple[FactDifference, ...]:
    """What differs, the most consequential first."""
    found = sorted(_differing(one.facts, other.facts), key=lambda each: (_rank(each), each))
    return tuple(
        FactDifference(name, one.facts.get(name, ""), other.facts.get(name, ""), _why(name))
        for name in found
    )


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    for name in {*one, *other}:
        if one.get(name) != other.get(name):
            yield name


def _rank(name: str) -> int:
    matches = (place for place, (pattern, _) in enumerate(_WHY) if re.match(pattern, name))
    return next(matches, len(_WHY))


def _why(name: str) -> str:
    return next((why for pattern, why in _WHY if re.match(pattern, name)), "")
