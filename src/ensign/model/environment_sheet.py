"""A sheet of facts about an environment, and how two of them differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SCHEMA = 1
PROCESSOR_FLAGS = "cpu.flags"
PROCESSOR_REGISTERS = "cpu.cpuid"
_MANY_WORDS = 4
_REGISTER = re.compile(r"([0-9a-z.]{1,20})=([0-9a-f]{1,16})")
_INSTALLED = r"compilers\.|flags\.|python\."
_INTERPOSITION = "-fno-semantic-interposition"
# The most consequential first: what decides which code runs comes before what runs beside it.
_WHY: tuple[tuple[str, str], ...] = (
    (r"libc", "another version has other memory, string and math functions, and another malloc"),
    (r"functions\.", "it has these in several versions, one of which is picked for the processor"),
    (r"glibc tunables|hwcaps", "decides which implementations of functions the loader picks"),
    (r"python\.", "how this Python was compiled"),
    (r"compilers\..*\.configured", "what the compiler does unless it is asked otherwise"),
    (r"compilers\..*\.target", "which instructions the compiler may use without being asked"),
    (r"compilers\.", "another compiler makes other code of the same source"),
    (r"flags\.", "programs that the distribution built were built with these"),
    (r"cpu\.(model|flags|cpuid)", "another processor, or other instructions to choose from"),
    (r"cpu\.mitigations", "mitigations cost time at system calls and at indirect branches"),
    (r"kernel", "system calls, scheduling and memory are the kernel's"),
    (r"huge pages", "large pages lower the cost of address translation for large memory"),
    (r"cpu\.", "how fast the processor runs, and who shares it"),
    (r"limits\.", "a program may be refused memory, files or processes"),
    (r"packages\.", "libraries of a program may be others"),
    (r"distribution", ""),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EnvironmentSheet:
    """Known facts about an environment by their dotted names, as text."""

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
    if not all(isinstance(fact, str) for fact in facts.values()):
        raise ValueError("a fact is no text")
    return EnvironmentSheet(name, facts)


def registers_of(sheet: EnvironmentSheet) -> dict[str, int]:
    """Those of its processor; none where it does not say."""
    words = map(_REGISTER.fullmatch, sheet.facts.get(PROCESSOR_REGISTERS, "").split())
    return {match[1]: int(match[2], 16) for match in words if match}


def sheet_differences(one: EnvironmentSheet, other: EnvironmentSheet) -> tuple[FactDifference, ...]:
    """Differences, the most consequential first."""
    differing = sorted(_differing(one.facts, other.facts))
    rows = [
        FactDifference(
            name, one.facts.get(name, ""), other.facts.get(name, ""), _why(name, one, other)
        )
        for name in differing
    ]
    return tuple(sorted(rows, key=_rank))


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    for name in {*one, *other}:
        if one.get(name) != other.get(name):
            yield name


def _rank(row: FactDifference) -> tuple[int, bool, str]:
    """Facts of one of them alone come late: the other may just not have them installed."""
    matches = (place for place, (pattern, _) in enumerate(_WHY) if re.match(pattern, row.fact))
    place = next(matches, len(_WHY))
    if re.match(_INSTALLED, row.fact) and not (row.one and row.other):
        place += len(_WHY)
    return place, _INTERPOSITION not in row.why, row.fact


def _why(name: str, one: EnvironmentSheet, other: EnvironmentSheet) -> str:
    if name.startswith("python."):
        has = [_INTERPOSITION in sheet.facts.get(name, "") for sheet in (one, other)]
        if has[0] != has[1]:
            who = one.name if has[0] else other.name
            return f"{_INTERPOSITION}, in {who} alone, lets calls within libpython skip the PLT"
    return next((why for pattern, why in _WHY if re.match(pattern, name)), "")


def differing_words(one: str, other: str) -> tuple[str, str]:
    """Words of two long texts that the other does not have; short texts as they are."""
    words = (one.split(), other.split())
    if min(map(len, words)) < _MANY_WORDS:
        return one, other
    left, right = ([w for w in mine if w not in {*theirs}] for mine, theirs in (words, words[::-1]))
    if not left and not right:
        return one, other
    return " ".join(left) or "no other words", " ".join(right) or "no other words"
