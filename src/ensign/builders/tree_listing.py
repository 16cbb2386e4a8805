"""Reading what tells the build systems of a source tree."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ensign.builders.systems.build_system import Listing
from ensign.builders.systems.make import included_names, makefile_of
from ensign.builders.systems.registry import FOLDERS, TEXTS
from ensign.host.regular_file import read_regular
from ensign.model.errors import InputError

_LARGEST_TEXT_BYTES = 1 << 20
_MOST_INCLUDED = 50


def listing_of(folder: Path) -> Listing:
    """The top folder of a tree, and folders below it. InputError where it cannot be read."""
    try:
        listing = _listed(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}") from None
    folders = {}
    for name in FOLDERS:
        # A link may lead out of the tree.
        if (folder / name).is_dir() and (folder / name).resolve() == folder.resolve() / name:
            with suppress(OSError):
                folders[name] = _listed(folder / name)
    return replace(listing, folders=folders)


def _listed(folder: Path) -> Listing:
    names = frozenset(each.name for each in folder.iterdir())
    there = [name for name in TEXTS if name.split("/")[0] in names]
    texts = {name: text for name in there for text in _text(folder, name)}
    waiting = list(included_names(texts.get(makefile_of(names), "")))
    for _ in range(_MOST_INCLUDED):
        if not waiting:
            break
        name = waiting.pop(0)
        if name not in texts:
            for text in _text(folder, name):
                texts[name] = text
                waiting += included_names(text)
    return Listing(names, texts)


def _text(folder: Path, name: str) -> Iterator[str]:
    """The file's text, if it lies in the folder and can be read."""
    inside = posixpath.normpath(name)
    if inside.startswith(("/", "..")):
        return
    path = folder / inside
    with suppress(OSError):
        if path.resolve().is_relative_to(folder.resolve()):
            yield read_regular(path, _LARGEST_TEXT_BYTES).decode(errors="replace")
