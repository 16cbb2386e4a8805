"""Sources that say themselves how they are optimized, which no record of flags shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.model.calls import Call
from ensign.proof.link import TreePlace

_LARGEST_BYTES = 8 << 20
_OWN = re.compile(
    rb"^[ \t]*#[ \t]*pragma[ \t]+(GCC|clang)[ \t]+optimize\b"
    rb"|\b_Pragma[ \t]*\([ \t]*\"(GCC|clang) optimize\b"
    rb"|\b__attribute__[ \t]*\(\([^)\n]*\b(__)?(optimize|optnone)(__)?\b"
    rb"|\[\[[^]\n]*\b(gnu::optimize|clang::optnone)\b",
    re.MULTILINE,
)


def own_levels(calls: Sequence[Call], place: TreePlace) -> tuple[str, ...]:
    """Where compiled sources of the tree do so, as `part.c:3`; what they include is not read."""
    sources = [
        place.find(source, call.cwd)
        for call in calls
        if call.is_compiler
        for source in call.line.sources
    ]
    return tuple(_places(dict.fromkeys(sources), place.tree))


def line_of_own_level(text: bytes) -> int:
    """The first line of a source that says so, from 1; 0 where none does."""
    found = _OWN.search(text)
    return text.count(b"\n", 0, found.start()) + 1 if found else 0


def _places(sources: Iterable[Path], tree: Path) -> Iterator[str]:
    for path in sources:
        if path.is_relative_to(tree):
            with suppress(HostileFileError, OSError):
                line = line_of_own_level(read_foreign(path, _LARGEST_BYTES))
                if line:
                    yield f"{path.relative_to(tree)}:{line}"
