"""Debug information that a distribution keeps in a file of its own, found as debuggers find it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from ensign.proof.bounded_elf import DamagedFile, data_of, elf_of
from ensign.proof.identity import Identity, build_id_of

_FOLDER = Path("/usr/lib/debug")
_PIECE_BYTES = 1 << 20
_SHORTEST_ID = 4
_CHECKSUM_BYTES = 4


def find_debug_file(path: Path, identity: Identity, folder: Path = _FOLDER) -> Path | None:
    """The one that belongs to a program, by its build id, else by the checksum that it names.

    None where it is not here. One of another build is none.
    """
    if len(identity.build_id) > _SHORTEST_ID:
        named = folder / ".build-id" / identity.build_id[:2] / f"{identity.build_id[2:]}.debug"
        if _is_of(named, identity.build_id):
            return named
    link = _link(path)
    if link is None:
        return None
    name, checksum = link
    real = path.resolve().parent
    for each in (real / name, real / ".debug" / name, Path(f"{folder}{real}") / name):
        if each.is_file() and each.resolve() != path.resolve() and _checksum(each) == checksum:
            return each
    return None


def _is_of(file: Path, build_id: str) -> bool:
    if not file.is_file():
        return False
    try:
        with elf_of(file) as elf:  # its loader's tables are elsewhere, so no more is read
            return build_id_of(elf) == build_id
    except DamagedFile:
        return False


def _link(path: Path) -> tuple[str, int] | None:
    try:
        with elf_of(path) as elf:
            section = elf.get_section_by_name(".gnu_debuglink")
            if section is None:
                return None
            data = data_of(section)
            little = elf.little_endian
    except DamagedFile:
        return None
    name = data.partition(b"\0")[0].decode(errors="replace")
    if not name or "/" in name or len(data) < len(name) + 1 + _CHECKSUM_BYTES:
        return None
    return name, int.from_bytes(data[-_CHECKSUM_BYTES:], "little" if little else "big")


def _checksum(path: Path) -> int:
    found = 0
    for piece in _pieces(path):
        found = zlib.crc32(piece, found)
    return found


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
