"""Copies of objects and archives with padding behind some of their sections of code.

An object whose functions have sections of their own (those of C++ that are defined in headers, all
of Rust's) is one block to a linker that is given objects, and an archive is more so; these copies
move what is within them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ensign.proof.archives import with_changed_members
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.order_dependence import ObjectSection, object_sections

_COPIES, _MOST_BYTES = 7, 2**28
_STEP_BYTES, _MOST_STEPS = 16, 15
# Few places, as an edit grows one: padding behind each function would thin the code out.
_PLACES = 4
_PROGBITS, _EXECUTED = 1, 0x6
_HEADER_BYTES, _OFFSET_AT, _HEADERS_AT = 64, 24, 0x28

_Copies = Callable[[Path, Iterator[random.Random]], Iterator[bytes]]


def write_padded_copies(
    objects: Mapping[str, Path], archives: Mapping[str, Path], folders: tuple[Path, str]
) -> dict[str, tuple[str, ...]]:
    """Copies of archives, and of each object of several sections of code, below the first folder.

    By their names; the second folder is what the link calls the first. Large programs get fewer
    copies, or none. Nothing is written of what cannot be read.
    """
    several = {name: path for name, path in objects.items() if len(_sections_or_none(path)) > 1}
    inputs: dict[str, tuple[Path, _Copies]] = {
        **{name: (path, _object_copies) for name, path in several.items()},
        **{name: (path, _archive_copies) for name, path in archives.items()},
    }
    total_bytes = sum(path.stat().st_size for path, _ in inputs.values())
    count = min(_COPIES, _MOST_BYTES // max(total_bytes, 1))
    if not count:
        return {}
    copies = {
        name: tuple(_written(path, copies_of, (number, count), folders))
        for number, (name, (path, copies_of)) in enumerate(inputs.items())
    }
    return {name: copy for name, copy in copies.items() if copy}


def _written(
    path: Path, copies_of: _Copies, of: tuple[int, int], folders: tuple[Path, str]
) -> Iterator[str]:
    (number, count), (here, seen) = of, folders
    rngs = (random.Random(f"{path.name} {number} {copy}") for copy in range(count))  # noqa: S311
    try:
        for copy, content in enumerate(copies_of(path, rngs)):
            file = f"{copy}/{number}{path.suffix}"
            (here / file).parent.mkdir(parents=True, exist_ok=True)
            (here / file).write_bytes(content)
            yield f"{seen}/{file}"
    except DamagedFile:
        return


def _object_copies(path: Path, rngs: Iterator[random.Random]) -> Iterator[bytes]:
    content = path.read_bytes()
    sections = _code_sections(content)
    return (_padded(content, sections, rng) for rng in rngs)


def _archive_copies(path: Path, rngs: Iterator[random.Random]) -> Iterator[bytes]:
    """The archive's members, padded; one that is no object stays as it is."""
    known: dict[int, Mapping[int, ObjectSection]] = {}

    def padded(rng: random.Random, at: int, member: bytes) -> bytes:
        if at not in known:
            known[at] = _sections_or_none(member)
        return _padded(member, known[at], rng)

    return (with_changed_members(path, partial(padded, rng)) for rng in rngs)


def _padded(content: bytes, sections: Mapping[int, ObjectSection], rng: random.Random) -> bytes:
    """The object with some sections longer: moved to its end, where they can grow."""
    grown = bytearray(content)
    for number, section in sections.items():
        if rng.random() >= min(1 / 2, _PLACES / len(sections)):
            continue
        padding = bytes(_STEP_BYTES * rng.randint(1, _MOST_STEPS))
        grown += bytes(-len(grown) % _HEADER_BYTES)
        place = struct.pack("<QQ", len(grown), section.size + len(padding))
        (headers_at,) = struct.unpack_from("<Q", content, _HEADERS_AT)
        header = headers_at + number * _HEADER_BYTES + _OFFSET_AT
        grown[header : header + len(place)] = place
        grown += content[section.at : section.at + section.size] + padding
    return bytes(grown)


def _sections_or_none(source: Path | bytes) -> Mapping[int, ObjectSection]:
    try:
        return _code_sections(source)
    except (DamagedFile, FileNotFoundError):
        return {}


def _code_sections(source: Path | bytes) -> Mapping[int, ObjectSection]:
    """Sections by their numbers, the lowest first; none in 32-bit files. DamagedFile."""
    with elf_of(source) as elf:
        if not elf.is_wide or not elf.little_endian:
            return {}
        return dict(_code(object_sections(elf)))


def _code(sections: Sequence[ObjectSection]) -> Iterator[tuple[int, ObjectSection]]:
    for number, section in enumerate(sections):
        executed = section.flags & _EXECUTED == _EXECUTED and section.kind == _PROGBITS
        if executed and section.size and section.name.startswith(".text"):
            yield number, section
