"""How large a source is and how long it may take to compile: for plans before a first build."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ensign.host.cache import Cache
from ensign.model.study_source import PathSource, Source

# Seconds of one core for a file, and lines per second beyond that, at -O2. Redis' 200,000 lines of
# C take some 60 s, a file of a hundred lines 0.1 s.
_C, _CXX, _OTHER = (0.08, 5000.0), (0.6, 1500.0), (0.2, 3000.0)
_LANGUAGES = {
    ".c": _C, ".s": _C, ".f": _C, ".f90": _C,
    ".cc": _CXX, ".cpp": _CXX, ".cxx": _CXX, ".c++": _CXX, ".C": _CXX,
    ".rs": _OTHER, ".go": _OTHER, ".d": _OTHER, ".m": _C, ".zig": _OTHER,
}  # fmt: skip
_LARGEST_FILE_BYTES = 64 << 20
_MOST_FILES = 20_000
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
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            rate = _LANGUAGES.get(Path(name).suffix)
            if rate is None or files >= _MOST_FILES:
                continue
            count = _lines(Path(folder) / name)
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


def _lines(path: Path) -> int:
    try:
        status = path.lstat()  # a link may lead to what has no end
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE_BYTES:
            return 0
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0
