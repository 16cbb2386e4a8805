"""`ensign doctor PATH`: what a binary, or a folder in which something was built, shows."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.host.processes import Outcome, Processes, ProcessRequest
from ensign.host.regular_file import read_regular
from ensign.host.search_path import is_installed
from ensign.model.calls import Call
from ensign.model.checkup import ArtifactCheckup, Examined
from ensign.model.errors import InputError, InternalError
from ensign.model.findings import Finding
from ensign.model.quoting import quoted, shortened
from ensign.proof.archives import is_archive
from ensign.proof.dry_run import borne_out, contradicted
from ensign.proof.elf import find_debug_file, read_binary, with_debug_file
from ensign.proof.elf_kinds import ElfKind, FileKind, kind_of
from ensign.proof.evidence import BuildEvidence
from ensign.proof.facts import Binary, LinkFacts, Objects, Proof
from ensign.proof.fast_math import links_fast_math
from ensign.proof.identity import read_identity
from ensign.proof.link import TreePlace, read_link
from ensign.proof.loader import is_of_glibc, libraries_of
from ensign.proof.objects import (
    ObjectFacts,
    as_binary,
    members_of,
    objects_below,
    read_object,
)
from ensign.proof.read import (
    BY_RUSTC,
    link_of,
    own_levels,
    read_tree,
    unindexed_archive,
    with_unlinked_archives,
)
from ensign.proof.rules.artifact import code_findings, start_up_findings
from ensign.proof.rules.description import describe
from ensign.proof.rules.judge import judge
from ensign.proof.rules.link import archiver_findings
from ensign.proof.rules.profile import (
    changed_source_findings,
    open_questions,
    profile_file_findings,
)
from ensign.proof.rules.units import object_findings
from ensign.proof.rust_calls import linked_crates
from ensign.proof.unoptimized import Unoptimized, read_unoptimized, together
from ensign.tools.doctor.folder import (
    LARGEST_FILE_BYTES,
    FolderEvidence,
    dated,
    find_record,
    of_commands,
    origins_of,
    read_beside,
    record_findings,
    sources_of,
    standing,
)
from ensign.tools.doctor.unused_archives import archives_of, loader_surroundings, passed_over

_HEAD_BYTES, _LONGEST_NAME = 4096, 100
_ELF = b"\x7fELF"
_OTHERS = {
    b"MZ": "a program of Windows",
    b"\xcf\xfa\xed\xfe": "a program of macOS",
    b"\xca\xfe\xba\xbe": "a class of Java or a program of macOS",
    b"\0asm": "a module of WebAssembly",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "compressed by gzip",
    b"\xfd7zXZ\0": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}
_NAMES = "name a program, a library, a folder or a study file"


def said_of(path: Path) -> str:
    """One line that says what it is, and what to name instead."""
    name = quoted(str(path))
    head = read_regular(path, _HEAD_BYTES)
    if head.startswith(b"#!"):
        return f"{name} is a script, {_run_by(head)}"
    if head.startswith(_ELF):
        return f"{name} {_of_elf(path)}"
    other = next((what for magic, what in _OTHERS.items() if head.startswith(magic)), "")
    if other:
        return f"{name} is {other}, which is not read; {_NAMES}"
    what = "a text" if b"\0" not in head and _is_text(head) else "no ELF file"
    return f"{name} is {what}; {_NAMES}"


def _of_elf(path: Path) -> str:
    kind = kind_of(path)
    if kind.kind is FileKind.CORE:
        of = f" of {quoted(kind.detail)}" if kind.detail else ""
        return f"is a core dump{of}, memory of a program that ended; name that program"
    if kind.kind is FileKind.DEBUG:
        return (
            "holds the debug information of another file and none of its code; name that file, "
            "with which it is read"
        )
    if kind.kind is FileKind.DAMAGED:
        return f"is an ELF file that is cut off or damaged: {kind.detail}"
    return f"is an ELF file of another kind; {_NAMES}"


def _run_by(head: bytes) -> str:
    line = head[2:].partition(b"\n")[0].decode(errors="replace").strip()
    words = line.split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words:
        return f"and names no program that runs it; {_NAMES}"
    program = shortened(words[0], _LONGEST_NAME)
    path = program if "/" in program else shutil.which(program)
    if path is None:
        return f"which {quoted(program)} runs; that is not here"
    return f"which {quoted(path)} runs: ensign doctor {shlex.quote(path)}"


def _is_text(head: bytes) -> bool:
    try:
        head[:-4].decode()
    except UnicodeDecodeError:
        return False
    return True


_LARGEST_MAP_BYTES = 256 << 20
_OF_THE_KERNEL = ("/proc", "/sys", "/dev")
_PARTS = (FileKind.OBJECT, FileKind.MODULE)
_NO_LINK = LinkFacts(unknown="no command that linked it is known")
_PLAIN_MAKE = "as plain make would build it"
_UNKNOWN = "plain make has one, but make may have been told other flags"


def examine_path(
    path: Path, processes: Processes, *, dry_run: bool = False, record: Path | None = None
) -> ArtifactCheckup:
    """Look at a program, a library, an archive or a folder. InputError if it is none of these.

    Nothing of it is run, unless `dry_run` asks make what it would do. What reads bitcode must be
    one of this machine's programs. `record` names a file of `ensign record`; else one is looked
    for.
    """
    return examine_evidence(path, processes, dry_run=dry_run, record=record)[0]


def examine_evidence(
    path: Path, processes: Processes, *, dry_run: bool = False, record: Path | None = None
) -> tuple[ArtifactCheckup, tuple[BuildEvidence, ...]]:
    """As `examine_path`, with the evidence of each program and library that was read."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            _require_disk(path)
            own = InstalledAlone(processes, path)
            beside = read_beside(
                path.absolute(), processes if dry_run else own, dry_run=dry_run, record=record
            )
            return _folder(path, own, beside)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{quoted(str(path))} is a pipe, a device or another special file")
        if not 0 < status.st_size <= LARGEST_FILE_BYTES:
            what = "is larger than any program" if status.st_size else "is empty"
            raise InputError(f"{quoted(str(path))} {what}; name a program, a folder or a study")
        return _file(path, InstalledAlone(processes, path.parent), record)
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.exists():
            raise InputError(f"'{path}' was changed while it was looked at") from error
        raise InputError(
            f"there is no '{path}'; name a program, a folder or a study file"
        ) from None
    except OSError as error:
        where = error.filename or path
        raise InputError(f"cannot read {where}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class InstalledAlone:
    """Runs this machine's programs, and none that what is looked at names or brings."""

    processes: Processes
    folder: Path

    def run(self, request: ProcessRequest) -> Outcome:
        """See `Processes.run`: another program is not found."""
        path = os.environ.get("PATH", os.defpath)
        if is_installed(Path(request.argv[0]), path, (self.folder,)):
            return self.processes.run(request)
        return Outcome(exit=None, signal=None, reason="not-found")

    def interrupt(self) -> None:
        """See `Processes.interrupt`."""
        self.processes.interrupt()


def _require_disk(folder: Path) -> None:
    """InputError for folders of the kernel's own, where reading may do something."""
    for place in _OF_THE_KERNEL:
        if folder.resolve().is_relative_to(place):
            raise InputError(f"nothing is built in '{folder}': it is the kernel's own")


def _file(
    path: Path, processes: Processes, record: Path | None
) -> tuple[ArtifactCheckup, tuple[BuildEvidence, ...]]:
    beside = FolderEvidence(TreePlace(path.parent), {path.name: path})
    if path.suffix == ".json":
        return _commands(path), ()
    kind = kind_of(path)
    if is_archive(path) or path.suffix == ".o" or kind.kind in _PARTS:
        return _parts(path, kind, beside), ()
    binary = read_binary(path) if kind.kind is FileKind.PROGRAM else None
    if binary is None:
        raise InputError(said_of(path))
    binary = _with_units(binary, path)
    recorded = find_record(path.parent, record)
    if recorded is not None:
        calls, notes = recorded.record.calls, (recorded.said,)
        beside = replace(beside, place=recorded.place, calls=calls, record=recorded, sources=notes)
    seen = _seen(path.name, path, binary, Objects(), beside, processes)
    examined = Examined(str(path), describe(seen))
    findings = tuple(_judged(seen, beside))
    return ArtifactCheckup(str(path), (examined,), beside.sources, findings), (seen,)


def _with_units(binary: Binary, path: Path) -> Binary:
    """With units that a file of its own has, as distributions keep them."""
    identity = None if binary.units else read_identity(path)
    file = None if identity is None or identity.has_debug else find_debug_file(path, identity)
    return binary if file is None else with_debug_file(binary, file)


def _parts(path: Path, kind: ElfKind, beside: FolderEvidence) -> ArtifactCheckup:
    """An object, a module of the kernel, or an archive."""
    if is_archive(path):
        archive = unindexed_archive(path, path.name)
        objects = objects_below({path.name: path})
        look: Unoptimized | None = together(content for _, content in members_of(path))
        text = "its index leaves out LTO objects" if archive else "its index is complete"
    else:
        archive, object_facts, look = None, read_object(path.name, path), read_unoptimized(path)
        objects = (object_facts,) if object_facts else ()
        if not objects:
            raise InputError(said_of(path))
        of = f" of Linux {kind.detail}" if kind.detail else ""
        text = f"a kernel module{of}" if kind.kind is FileKind.MODULE else "an object"
    seen = _of_objects(path.name, objects, Objects(), beside)
    bad = (archive,) if archive else ()
    unindexed = BuildEvidence(path.name, Proof(Binary(str(path)), unindexed=bad))
    examined = Examined(str(path), (text, *describe(seen)))
    findings = (
        *archiver_findings(unindexed),
        *code_findings(seen, look),
        *_judged(seen, beside, objects),
    )
    return ArtifactCheckup(str(path), (examined,), (), findings)


def _commands(path: Path) -> ArtifactCheckup:
    beside = of_commands(path)
    seen = _of_objects(path.name, (), Objects(), beside)
    examined = Examined(f"{len(seen.calls)} commands", describe(seen))
    return ArtifactCheckup(str(path), (examined,), beside.sources, tuple(_judged(seen, beside)))


def _folder(
    folder: Path, processes: Processes, beside: FolderEvidence
) -> tuple[ArtifactCheckup, tuple[BuildEvidence, ...]]:
    folder = folder.absolute()
    objects, unindexed = read_tree(folder)
    supposed = tuple(_artifacts(beside, objects, processes))
    built = tuple(
        _borne_out(evidence, beside) if evidence.proof.binary.read else evidence
        for evidence in supposed
    )
    read = objects_below(beside.files)
    if not built and not objects.count and not unindexed and not beside.calls and not read:
        raise InputError(
            f"nothing was built in '{folder}': it has no ELF program or library, no object, "
            f"archive, or list of commands that links one{'; ' if beside.unasked else ''}"
            f"{beside.unasked}"
        )
    offered = (
        archives_of(beside.files) if any(evidence.proof.link.unknown for evidence in built) else {}
    )
    archives = BuildEvidence(folder.name, Proof(Binary(str(folder)), unindexed=unindexed))
    findings = [*archiver_findings(archives)]
    for build_evidence, before in zip(built, supposed, strict=True):
        findings += _judged(build_evidence, beside)
        if offered and build_evidence.proof.link.unknown:
            findings += _passed_over(build_evidence, offered, folder)
        if build_evidence is not before and contradicted(before) is None:
            findings += judge(_of_commands_alone(before))
    examined = [Examined(evidence.subject, describe(evidence)) for evidence in built]
    # What a program does not say of its units, its objects or the commands may.
    linked = not (beside.supposed and read)
    if not all(_is_told(evidence, linked=linked) for evidence in built) or not built:
        parts = _of_objects(folder.name, read, objects, beside)
        parts = _borne_out(parts, beside) if read else parts
        # Commands of a dry run alone were judged with what they link.
        if read or (parts.calls and not (built and beside.supposed)):
            findings += _judged(parts, beside, read)
            examined.append(Examined(f"{len(read)} objects and their commands", describe(parts)))
    checkup = ArtifactCheckup(
        str(folder),
        tuple(examined),
        beside.sources,
        tuple(dict.fromkeys(findings)),
        beside.unasked,
    )
    return checkup, tuple(evidence for evidence in built if evidence.proof.binary.read)


def _is_told(seen: BuildEvidence, *, linked: bool) -> bool:
    """True if a program, or a command that linked it, says of what it was made."""
    link = linked and seen.link is not None
    return bool(seen.proof.binary.units or linked_crates(seen)) or link


def _passed_over(
    seen: BuildEvidence, archives: Mapping[str, frozenset[str]], folder: Path
) -> Iterator[Finding]:
    path = Path(seen.proof.binary.path)
    identity = read_identity(path)
    if identity is not None and is_of_glibc(identity):
        libraries = libraries_of(path, identity, loader_surroundings())
        yield from passed_over(seen.subject, identity, libraries, archives, folder.resolve())


def _borne_out(seen: BuildEvidence, beside: FolderEvidence) -> BuildEvidence:
    """Without the calls of a dry run where the file does not bear them out."""
    if not beside.supposed or borne_out(seen):
        return seen
    other = contradicted(seen)
    why = f"plain make would build something else: {other}" if other else _UNKNOWN
    proof = replace(seen.proof, link=LinkFacts(unknown=f"{_NO_LINK.unknown} ({why})"))
    return replace(seen, proof=proof, calls=())


def _of_commands_alone(seen: BuildEvidence) -> BuildEvidence:
    """Evidence of the commands alone, whatever was built."""
    path = seen.proof.binary.path
    proof = Proof(Binary(path), link=seen.proof.link)
    return replace(seen, subject=f"{seen.subject}, {_PLAIN_MAKE}", proof=proof)


def _of_objects(
    name: str, read: tuple[ObjectFacts, ...], objects: Objects, beside: FolderEvidence
) -> BuildEvidence:
    """Objects and commands that compile, taken together."""
    calls = tuple(call for call in beside.calls if call.line.sources)
    link = LinkFacts(unknown="these are parts, not a program")
    return BuildEvidence(name, Proof(as_binary(name, read), objects, link=link), calls=calls)


def _judged(
    seen: BuildEvidence, beside: FolderEvidence, objects: tuple[ObjectFacts, ...] = ()
) -> Iterator[Finding]:
    there, path = sources_of(seen, beside), Path(seen.proof.binary.path)
    built = dated(path) if path.is_file() else None
    if built is not None and seen.proof.binary.read:
        yield from start_up_findings(seen, links_fast_math=links_fast_math(path))
        yield from code_findings(seen, read_unoptimized(path))
    if beside.record is not None and seen.proof.binary.read:
        yield from record_findings(seen, beside.record)
    yield from judge(seen)
    yield from object_findings(seen, objects)
    yield from profile_file_findings(seen, beside.profiles, there)
    yield from changed_source_findings(seen, built, there)
    yield from open_questions(seen, beside.profiles, there)


def _artifacts(
    beside: FolderEvidence, objects: Objects, processes: Processes
) -> Iterator[BuildEvidence]:
    """Artifacts that were built; where nothing is, those that would be linked."""
    built = 0
    programs = {name: path for name, path in beside.files.items() if not _is_part(name)}
    for name, path in _once(programs):
        binary = read_binary(path)
        if binary is not None:
            built += 1
            yield _seen(name, path, binary, objects, beside, processes)
    if not built:
        for call in beside.calls:
            if call.is_compiler and call.line.links:
                path = beside.place.find(call.line.output or "a.out", call.cwd)
                yield _seen(path.name, path, Binary(str(path)), objects, beside, processes)


def _is_part(name: str) -> bool:
    return name.endswith((".o", ".a"))


def _once(files: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Each file under the shortest of its names: Cargo links what it built to a second place."""
    shortest: dict[tuple[int, int], str] = {}
    for name in sorted(files, key=lambda name: (name.count("/"), name)):
        status = files[name].stat()
        shortest.setdefault((status.st_dev, status.st_ino), name)
    kept = {*shortest.values()}
    return ((name, path) for name, path in files.items() if name in kept)


def _seen(  # all there is to see of one file
    name: str,
    path: Path,
    binary: Binary,
    objects: Objects,
    beside: FolderEvidence,
    processes: Processes,
) -> BuildEvidence:
    recorded = beside.record is not None and binary.read
    if recorded:
        return _of_record(name, binary, objects, beside, processes)
    call = link_of(beside.calls, beside.place, path)
    link = _NO_LINK
    if call is not None:
        map_text = _map_of(path, beside.maps)
        link = read_link(call, beside.place, path, map_text, processes)
    compiling = tuple(each for each in beside.calls if not each.line.links)
    calls = beside.calls if call is not None else compiling if binary.units else ()
    return BuildEvidence(name, Proof(binary, objects, link=link), calls=calls)


def _of_record(
    name: str, binary: Binary, objects: Objects, beside: FolderEvidence, processes: Processes
) -> BuildEvidence:
    """With the recorded calls that made this very file; without any, where none did."""
    record, path = beside.record, Path(binary.path)
    if record is None:
        raise InternalError("no record was read")
    stand = standing(record.record, record.place, path)
    if stand.link is None:
        return BuildEvidence(name, Proof(binary, objects, link=LinkFacts(unknown=stand.unknown)))
    link = _linked(stand.link, path, beside, processes)
    origins = origins_of(record, path, link)
    took = frozenset(digest for origin in origins for digest in origin.outputs)
    levels = own_levels(beside.calls, beside.place)
    proof = Proof(binary, objects, link=link, origins=origins, own_levels=levels)
    return BuildEvidence(name, proof, calls=beside.calls, took=took)


def _linked(call: Call, path: Path, beside: FolderEvidence, processes: Processes) -> LinkFacts:
    if call.is_rust:
        return BY_RUSTC
    link = read_link(call, beside.place, path, _map_of(path, beside.maps), processes)
    return with_unlinked_archives(link, path, call, beside.calls, beside.place)


def _map_of(artifact: Path, maps: Sequence[Path]) -> str | None:
    """The map named after the artifact, or the only one."""
    named = [path for path in maps if path.stem in (artifact.name, artifact.stem)]
    chosen = named or (maps if len(maps) == 1 else ())
    return read_regular(chosen[0], _LARGEST_MAP_BYTES).decode(errors="replace") if chosen else None
