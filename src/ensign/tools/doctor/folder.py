"""Evidence in a folder beside what was built: calls, links, maps, profiles, sources.

A Makefile may run programs while it is read, so that this happens only where somebody asks for it.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ensign.builders.record_file import RECORD_FILE, BuildRecord, read_record
from ensign.builders.recorder import CALLS, COMPILE_COMMANDS, read_calls
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement import Bind
from ensign.host.confinement_probe import probe_confinement
from ensign.host.disk_watch import DiskLimit, used_bytes
from ensign.host.files import copy_tree, file_sha256, tree_entries
from ensign.host.foreign_files import hand_over
from ensign.host.processes import Processes, ProcessLimits, ProcessRequest, read_tail
from ensign.host.regular_file import read_json, read_regular
from ensign.host.search_path import apart_from
from ensign.host.temporary import temporary_folder
from ensign.meter.client import find_meter
from ensign.meter.questions import calls_of
from ensign.model.calls import AskedCall, Call
from ensign.model.errors import InputError
from ensign.model.finding_kinds.proof import RECORD_PARTIAL, RECORD_STALE
from ensign.model.findings import Finding
from ensign.model.quoting import shortened
from ensign.proof.comparison import grouped
from ensign.proof.dry_run import asked_call, asked_of_commands, asked_of_dry_run
from ensign.proof.evidence import BuildEvidence, own_units, some
from ensign.proof.facts import FileOrigins, LinkFacts
from ensign.proof.link import TreePlace
from ensign.proof.origins import OriginEvidence, trace
from ensign.proof.rules.profile import Dated

_MOST_FOLDERS_UP = 8
_LONGEST_COMMAND = 60
_CHANGING = ("objcopy", "strip")


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record, its file, and where the paths in it are now."""

    file: Path
    record: BuildRecord

    @property
    def place(self) -> TreePlace:
        """The tree may have been moved or copied since."""
        return TreePlace(self.file.absolute().parent, self.record.header.folder)

    @property
    def said(self) -> str:
        """For people: which record this is, and what may be wrong with it."""
        header = self.record.header
        command = shortened(shlex.join(header.command), _LONGEST_COMMAND)
        text = f"{self.file.name} ({header.calls} calls of {command}"
        text += f", {header.kept} of them kept from earlier builds" if header.kept else ""
        text += f"; it failed with status {header.exit}" if header.exit else ""
        moved = str(self.place.tree) != header.folder
        return f"{text}; recorded in {header.folder})" if moved else f"{text})"


def find_record(folder: Path, named: Path | None = None) -> FoundRecord | None:
    """The named record, or the one in the folder or above it, of the same owner. InputError."""
    if named is not None:
        return FoundRecord(named, read_record(named))
    folder = folder.absolute()
    owner = folder.stat().st_uid
    for path in (folder, *folder.parents)[:_MOST_FOLDERS_UP]:
        file = path / RECORD_FILE
        if file.is_file() and file.lstat().st_uid == owner:
            return FoundRecord(file, read_record(file))
    return None


@dataclass(frozen=True, slots=True)
class Standing:
    """Relation of a file to a record: the call that linked it; else why it is not known."""

    link: Call | None = None
    unknown: str = ""
    stale: bool = False


def standing(record: BuildRecord, place: TreePlace, path: Path) -> Standing:
    """Standing by the bytes of the file, or by its name where no call wrote these bytes."""
    digest = file_sha256(path)
    made = _maker(record.calls, digest)
    if made is not None:
        if made.has_linked or made.tool == "ld" or (made.is_rust and made.line.links):
            return Standing(made)
        return Standing(unknown="the recorded call that wrote it did not link it")
    at = {
        place.find(output.path, "/").resolve() for call in record.calls for output in call.outputs
    }
    if path.resolve() in at:
        why = "it was changed after the recorded build wrote it"
        return Standing(unknown=why, stale=True)
    return Standing(unknown="no recorded call linked it")


def _maker(calls: Sequence[Call], digest: str) -> Call | None:
    """The call that wrote these bytes; of a stripped file, the link before that."""
    for _ in range(len(_CHANGING) + 1):
        makers = [call for call in calls if digest in (output.sha256 for output in call.outputs)]
        if not makers:
            return None
        call = makers[-1]
        if call.tool not in _CHANGING or not call.inputs:
            return call
        digest = call.inputs[0].sha256
    return None


def origins_of(record: FoundRecord, path: Path, link: LinkFacts) -> tuple[FileOrigins, ...]:
    """From which recorded calls the objects of a file come."""
    calls = record.record.calls
    began = min((call.started_unix_ns for call in calls), default=0)
    evidence = OriginEvidence(record.place, calls, (), began)
    name = os.path.relpath(path.absolute(), record.place.tree)
    return trace((name,), evidence, link)


def record_findings(seen: BuildEvidence, record: FoundRecord) -> Iterator[Finding]:
    """That the record is not of this file, or of a part of it."""
    stand = standing(record.record, record.place, Path(seen.proof.binary.path))
    if stand.stale:
        yield seen.finding(
            RECORD_STALE, f"{stand.unknown}, so that the record says nothing of it; record it again"
        )
    for origin in seen.proof.origins:
        if origin.strays:
            total = origin.objects + len(origin.strays)
            names = some([stray.name for stray in origin.strays])
            yield seen.finding(
                RECORD_PARTIAL,
                f"{len(origin.strays)} of the {total} objects in it were compiled by no recorded "
                f"call: {names}; a whole build, recorded, would show how",
            )


_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_BY_CMAKE = b"CMAKE generated file"
_DRY_RUN = ("a dry run of make",)
_UNASKED = "make was not asked what it would do; --dry-run asks, and runs parts of the Makefile"
_MOST_ENTRIES = 500_000
LARGEST_FILE_BYTES = 4 << 30
_LARGEST_TEXT_BYTES = 64 << 20
_PROFILES = (".gcda", ".profdata", ".afdo", ".profraw")
_NINJA_LINK = re.compile(r"^build ([^:]+): (\S*LINKER\S*) ([^|]*)", re.IGNORECASE)
_NINJA_FLAGS, _NINJA_LAST = ("FLAGS", "ARGS", "LINK_FLAGS"), ("LINK_ARGS", "LINK_LIBRARIES")
# What build systems compile to learn of the compiler is nobody's program.
_PROBES = re.compile(
    r"(?:^|/)(?:CMakeFiles/[\d.]+[^/]*/|CMakeFiles/(?:CMakeTmp|CMakeScratch)/|meson-private/"
    r"|conftest)"
)
_DEADLINE_NS = 60 * 10**9
_LONGEST_BYTES = 50_000_000
_MOST_WRITTEN_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class FolderEvidence:
    """Evidence of a folder: calls, whose paths `place` finds, maps, profiles, and all files.

    `sources` names what was read, for people. `supposed`: the calls are what a dry run of make
    prints, which may differ from what was done. `unasked` says what else could be asked. `record`
    is where the calls are from, if `ensign record` wrote them.
    """

    place: TreePlace
    files: dict[str, Path]
    calls: tuple[Call, ...] = ()
    maps: tuple[Path, ...] = ()
    sources: tuple[str, ...] = ()
    profiles: tuple[Dated, ...] = field(default=())
    supposed: bool = False
    unasked: str = ""
    record: FoundRecord | None = None


def read_beside(
    folder: Path, processes: Processes, *, dry_run: bool = False, record: Path | None = None
) -> FolderEvidence:
    """Look at a folder, and run nothing of it unless `dry_run` asks make what it would do.

    `record` names a file of `ensign record`, which is looked for otherwise. InputError where
    evidence in the folder is damaged, or where there is too much to look at.
    """
    files = {name: path for name, path in _regular_files(folder) if not _PROBES.search(name)}
    maps = tuple(path for name, path in files.items() if name.endswith(".map"))
    profiles = tuple(dated(path) for name, path in files.items() if name.endswith(_PROFILES))
    texts = [f"linker map {path.name}" for path in maps]
    texts += [f"profile {Path(profile.path).name}" for profile in profiles]
    known = _known_calls(files)
    found_record = find_record(folder, record) if known is None or record else None
    if found_record is not None:
        calls = found_record.record.calls
        return FolderEvidence(
            found_record.place,
            files,
            calls,
            maps,
            (*texts, found_record.said),
            profiles,
            record=found_record,
        )
    if known is None and dry_run and _makefile(files):
        place, calls = dry_run_of(folder, processes)
        if any(call.is_compiler and call.line.sources for call in calls):
            sources = (*texts, *_DRY_RUN)
            return FolderEvidence(place, files, calls, maps, sources, profiles, supposed=True)
    calls, read = known or _listed_calls(folder, files)
    ask = known is None and not calls and not dry_run and _makefile(files)
    sources = (*texts, *read)
    return FolderEvidence(
        TreePlace(folder), files, calls, maps, sources, profiles, unasked=_UNASKED if ask else ""
    )


def _regular_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for count, (name, path) in enumerate(tree_entries(folder, (".git",))):
        if count >= _MOST_ENTRIES:
            raise InputError(
                f"'{folder}' holds more than {_MOST_ENTRIES:,} files; "
                "name the folder in which the program was built"
            )
        with suppress(OSError):  # what was removed meanwhile
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_FILE_BYTES:
                yield name, path


def _makefile(files: dict[str, Path]) -> bool:
    """True if there is one that was written by hand."""
    path = next((files[name] for name in _MAKEFILES if name in files), None)
    return path is not None and _BY_CMAKE not in read_regular(path, 200)


def _known_calls(files: dict[str, Path]) -> tuple[tuple[Call, ...], tuple[str, ...]] | None:
    """The calls that ensign recorded, and where they stand."""
    if CALLS not in files:
        return None
    with _readable(files[CALLS]):
        return read_calls(files[CALLS]), (CALLS,)


def _listed_calls(folder: Path, files: dict[str, Path]) -> tuple[tuple[Call, ...], tuple[str, ...]]:
    """The calls that a build system lists, and where they stand."""
    listed = sorted(
        (name for name in files if PurePosixPath(name).name == COMPILE_COMMANDS),
        key=lambda name: (name.count("/"), name),
    )
    asked: list[AskedCall] = []
    for name in listed[:1]:
        with _readable(files[name]):
            asked += asked_of_commands(read_json(_text(files[name])))
    calls = calls_of(find_meter(), asked)
    linking = calls_of(find_meter(), (*_cmake_links(folder, files), *_ninja_links(files)))
    linked = [call for call in linking if call.is_compiler and call.line.links]
    read = (*listed[:1], *(["the build system's link commands"] if linked else []))
    return (*calls, *linked), tuple(read)


def of_commands(path: Path) -> FolderEvidence:
    """A list of compile commands alone, as build systems write them. InputError."""
    with _readable(path):
        asked = asked_of_commands(read_json(_text(path)))
        calls = calls_of(find_meter(), asked)
    if not any(call.line.sources for call in calls):
        raise InputError(f"'{path}' lists no command that compiles C or C++")
    return FolderEvidence(TreePlace(path.parent), {}, calls, sources=(path.name,))


def _text(path: Path) -> str:
    return read_regular(path, _LARGEST_TEXT_BYTES).decode(errors="replace")


def _cmake_links(folder: Path, files: dict[str, Path]) -> Iterator[AskedCall]:
    """Commands that CMake keeps for its Makefiles."""
    for name, path in files.items():
        at, marker, rest = name.rpartition("CMakeFiles/")
        if marker and rest.endswith(".dir/link.txt"):
            for line in _text(path).splitlines():
                yield from _linking(line, str(folder / at))


def _ninja_links(files: dict[str, Path]) -> Iterator[AskedCall]:
    """Edges that link, as CMake and Meson write them."""
    for name, path in files.items():
        if PurePosixPath(name).name != "build.ninja":
            continue
        text = _text(path).replace("$\n", " ")
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
    by_name = grouped((path.name, path) for path in beside.files.values())
    sources = []
    for unit in own_units(seen):
        path = Path(unit.source)
        named = by_name.get(path.name, [])
        if not (path.is_absolute() and path.is_file()) and len(named) == 1:
            path = named[0]
        if path.is_file():
            sources.append(Dated(unit.source, path.stat().st_mtime_ns))
    return tuple(sources)


def dated(path: Path) -> Dated:
    """The file, and when it was written."""
    return Dated(str(path), path.stat().st_mtime_ns)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Evidence that was cut off or written by something else is no evidence."""
    try:
        yield
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError, OSError) as error:
        raise InputError(f"{file} is damaged: {error}; move it away to go on without") from None


def dry_run_of(folder: Path, processes: Processes) -> tuple[TreePlace, tuple[Call, ...]]:
    """The calls that `make -n` prints; even a dry run may make included files again."""
    with temporary_folder("doctor") as scratch:
        copy, log = scratch / "tree", scratch / "log"
        copy_tree(folder, copy, exclude=(".git",))
        home = scratch / "home"
        home.mkdir()
        path = apart_from(os.environ.get("PATH", os.defpath), (folder,))
        env = {"PATH": path, "LC_ALL": "C", "HOME": str(home), "TMPDIR": str(home)}
        confinement = probe_confinement(processes, os.environ, find_meter())
        binds = tuple(Bind(str(bound), str(bound), writable=True) for bound in (copy, home))
        shown = ConfinementRequest(
            path, os.environ.get("HOME", ""), binds=binds, read=(find_meter(),), cwd=str(copy)
        )
        if confinement.user is not None:
            hand_over((copy, home), confinement.user)
            scratch.chmod(0o711)
        argv = (*confinement.argv(shown), "make", "-n", "-B", "-w")
        disk = DiskLimit((scratch,), _MOST_WRITTEN_BYTES, used_bytes((scratch,)))
        limits = ProcessLimits(file_bytes=_MOST_WRITTEN_BYTES, tree_processes=1000)
        processes.run(
            ProcessRequest(
                argv, env, copy, log=log, deadline_ns=_DEADLINE_NS, disk=disk, limits=limits
            )
        )
        # What was built in the folder says the folder's own path.
        own = str(folder.resolve())
        text = read_tail(log, _LONGEST_BYTES).replace(str(copy), own)
        return TreePlace(folder, own), calls_of(find_meter(), asked_of_dry_run(text, own))
