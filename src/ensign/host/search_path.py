"""Programs that a command which only looks may run: installed ones, none of the study's."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

_OF_COMPILERS = re.compile(r"cc|clang|c\+\+|g\+\+|icx|ic[cp]|rustc")
_SYSTEM = ("/usr", "/opt", "/nix/store")
_OTHERS_MAY_WRITE = 0o002


def apart_from(path: str, folders: Sequence[Path] = ()) -> str:
    """A search path without what is relative, and without what lies in these folders."""
    places = _places(folders)
    kept = [
        word
        for word in path.split(os.pathsep)
        if Path(word).is_absolute() and not any(_lies_in(Path(word), place) for place in places)
    ]
    return os.pathsep.join(kept)


def not_tried(name: str, path: str, folders: Sequence[Path] = ()) -> str:
    """Why a compiler of that name is not run by what only looks; empty where it may be.

    `path` is the whole search path, `folders` are those of the study and of its source. A name
    that is found nowhere may be tried: nothing runs then.
    """
    if not _OF_COMPILERS.search(Path(name).name):
        return "its name is not one of a compiler"
    if os.sep in name and not Path(name).is_absolute():
        return "its path is relative"
    program = shutil.which(name, path=path)
    if program is None:
        return ""
    if not Path(program).is_absolute():
        return "it is found through a part of PATH that is empty or relative"
    for place in _places(folders):
        if _lies_in(Path(program), place):
            return f"it lies in {place}, which is the study's"
    return _another_users(Path(program))


def is_installed(program: Path, path: str, folders: Sequence[Path] = ()) -> bool:
    """True if a program is of this machine: a system's, or one that the search path leads to."""
    real = Path(os.path.realpath(program))
    known = {os.path.realpath(word) for word in apart_from(path, folders).split(os.pathsep) if word}
    if not (any(map(real.is_relative_to, _SYSTEM)) or str(real.parent) in known):
        return False
    is_theirs = any(_lies_in(program, place) for place in _places(folders))
    return program.is_absolute() and not is_theirs and not _another_users(real)


def _another_users(program: Path) -> str:
    """Says so where someone else could have put it there."""
    try:
        status = program.stat()
    except OSError:
        return "it cannot be looked at"
    if status.st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    return "any user may change it" if status.st_mode & _OTHERS_MAY_WRITE else ""


def _places(folders: Sequence[Path]) -> list[Path]:
    """Without those that hold everything, or everything of the user's."""
    home = Path(os.path.realpath(Path("~").expanduser()))
    paths = [Path(os.path.realpath(folder)) for folder in folders]
    return [path for path in paths if path != home and path not in home.parents]


def _lies_in(path: Path, place: Path) -> bool:
    """True if it lies in a place, by its name or by where its links lead."""
    as_named = Path(os.path.normpath(path)).is_relative_to(place)
    return as_named or Path(os.path.realpath(path)).is_relative_to(place)
