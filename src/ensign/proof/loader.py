"""Where a loader finds the libraries that a build made. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from ensign.model.built_files import BuiltFile
from ensign.proof.loaded_bytes import Dynamic

_ORIGIN = ("$ORIGIN", "${ORIGIN}")


def library_folders(
    files: Sequence[BuiltFile], dynamics: Mapping[str, Dynamic], names: Mapping[str, str]
) -> tuple[str, ...]:
    """Folders of kept libraries that no search path relative to a kept file leads to.

    `dynamics` are by path; `names` has each path at which a file can be opened, links too, with the
    path of the file itself. In the order of the files; relative to the source folder.
    """
    searched = {path: set(_origins(path, each.search)) for path, each in dynamics.items()}
    anywhere = {folder for folders in searched.values() for folder in folders}
    found: dict[str, None] = {}
    for each in files:
        if each.kind != "library":
            continue
        folders = _folders_of(each, names)
        needers = [path for path, read in dynamics.items() if each.names & {*read.needed}]
        # What nothing needs is opened by its name, which any of them may do.
        places = [searched[path] for path in needers] or [anywhere]
        if not all(place.intersection(folders) for place in places):
            found.update(dict.fromkeys(folders))
    return tuple(found)


def _folders_of(library: BuiltFile, names: Mapping[str, str]) -> tuple[str, ...]:
    """Those in which it can be opened by a name that a loader asks for."""
    asked = {name for name, path in names.items() if path == library.path}
    fitting = {name for name in asked if posixpath.basename(name) in library.names}
    if library.soname:  # what was linked against it asks for this name alone
        named = {name for name in fitting if posixpath.basename(name) == library.soname}
        fitting = named or fitting
    return tuple(sorted({posixpath.dirname(name) for name in fitting or asked}))


def _origins(path: str, search: Iterable[str]) -> Iterable[str]:
    for entry in search:
        for mark in _ORIGIN:
            if entry == mark or entry.startswith(f"{mark}/"):
                inside = posixpath.normpath(
                    posixpath.join(posixpath.dirname(path), "." + entry[len(mark) :])
                )
                yield "" if inside == "." else inside
