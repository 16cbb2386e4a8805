"""What lies in a folder beside what was built: calls, links, maps, profiles, sources."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ensign.builders.recorder import CALLS, COMPILE_COMMANDS, read_calls
from ensign.host.files import copy_tree, tree_entries
from ensign.host.json_text import read_json
from ensign.host.processes import Processes, ProcessRequest, read_tail
from ensign.meter.client import find_meter
from ensign.meter.command_lines import calls_of
from ensign.model.calls import AskedCall, Call
from ensign.model.errors import InputError
from ensign.proof.dry_run import asked_call, asked_of_commands, asked_of_dry_run
from ensign.proof.evidence import BuildEvidence, own_units
from ensign.proof.link import TreePlace
from ensign.proof.rules_profile import Dated

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_BY_CMAKE = b"CMAKE generated file"
_DRY_RUN = ("a dry run of make",)
_DEADLINE_NS = 60 * 10**9
_LONGEST_DRY_RUN_BYTES = 50_000_000
_PROFILES = (".gcda", ".profdata", ".afdo", ".profraw")
_NINJA_LINK = re.compile(r"^build ([^:]+): (\S*LINKER\S*) ([^|]*)", re.IGNORECASE)
_NINJA_FLAGS, _NINJA_LAST = ("FLAGS", "ARGS", "LINK_FLAGS"), ("LINK_ARGS", "LINK_LIBRARIES")
# What build systems compile to learn of the compiler is nobody's program.
_PROBES = re.compile(
    r"(?:^|/)(?:CMakeFiles/[\d.]+[^/]*/|CMakeFiles/(?:CMakeTmp|CMakeScratch)/|meson-private/"
    r"|conftest)"
)


@dataclass(frozen=True, slots=True)
class FolderEvidence:
    """Evidence of a folder: calls, whose paths `place` finds, maps, profiles, and all files.

    `sources` names what was read, for people. `supposed`: the calls are what a dry run of make
    prints, which may differ from what was done.
    """

    place: TreePlace
    files: dict[str, Path]
    calls: tuple[Call, ...] = ()
    maps: tuple[Path, ...] = ()
    sources: tuple[str, ...] = ()
    profiles: tuple[Dated, ...] = field(default=())
    supposed: bool = False


def read_beside(folder: Path, processes: Processes) -> FolderEvidence:
    """Look at a folder. InputError where evidence in it is damaged."""
    files = {
        name: path
        for name, path in tree_entries(folder, (".git",))
        if path.is_file() and not path.is_symlink() and not _PROBES.search(name)
    }
    maps = tuple(path for name, path in files.items() if name.endswith(".map"))
    profiles = tuple(dated(path) for name, path in files.items() if name.endswith(_PROFILES))
    said = [f"linker map {path.name}" for path in maps]
    said += [f"profile {Path(each.path).name}" for each in profiles]
    place, calls, read = _calls(folder, files, processes)
    return FolderEvidence(place, files, calls, maps, (*said, *read), profiles, read == _DRY_RUN)


def _calls(
    folder: Path, files: dict[str, Path], processes: Processes
) -> tuple[TreePlace, tuple[Call, ...], tuple[str, ...]]:
    """The calls that are known, their place, and where they stand."""
    if CALLS in files:
        with _readable(files[CALLS]):
            return TreePlace(folder), read_calls(files[CALLS]), (CALLS,)
    makefile = next((files[name] for name in _MAKEFILES if name in files), None)
    if makefile is not None and _BY_CMAKE not in makefile.read_bytes()[:200]:
        place, calls = _dry_run(folder, processes)
        if any(call.is_compiler and call.line.sources for call in calls):
            return place, calls, _DRY_RUN
    listed = sorted(
        (name for name in files if PurePosixPath(name).name == COMPILE_COMMANDS),
        key=lambda name: (name.count("/"), name),
    )
    asked: list[AskedCall] = []
    for name in listed[:1]:
        with _readable(files[name]):
            asked += asked_of_commands(read_json(files[name].read_text()))
    found = calls_of(find_meter(), asked)
    linking = calls_of(find_meter(), (*_cmake_links(folder, files), *_ninja_links(files)))
    linked = [call for call in linking if call.is_compiler and call.line.links]
    read = (*listed[:1], *(["the build system's link commands"] if linked else []))
    return TreePlace(folder), (*found, *linked), tuple(read)


def _cmake_links(folder: Path, files: dict[str, Path]) -> Iterator[AskedCall]:
    """Commands that CMake keeps for its Makefiles."""
    for name, path in files.items():
        at, marker, rest = name.rpartition("CMakeFiles/")
        if marker and rest.endswith(".dir/link.txt"):
            for line in path.read_text(errors="replace").splitlines():
                yield from _linking(line, str(folder / at))


def _ninja_links(files: dict[str, Path]) -> Iterator[AskedCall]:
    """Edges that link, as CMake and Meson write them."""
    for name, path in files.items():
        if PurePosixPath(name).name != "build.ninja":
            continue
        text = path.read_text(errors="replace").replace("$\n", " ")
        edge: re.Match[str] | None = None
        values: dict[str, str] = {}
        for line in [*text.splitlines(), "end"]:
            if line.startswith(" "):
                key, _, value = line.strip().partition(" = ")
                values[key] = value
                continue
            if edge is not None and "STATIC" not in edge[2]:
                first, last = (
                    " ".join(values.get(key, "") for key in keys)
                    for keys in (_NINJA_FLAGS, _NINJA_LAST)
                )
                output = edge[1].split("|")[0].strip()
                yield from _linking(f"cc {first} {edge[3]} -o {output} {last}", str(path.parent))
            edge, values = _NINJA_LINK.match(line), {}


def _linking(line: str, cwd: str) -> Iterator[AskedCall]:
    try:
        words = shlex.split(line)
    except ValueError:
        return
    call = asked_call(words, os.path.normpath(cwd)) if words else None
    if call is not None:
        yield call


def sources_of(seen: BuildEvidence, beside: FolderEvidence) -> tuple[Dated, ...]:
    """The sources of a program's units that are there, under the names that the units give."""
    by_name: dict[str, list[Path]] = {}
    for path in beside.files.values():
        by_name.setdefault(path.name, []).append(path)
    found = []
    for unit in own_units(seen):
        path = Path(unit.source)
        named = by_name.get(path.name, [])
        if not (path.is_absolute() and path.is_file()) and len(named) == 1:
            path = named[0]
        if path.is_file():
            found.append(Dated(unit.source, path.stat().st_mtime_ns))
    return tuple(found)


def dated(path: Path) -> Dated:
    """The file, and when it was written."""
    return Dated(str(path), path.stat().st_mtime_ns)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Evidence that was cut off or written by something else is no evidence."""
    try:
        yield
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged: {error}; move it away to go on without") from None


def _dry_run(folder: Path, processes: Processes) -> tuple[TreePlace, tuple[Call, ...]]:
    """Ask make what it would do, in a copy: even a dry run may make included files again."""
    with tempfile.TemporaryDirectory(prefix="ensign-doctor-") as scratch:
        copy, log = Path(scratch) / "tree", Path(scratch) / "log"
        copy_tree(folder, copy, exclude=(".git",))
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": scratch}
        argv = ("make", "-n", "-B", "-w")
        processes.run(ProcessRequest(argv, env, copy, log=log, deadline_ns=_DEADLINE_NS))
        # What was built in the folder says the folder's own path.
        own = str(folder.resolve())
        text = read_tail(log, _LONGEST_DRY_RUN_BYTES).replace(str(copy), own)
        return TreePlace(folder, own), calls_of(find_meter(), asked_of_dry_run(text, own))
