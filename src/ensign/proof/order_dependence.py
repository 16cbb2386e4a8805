"""Objects of a link that depend on their order among each other.

Static constructors run in that order, tables that a program walks (`__start_NAME`) have it, and of
several weak definitions the first one counts.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, elf_of
from ensign.proof.symbol_tables import weak_definitions

_MOST_SECTIONS = 0xFF00


class ObjectSection(NamedTuple):
    """A section header: `kind` is sh_type, `at` and `size` are in bytes."""

    name: str
    kind: int
    flags: int
    at: int
    size: int
    info: int


def object_sections(elf: BoundedElf) -> list[ObjectSection]:
    """All of them, by number. DamagedFile where there are too many."""
    count, wide = elf.num_sections(), elf.is_wide
    if count >= _MOST_SECTIONS:
        raise DamagedFile("it has too many sections")
    order = "<" if elf.little_endian else ">"
    form = struct.Struct(order + ("IIQ8xQQ4xI16x" if wide else "III4xII4xI8x"))
    rows = list(form.iter_unpack(elf.piece(elf["e_shoff"], count * form.size)))
    if not rows:
        return []
    names_at, names_size = rows[elf.get_shstrndx()][3:5]
    names = elf.piece(names_at, names_size)

    def name(at: int) -> str:
        return names[at : names.find(b"\0", at)].decode(errors="replace")

    return [ObjectSection(name(row[0]), *row[1:]) for row in rows]


_CONSTRUCTORS = re.compile(r"\.(?:preinit_array|(?:init|fini)(?:_array)?|[cd]tors)(?:\.\d+)?")
# A linker tells where such a section begins and ends.
_TABLE = re.compile(r"[A-Za-z_]\w*")
_ALLOCATED, _NOBITS, _RELOCATIONS = 0x2, 8, (4, 9)


class _Found(NamedTuple):
    """Parts of an object that hang on order: sections by purpose, and weak symbols by section."""

    purposes: frozenset[str]
    weak: Mapping[str, int]


def order_groups(objects: Mapping[str, Path]) -> tuple[frozenset[str], ...]:
    """Groups of the objects, by their names, that must keep their order within the group.

    Those that cannot be read keep it with all that have constructors. Equal code counts as one
    definition: whichever a linker takes does the same.
    """
    symbols = {name: _read(path) for name, path in objects.items()}
    by_need: dict[str, set[str]] = defaultdict(set)
    by_symbol: dict[str, set[str]] = defaultdict(set)
    for name, found_file in symbols.items():
        for purpose in found_file.purposes:
            by_need[purpose].add(name)
        for symbol in found_file.weak:
            by_symbol[symbol].add(name)
    several = {symbol: names for symbol, names in by_symbol.items() if len(names) > 1}
    contents = {
        name: _contents(objects[name], {each: symbols[name].weak[each] for each in wanted})
        for name in objects
        if (wanted := symbols[name].weak.keys() & several.keys())
    }
    differing = [
        names
        for symbol, names in several.items()
        if len({contents[name].get(symbol) for name in names}) > 1
    ]
    return _joined([*by_need.values(), *differing])


def _joined(groups: list[set[str]]) -> tuple[frozenset[str], ...]:
    """Groups that share nothing: those that do are one."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    for group in groups:
        for one, other in pairwise(group):
            parent[root(one)] = root(other)
    joined: dict[str, set[str]] = defaultdict(set)
    for name in list(parent):
        joined[root(name)].add(name)
    return tuple(frozenset(each) for each in joined.values() if len(each) > 1)


def _read(path: Path) -> _Found:
    try:
        with elf_of(path) as elf:
            sections = object_sections(elf)
            purposes = {
                "constructors" if _CONSTRUCTORS.fullmatch(section.name) else section.name
                for section in sections
                if section.size and section.flags & _ALLOCATED and _kept_in_order(section.name)
            }
            return _Found(frozenset(purposes), dict(weak_definitions(elf)))
    except (DamagedFile, FileNotFoundError):
        return _Found(frozenset(("constructors",)), {})


def _kept_in_order(name: str) -> bool:
    return bool(_CONSTRUCTORS.fullmatch(name) or _TABLE.fullmatch(name))


def _contents(path: Path, wanted: Mapping[str, int]) -> dict[str, bytes]:
    """Hashes of these symbols' sections: their bytes, and where and how these are filled in.

    Not by what: the addresses of equal code differ from object to object.
    """
    try:
        with elf_of(path) as elf:
            return dict(_digests(elf, wanted))
    except DamagedFile:
        return {symbol: str(path).encode() for symbol in wanted}


def _digests(elf: BoundedElf, wanted: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    sections = object_sections(elf)
    filled: dict[int, list[ObjectSection]] = defaultdict(list)
    for object_section in sections:
        if object_section.kind in _RELOCATIONS:
            filled[object_section.info].append(object_section)
    for symbol, index in wanted.items():
        section = sections[index]
        digest = hashlib.sha256(f"{section.name} {section.size}".encode())
        if section.kind != _NOBITS:
            digest.update(elf.piece(section.at, section.size))
        for name in filled[index]:
            digest.update(_places_and_types(elf, name))
        yield symbol, digest.digest()


def _places_and_types(elf: BoundedElf, section: ObjectSection) -> bytes:
    """Places and types of relocations: without symbols and addends."""
    if not elf.little_endian:  # then by what, too: more seems to differ than does
        return elf.piece(section.at, section.size)
    addend, wide = section.kind == _RELOCATIONS[0], elf.is_wide
    form = ("8s4s4x" + "8x" * addend) if wide else ("4s1s3x" + "4x" * addend)
    size = struct.calcsize(form)
    data = elf.piece(section.at, section.size // size * size)
    return b"".join(place + kind for place, kind in struct.iter_unpack(form, data))
