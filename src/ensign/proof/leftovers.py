"""Leftovers in a tree before anything is built there: objects, programs, settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ensign.host.files import file_sha256, tree_entries
from ensign.host.os_errors import is_shortage
from ensign.model.errors import InputError
from ensign.proof.archives import contents
from ensign.proof.bounded_elf import DamagedFile

FILE = "before.json"
PROGRAM = "program or library"
_ELF, _BITCODE = b"\x7fELF", (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_ARCHIVES = (b"!<arch>\n", b"!<thin>\n")
_HEAD_BYTES = 18
_RELOCATABLE, _BIG_ENDIAN = 1, 2
# By the suffixes of compilers' other outputs, and by the names of configured build folders.
_SUFFIXES = {".gch": "precompiled header", ".pch": "precompiled header", ".gcda": "profile",
             ".gcno": "profile", ".profdata": "profile", ".profraw": "profile"}  # fmt: skip
_SETTINGS = frozenset(
    ("CMakeCache.txt", "config.status", "build.ninja", ".ninja_log", "coredata.dat")
)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that some earlier build made. `members` are an archive's, as name and SHA-256.

    `kind` is `object`, `archive`, `program or library`, `precompiled header`, `profile` or
    `configuration`.
    """

    path: str
    kind: str
    sha256: str
    members: tuple[tuple[str, str], ...] = ()


_LEFTOVERS = TypeAdapter(tuple[Leftover, ...])


def leftovers(tree: Path) -> tuple[Leftover, ...]:
    """All of a tree, in the order of their names."""
    files = []
    for name, path in tree_entries(tree):
        if path.is_symlink() or not path.is_file():
            continue
        kind = kind_of(path)
        if kind:
            members = tuple(_members(path)) if kind == "archive" else ()
            files.append(Leftover(name, kind, file_sha256(path), members))
    return tuple(files)


def kind_of(path: Path) -> str:
    """Kind of an earlier build's file; empty for any other."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        if is_shortage(error):
            raise
        return ""
    if head[:8] in _ARCHIVES:
        return "archive"
    if head[:4] in _BITCODE:
        return "object"
    if head[:4] == _ELF and len(head) == _HEAD_BYTES:
        kind = head[17] if head[5] == _BIG_ENDIAN else head[16]
        return "object" if kind == _RELOCATABLE else PROGRAM
    if path.name in _SETTINGS:
        return "configuration"
    return _SUFFIXES.get(path.suffix, "")


def _members(path: Path) -> Iterator[tuple[str, str]]:
    try:
        for name, content in contents(path):
            yield name, hashlib.sha256(content).hexdigest()
    except DamagedFile:
        return


def as_text(found: Sequence[Leftover]) -> str:
    """For keeping it with a stage."""
    return json.dumps([asdict(leftover) for leftover in found])


def read_leftovers(file: Path) -> tuple[Leftover, ...]:
    """Leftovers that `as_text` wrote; nothing without a file. InputError where it is damaged."""
    if not file.is_file():
        return ()
    try:
        return _LEFTOVERS.validate_json(file.read_bytes())
    except ValueError:
        text = f"{file} is damaged; delete {file.parent}, and it is built again"
        raise InputError(text) from None
