"""Copies of objects with padding behind some of their sections of code.

An object whose functions have sections of their own (those of C++ that are defined in headers, all
of Rust's) is one block to a linker that is given objects; these copies move what is within it.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.object_sections import ObjectSection, object_sections

_COPIES, _MOST_BYTES = 7, 2**28
_STEP_BYTES, _MOST_STEPS = 16, 15
# Few places, as an edit grows one: padding behind each function would thin the code out.
_PLACES = 4
_PROGBITS, _EXECUTED, _WIDE_BITS = 1, 0x6, 64
_HEADER_BYTES, _OFFSET_AT = 64, 24


def write_padded_copies(
    objects: Mapping[str, Path], folders: tuple[Path, str]
) -> dict[str, tuple[str, ...]]:
    """Copies of each object of several sections of code, by its name, below the first folder.

    The second folder is what the link calls it. Large programs get fewer copies, or none.
    """
    here, seen = folders
    found = {name: code for name, path in objects.items() if len(code := _code_sections(path)) > 1}
    total_bytes = sum(objects[name].stat().st_size for name in found)
    count = min(_COPIES, _MOST_BYTES // total_bytes) if found else 0
    copies: dict[str, tuple[str, ...]] = {}
    for number, (name, sections) in enumerate(found.items()):
        content = objects[name].read_bytes()
        for copy in range(count):
            target = here / str(copy) / f"{number}.o"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_padded(content, sections, random.Random(f"{name} {copy}")))  # noqa: S311
        copies[name] = tuple(f"{seen}/{copy}/{number}.o" for copy in range(count))
    return copies


def _code_sections(path: Path) -> Mapping[int, ObjectSection]:
    """By their numbers; none where the file is no object that can be changed."""
    try:
        with elf_of(path) as elf:
            if elf.elfclass != _WIDE_BITS or not elf.little_endian:
                return {}
            return dict(_code(object_sections(elf)))
    except (DamagedFile, FileNotFoundError):
        return {}


def _code(sections: Sequence[ObjectSection]) -> Iterator[tuple[int, ObjectSection]]:
    for number, each in enumerate(sections):
        executed = each.flags & _EXECUTED == _EXECUTED and each.kind == _PROGBITS
        if executed and each.size and each.name.startswith(".text"):
            yield number, each


def _padded(content: bytes, sections: Mapping[int, ObjectSection], rng: random.Random) -> bytes:
    """The object with some sections longer: moved to its end, where they can grow."""
    grown = bytearray(content)
    headers_at = struct.unpack_from("<Q", content, 0x28)[0]
    for number, each in sections.items():
        if rng.random() >= min(1 / 2, _PLACES / len(sections)):
            continue
        padding = bytes(_STEP_BYTES * rng.randint(1, _MOST_STEPS))
        grown += bytes(-len(grown) % _HEADER_BYTES)
        place = struct.pack("<QQ", len(grown), each.size + len(padding))
        header = headers_at + number * _HEADER_BYTES + _OFFSET_AT
        grown[header : header + len(place)] = place
        grown += content[each.at : each.at + each.size] + padding
    return bytes(grown)
