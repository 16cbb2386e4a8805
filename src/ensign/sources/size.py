"""How large a source is and how long it may take to compile: for plans before a first build."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ensign.host.cache import Cache
from ensign.host.tree_walk import TreeEntry, passed_over, walk
from ensign.model.study_source import PathSource, Source

# Seconds of one core for a file, and lines per second beyond that, at -O2. Redis' 200,000 lines of
# C take some 60 s, a file of a hundred lines 0.1 s.
_C, _CXX, _OTHER = (0.08, 5000.0), (0.6, 1500.0), (0.2, 3000.0)
_LANGUAGES = {
    ".c": _C, ".s": _C, ".f": _C, ".f90": _C,
    ".cc": _CXX, ".cpp": _CXX, ".cxx": _CXX, ".c++": _CXX, ".C": _CXX,
    ".rs": _OTHER, ".go": _OTHER, ".d": _OTHER, ".m": _C, ".zig": _OTHER,
}  # fmt: skip
_MOST_FILES = 20_000
_MOST_ENTRIES = 1_000_000
_LARGEST_BYTES = 16 << 20  # of one file
_TOOLS_S = 0.5  # of make, of a configure script and of the copy, at the least


@dataclass(frozen=True, slots=True)
class SourceSize:
    """Files that are compiled, their lines, and seconds of one core to compile them once."""

    files: int
    lines: int
    seconds: float


def source_size(root: Path) -> SourceSize:
    """The size of a tree; of a very large one as if it were 20,000 files."""
    files, lines, seconds = 0, 0, _TOOLS_S
    for entry in islice(walk(root, (".*",), on_error=passed_over), _MOST_ENTRIES):
        rate = _LANGUAGES.get(Path(entry.base).suffix)
        if rate is None or files >= _MOST_FILES or not stat.S_ISREG(entry.status.st_mode):
            continue
        count = _lines(entry)
        files, lines = files + 1, lines + count
        seconds += rate[0] + count / rate[1]
    return SourceSize(files, lines, seconds)


def size_at_hand(
    source: Source, study: Path, tree_sha256: str | None, cache: Cache
) -> SourceSize | None:
    """The size of a study's source, where it lies on this machine; nothing is fetched."""
    if isinstance(source, PathSource):
        root = study.absolute().parent / source.path
        return source_size(root) if root.is_dir() else None
    entry = None if tree_sha256 is None else cache.get("source", tree_sha256, pinned="tree")
    return None if entry is None else source_size(entry.folder)


def _lines(entry: TreeEntry) -> int:
    try:
        with os.fdopen(entry.open(), "rb") as file:
            return file.read(_LARGEST_BYTES).count(b"\n")
    except OSError:
        return 0
