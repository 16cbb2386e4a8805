"""Compile options of object files, by themselves or in archives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ensign.proof.archives import contents, intermediate, is_archive
from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of, elf_of
from ensign.proof.elf import FORTIFIED, comments, recorded_units
from ensign.proof.facts import Binary, Hardening, Unit, UnitKind, compiler_of_comment
from ensign.proof.symbol_tables import symbols_of

_OPTION = re.compile(r"'([^']*)'")
_ARCHIVES = (".a", ".rlib")


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """One object: `units` with the flags it records, its compiler by `.comment`, checked calls."""

    name: str
    units: tuple[Unit, ...]
    compilers: tuple[str, ...]
    language: str
    checked: frozenset[str]
    unchecked: frozenset[str]


def objects_below(names: dict[str, Path]) -> tuple[ObjectFacts, ...]:
    """All objects among the files of a folder; members of archives where no object lies by itself.

    What cannot be read is left out.
    """
    plain = [read_object(name, path) for name, path in names.items() if name.endswith(".o")]
    if not plain:
        plain = [
            read_object(f"{name}({member})", content)
            for name, path in names.items()
            if name.endswith(_ARCHIVES)
            for member, content in members_of(path)
        ]
    return tuple(object_facts for object_facts in plain if object_facts is not None)


def members_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Members of an archive as far as it can be read."""
    try:
        if is_archive(path):
            yield from contents(path)
    except DamagedFile:
        return


def read_object(name: str, source: Path | bytes) -> ObjectFacts | None:
    """One object; None where it cannot be read."""
    language = intermediate(source).language
    try:
        with elf_of(source) as elf:
            units = tuple(recorded_units(elf, source, name)) or tuple(_lto_units(elf, name))
            compilers = tuple(filter(None, map(compiler_of_comment, comments(elf))))
            needs = frozenset(
                symbol.name for symbol in symbols_of(elf, ".symtab") if not symbol.defined
            )
    except DamagedFile:
        return ObjectFacts(name, (), (), language, frozenset(), frozenset()) if language else None
    checked = frozenset(need for need in needs if need.endswith("_chk"))
    return ObjectFacts(name, units, compilers, language, checked, needs & FORTIFIED)


def _lto_units(elf: BoundedElf, name: str) -> Iterator[Unit]:
    """GCC keeps the options of an LTO object for the link."""
    section = elf.get_section_by_name(".gnu.lto_.opts")
    if section is None:
        return
    words = tuple(_OPTION.findall(data_of(section).decode(errors="replace")))
    compiler = next(filter(None, map(compiler_of_comment, comments(elf))), "GCC")
    yield Unit(name, "", UnitKind.EARLY, compiler, words)


def as_binary(path: str, objects: tuple[ObjectFacts, ...]) -> Binary:
    """All objects as if they were one program."""
    return Binary(
        path=path,
        units=tuple(unit for object_facts in objects for unit in object_facts.units),
        comments=tuple(
            sorted({compiler for object_facts in objects for compiler in object_facts.compilers})
        ),
        hardening=Hardening(
            checked=tuple(
                sorted({name for object_facts in objects for name in object_facts.checked})
            ),
            unchecked=tuple(
                sorted({name for object_facts in objects for name in object_facts.unchecked})
            ),
        ),
    )
