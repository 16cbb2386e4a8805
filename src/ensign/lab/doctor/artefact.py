"""`ensign doctor PATH`: what a binary, or a folder in which something was built, shows."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ensign.builders.driver_line import is_compiler, links, output_of
from ensign.builders.proof.archives import is_archive
from ensign.builders.proof.dry_run import calls_of_commands, calls_of_dry_run
from ensign.builders.proof.elf import read_binary
from ensign.builders.proof.facts import Binary, LinkFacts, Objects, Proof
from ensign.builders.proof.link import Link, Place, read_link
from ensign.builders.proof.read import link_of, read_tree, unindexed_archive
from ensign.builders.proof.rules import describe, judge
from ensign.builders.proof.rules_link import archiver_findings
from ensign.builders.proof.seen import Seen
from ensign.builders.recorder import CALLS, COMPILE_COMMANDS, read_calls
from ensign.host.files import copy_tree, tree_entries
from ensign.host.processes import Processes, ProcessRequest, read_tail
from ensign.model.calls import Call
from ensign.model.checkup import ArtefactCheckup, Examined
from ensign.model.errors import InputError

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_DEADLINE_NS = 60 * 10**9
_LONGEST_DRY_RUN_BYTES = 50_000_000
_NO_LINK = LinkFacts(unknown="no command that linked it is known")


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What there is beside a folder's artefacts: calls, whose paths `place` finds, and maps."""

    place: Place
    calls: tuple[Call, ...]
    maps: tuple[Path, ...]
    sources: tuple[str, ...]
    objects: Objects


def examine_path(path: Path, processes: Processes) -> ArtefactCheckup:
    """Look at a program, a library, an archive or a folder. InputError if it is none of these."""
    if not path.exists():
        raise InputError(f"there is no '{path}'; name a program, a folder or a study file")
    try:
        return _folder(path, processes) if path.is_dir() else _file(path)
    except PermissionError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error


def _file(path: Path) -> ArtefactCheckup:
    if is_archive(path):
        archive = unindexed_archive(path, path.name)
        seen = Seen(path.name, Proof(Binary(str(path)), unindexed=(archive,) if archive else ()))
        evidence = ("its index leaves out LTO objects",) if archive else ("its index is complete",)
        examined = (Examined(str(path), evidence),)
        return ArtefactCheckup(str(path), examined, (), tuple(archiver_findings(seen)))
    binary = read_binary(path)
    if binary is None:
        raise InputError(
            f"'{path}' is no ELF program, library or archive; name one, a folder or a study file"
        )
    seen = Seen(path.name, Proof(binary, link=_NO_LINK))
    return ArtefactCheckup(str(path), (Examined(str(path), describe(seen)),), (), judge(seen))


def _folder(folder: Path, processes: Processes) -> ArtefactCheckup:
    objects, unindexed = read_tree(folder)
    evidence = _evidence(folder.absolute(), processes, objects)
    seen = tuple(_artefacts(folder.absolute(), evidence, processes))
    if not seen and not objects.count and not unindexed:
        raise InputError(
            f"nothing was built in '{folder}': it has no ELF program or library, no object, "
            "archive, or Makefile that links one"
        )
    archives = Seen(folder.name, Proof(Binary(str(folder)), unindexed=unindexed))
    findings = [*archiver_findings(archives), *(f for each in seen for f in judge(each))]
    examined = tuple(Examined(each.subject, describe(each)) for each in seen)
    return ArtefactCheckup(str(folder), examined, evidence.sources, tuple(findings))


def _artefacts(folder: Path, evidence: _Evidence, processes: Processes) -> Iterator[Seen]:
    """What was built; where nothing is, what would be linked."""
    built = 0
    for name, path in tree_entries(folder):
        if path.is_symlink() or not path.is_file() or name.endswith((".o", ".a")):
            continue
        binary = read_binary(path)
        if binary is not None:
            built += 1
            yield _seen(name, path, binary, evidence, processes)
    if not built:
        for call in evidence.calls:
            if is_compiler(call) and links(call.ran):
                path = evidence.place.find(output_of(call.ran) or "a.out", call.cwd)
                yield _seen(path.name, path, Binary(str(path)), evidence, processes)


def _seen(name: str, path: Path, binary: Binary, evidence: _Evidence, processes: Processes) -> Seen:
    call = link_of(evidence.calls, evidence.place, path)
    link = _NO_LINK
    if call is not None:
        map_text = _map_of(path, evidence.maps)
        words = Link(call.program, call.ran, call.cwd)
        link = read_link(words, evidence.place, path, map_text, processes)
    calls = evidence.calls if call is not None else ()
    return Seen(name, Proof(binary, evidence.objects, link=link), calls=calls)


def _map_of(artefact: Path, maps: Sequence[Path]) -> str | None:
    """The map named after the artefact, or the only one."""
    named = [path for path in maps if path.stem in (artefact.name, artefact.stem)]
    chosen = named or (maps if len(maps) == 1 else ())
    return chosen[0].read_text(errors="replace") if chosen else None


def _evidence(folder: Path, processes: Processes, objects: Objects) -> _Evidence:
    names = {name: path for name, path in tree_entries(folder) if path.is_file()}
    maps = tuple(path for name, path in names.items() if name.endswith(".map"))
    sources = tuple(f"linker map {path.name}" for path in maps)
    place = Place(folder)
    if CALLS in names:
        with _readable(names[CALLS]):
            calls = read_calls(names[CALLS])
        return _Evidence(place, calls, maps, (*sources, CALLS), objects)
    if any(name in names for name in _MAKEFILES):
        place, calls = _dry_run(folder, processes)
        return _Evidence(place, calls, maps, (*sources, "a dry run of make"), objects)
    if COMPILE_COMMANDS in names:
        with _readable(names[COMPILE_COMMANDS]):
            entries = json.loads(names[COMPILE_COMMANDS].read_text())
            calls = calls_of_commands(entries)
        return _Evidence(place, calls, maps, (*sources, COMPILE_COMMANDS), objects)
    return _Evidence(place, (), maps, sources, objects)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Evidence that was cut off or written by something else is no evidence."""
    try:
        yield
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged: {error}; move it away to go on without") from None


def _dry_run(folder: Path, processes: Processes) -> tuple[Place, tuple[Call, ...]]:
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
        return Place(folder, own), calls_of_dry_run(text, own)
