"""All build systems, and what a study that names one means. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from ensign.builders.systems.autotools import Autotools
from ensign.builders.systems.build_system import BuildSystem, Listing, Recognized
from ensign.builders.systems.cargo import Cargo
from ensign.builders.systems.cmake import CMake
from ensign.builders.systems.debian import Debian, package_tests
from ensign.builders.systems.make import Make, included_names, makefile_of
from ensign.builders.systems.meson import Meson
from ensign.host.regular_file import read_regular
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_problems import Problem

# In the order of preference, where a tree has several: what comes first passes flags more surely.
_ALL: tuple[BuildSystem, ...] = (CMake(), Meson(), Autotools(), Make(), Cargo(), Debian())
SYSTEMS: Mapping[str, BuildSystem] = {system.name: system for system in _ALL}
TEXTS = tuple(dict.fromkeys(name for system in _ALL for name in system.texts))
# Where the file of a build system lies if it is not at the top, the likeliest first.
FOLDERS = ("build/cmake", "build/meson", "cmake", "src", "source", "build", "unix", "make")
# Where none of these has it, any folder may, but for those whose builds are not the project's.
_ASIDE = re.compile(
    r"\.|(?:.*tests?|docs?|examples?|samples?|third.?party|vendor|deps|external|contrib|fuzz.*)$",
    re.IGNORECASE,
)
_MOST_FOLDERS = 200
_IN_FOLDERS = ("cmake", "meson", "autotools", "make")
_OF_SYSTEMS = ("folder", "options", "targets", "in_source", "flags_by")


def recognize(listing: Listing) -> tuple[Recognized, ...]:
    """The build systems of a tree by its top folder, the one to prefer first.

    Where there is none, those of the folders below it. A package's rules come last.
    """
    at_top = _recognized(listing)
    if any(recognized.system != Debian.name for recognized in at_top):
        return at_top
    inside = (
        replace(recognized, keys={"folder": name, **recognized.keys})
        for name, below in listing.folders.items()
        for recognized in _recognized(below)
        if recognized.system in _IN_FOLDERS
    )
    return (*inside, *at_top)


def _recognized(listing: Listing) -> tuple[Recognized, ...]:
    systems = (system.recognized(listing) for system in _ALL)
    return tuple(recognized for recognized in systems if recognized is not None)


def system_problems(study: Study) -> Iterator[Problem]:
    """Mistakes in what a study says of its build system, each with its place."""
    build = study.build
    if study.check is not None and study.check.package and build.system != Debian.name:
        text = f"'package': its tests are those of a Debian package: system '{Debian.name}'"
        yield Problem(("check", "package"), text)
    if build.system is None:
        for key in _OF_SYSTEMS:
            if key in build.model_fields_set:
                yield Problem(("build", key), f"'{key}' needs a 'system' in [build]")
        if not build.commands:
            text = "[build] needs 'commands', or a 'system' that knows them"
            where = ("build", "commands") if "commands" in build.model_fields_set else ("build",)
            yield Problem(where, text)
        return
    if build.commands:
        text = f"'commands': system '{build.system}' has its own; leave out one of the two"
        yield Problem(("build", "commands"), text)
    yield from SYSTEMS[build.system].problems(build)
    yield from _dependencies_apart(study)


def _dependencies_apart(study: Study) -> Iterator[Problem]:
    """The axis `dependencies` where nothing is built apart: a system gives all of it the flags."""
    if study.build.dependencies:
        return
    text = f"'dependencies': system '{study.build.system}' gives its flags to all that it builds; "
    text += "leave out 'flags', or give build.dependencies"
    if "flags" in study.axes.dependencies:
        where = ("axes", "dependencies", study.axes.dependencies.index("flags"))
        yield Problem(where, text)
    for index, choice in enumerate(study.include):
        if choice.dependencies == "flags":
            yield Problem(("include", index, "dependencies"), text)


def with_recipe_of_system(study: Study) -> Study:
    """The study as if it had said all commands itself; unchanged where it names no system."""
    system = study.build.system
    if system is None:
        return study
    changes: dict[str, object] = {"build": SYSTEMS[system].recipe(study.build)}
    check = study.check
    if check is not None and check.package and system == Debian.name:
        commands = [package_tests(study.build), *check.commands]
        more = {"commands": commands, "in_build_tree": True}
        changes["check"] = check.model_copy(update=more)
    if system == Cargo.name and study.source.crates is None:
        changes["source"] = study.source.model_copy(update={"crates": study.build.folder})
    return study.model_copy(update=changes)


_LARGEST_TEXT_BYTES = 1 << 20
_MOST_INCLUDED = 50


def listing_of(folder: Path) -> Listing:
    """The top folder of a tree, and folders below it. InputError where it cannot be read."""
    try:
        listing = _listed(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}") from None
    listing = replace(listing, folders=_listed_below(folder, FOLDERS))
    if recognize(listing):
        return listing
    return replace(listing, folders=_listed_below(folder, _any_below(folder)))


def _listed_below(folder: Path, names: Iterable[str]) -> dict[str, Listing]:
    folders = {}
    for name in names:
        # A link may lead out of the tree.
        if (folder / name).is_dir() and (folder / name).resolve() == folder.resolve() / name:
            with suppress(OSError):
                folders[name] = _listed(folder / name)
    return folders


def _any_below(folder: Path) -> Iterator[str]:
    """Folders that are no tests, examples or other projects, and those below them, by name."""
    first = _own_folders(folder)
    second = (path for below in first for path in _own_folders(below))
    for path in islice(chain(first, second), _MOST_FOLDERS):
        yield path.relative_to(folder).as_posix()


def _own_folders(folder: Path) -> list[Path]:
    try:
        below = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
    return [path for path in below if not _ASIDE.match(path.name)]


def _listed(folder: Path) -> Listing:
    names = frozenset(path.name for path in folder.iterdir())
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
