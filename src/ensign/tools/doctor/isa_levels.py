"""Instructions that a program's code asks for: by flags of some units, by guards in sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ensign.host.regular_file import read_regular
from ensign.proof.evidence import BuildEvidence, Compiled, own_units
from ensign.toolchains.instructions import set_named

_MOST_SOURCES, _MOST_BYTES = 2000, 1 << 20
_CONDITION = re.compile(
    rb"^[ \t]*#[ \t]*(?:if|ifdef|elif)\b(?:[^\n\\]|\\[ \t]*\n|\\)*", re.MULTILINE
)
_MACRO = re.compile(rb"\b__([A-Z][A-Z0-9_]{1,30}?)__\b")
_FLAG = re.compile(r"-m([a-z0-9][a-z0-9_.-]*)")


@dataclass(frozen=True, slots=True)
class AskedSet:
    """Instructions by Linux' name, the flag that allows them, and where the code asks for them.

    `where` is a flag of some units, or a guard and its source.
    """

    name: str
    flag: str
    where: str


def asked_sets(seen: BuildEvidence) -> tuple[AskedSet, ...]:
    """Each once, in the order of their names; sources are read as far as they are there."""
    found: dict[str, AskedSet] = {}
    for each in (*_by_flags(seen), *_by_guards(seen)):
        found.setdefault(each.name, each)
    return tuple(found[name] for name in sorted(found))


def _by_flags(seen: BuildEvidence) -> Iterator[AskedSet]:
    for unit in own_units(seen):
        for word in unit.words or ():
            match = _FLAG.fullmatch(word)
            name = set_named(match[1]) if match else ""
            if name:
                yield AskedSet(name, word, f"{Path(unit.source).name} is compiled with {word}")


def _by_guards(seen: BuildEvidence) -> Iterator[AskedSet]:
    for unit in own_units(seen)[:_MOST_SOURCES]:
        for macro in dict.fromkeys(_guards(unit)):
            name = set_named(macro)
            flag = f"-m{macro.lower().replace('sse4_', 'sse4.')}"
            if name and not _has(unit, flag):
                yield AskedSet(name, flag, f"__{macro}__ in {Path(unit.source).name}")


def _has(unit: Compiled, flag: str) -> bool:
    return flag in (unit.words or ())


def _guards(unit: Compiled) -> Iterator[str]:
    try:
        text = read_regular(Path(unit.source), _MOST_BYTES)
    except OSError:
        return
    for condition in _CONDITION.findall(text):
        for macro in _MACRO.findall(condition):
            yield macro.decode("ascii")
