"""Origins of the parts of a program: each object that a link took, back to a compile call.

Followed by content: what a link took must have the hash of what a recorded call wrote, however it
was moved, renamed or put into archives meanwhile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ensign.host.files import file_sha256, tree_entries
from ensign.host.os_errors import is_shortage
from ensign.model.calls import Call, LinkInput
from ensign.proof.archives import contents
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.elf import comments, units_of
from ensign.proof.facts import FileOrigins, LinkFacts, Stray, Unit, UnitKind, Why
from ensign.proof.leftovers import PROGRAM, Leftover, kind_of
from ensign.proof.link import TreePlace

_MACHINES = ("/usr/", "/lib", "/opt/", "/nix/store/", "/gnu/store/", "/home/linuxbrew/")
# Start files and runtimes, which every link takes.
_RUNTIME = re.compile(
    r"/(?:[gMRS]?crt1|grcrt1|rcrt1|crt[in]|crt(?:begin|end)[ST]?|crtfastmath|crtprec\d+)\.o$"
    r"|/libgcc(?:_eh|_s)?\.(?:a|so)$|/lib(?:c|pthread)_nonshared\.a$"
    r"|/(?:lib)?clang_rt\.(?:builtins|crtbegin|crtend)[^/]*\.[ao]$"
)
_RUST = re.compile(r"/rustlib/|\.rlib$")
_CHANGING = ("objcopy", "strip")
_CLOCKS_APART_NS = 10**9
_SOME_SOURCES = 3


@dataclass(frozen=True, slots=True)
class OriginEvidence:
    """Records that origins are told from.

    `calls` are those of all stages, oldest first; `before` is what lay in the tree when the first
    one began, at `began_unix_ns`. `scratch` is a further folder of the build's own, as it saw it.
    `recorded` is False where no calls are recorded at all.
    """

    place: TreePlace
    calls: Sequence[Call]
    before: Sequence[Leftover]
    began_unix_ns: int
    scratch: str = ""
    recorded: bool = True


def is_runtime(path: str) -> bool:
    """True if it is a start file, or a runtime of the compiler, by its path."""
    return _RUNTIME.search(path) is not None


def trace(
    names: Iterable[str], evidence: OriginEvidence, link: LinkFacts
) -> tuple[FileOrigins, ...]:
    """The origins of files of the tree, in ELF, by their relative names; `link` made the first."""
    tracer = _Tracer(evidence, link)
    return tuple(tracer.file(name) for name in names)


def programs_below(folder: Path, artifact: str, tools: Collection[str]) -> Iterator[str]:
    """Programs and libraries that were taken out of a tree, the artifact first; without tools."""
    yield artifact
    for name, path in tree_entries(folder):
        plain = path.is_file() and not path.is_symlink()
        if plain and name not in (*tools, artifact) and kind_of(path) == PROGRAM:
            yield name


@dataclass
class _FoundOrigin:
    objects: set[str] = field(default_factory=set)
    compiled: dict[str, dict[str, None]] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)
    strays: dict[str, Stray] = field(default_factory=dict)
    machine: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


class _Tracer:
    def __init__(self, evidence: OriginEvidence, link: LinkFacts) -> None:
        self._evidence = evidence
        self._used = {path: frozenset(members) for path, members in link.used}
        self._made: dict[str, tuple[Call, str]] = {}
        for call in evidence.calls:
            if call.exit == 0 and call.tool != "ar":
                for output in call.outputs:
                    self._made[output.sha256] = (call, output.path)
        self._before: dict[str, str] = {}
        for leftover in evidence.before:
            self._before.setdefault(leftover.sha256, leftover.path)
            for member, digest in leftover.members:
                self._before.setdefault(digest, f"{leftover.path}({member})")

    def file(self, name: str) -> FileOrigins:
        path = self._evidence.place.tree / name
        digest = file_sha256(path)
        origin = _FoundOrigin()
        made = self._made.get(digest)
        if made is None and (digest in self._before or self._older(path)):
            was = self._before.get(digest, name)
            return FileOrigins(name, strays=(Stray(name, Why.BEFORE, was, *_read(path, "")),))
        if not self._evidence.recorded:
            return FileOrigins(name, unknown="no calls were recorded")
        call = made[0] if made is not None else self._by_name(path.name)
        if call is None:
            return FileOrigins(name, unknown="no recorded call linked it")
        self._call(call, "" if made is None else made[1], origin)
        compiled = tuple(
            (program, tuple(names)[:_SOME_SOURCES]) for program, names in origin.compiled.items()
        )
        return FileOrigins(
            path=name,
            objects=len(origin.objects),
            compiled=compiled,
            strays=tuple(origin.strays.values()),
            machine=tuple(origin.machine),
            outputs=tuple(origin.outputs),
        )

    def _by_name(self, name: str) -> Call | None:
        """The last call that linked a file of that name, which was changed afterwards."""
        last = None
        for call in self._evidence.calls:
            driver = call.is_compiler or call.is_rust
            linked = call.tool == "ld" or (driver and call.line.links)
            if call.exit == 0 and linked:
                named = call.line.output or "a.out"
                last = call if PurePosixPath(named).name == name else last
        return last

    def _call(self, call: Call, output: str, origin: _FoundOrigin) -> None:
        """Adds what a call put into its output."""
        if call.is_compiler or call.is_rust:
            self._compiled(call, origin)
        inputs: Sequence[LinkInput] = call.inputs
        if call.tool in _CHANGING:
            own = [link_input for link_input in inputs if link_input.path == output]
            inputs = own or inputs[:1]
            before = self._made.get(inputs[0].sha256) if inputs else None
            if before is not None and before[0].has_linked:
                # What is stripped after its link is no object of its own.
                self._call(*before, origin)
                return
        # Last, since an object may be in a library and in the program, which it is counted for.
        for each in sorted(inputs, key=lambda link_input: link_input.kind == "shared"):
            self._input(each, origin)

    def _compiled(self, call: Call, origin: _FoundOrigin) -> None:
        names = [name for name in call.line.sources if not name.endswith((".s", ".S"))]
        whole = not call.line.links
        if names or (whole and not call.line.sources):
            known = origin.compiled.setdefault(call.program, {})
            known.update(dict.fromkeys(names or (call.line.output or "standard input",)))
            origin.outputs.update(dict.fromkeys(output.sha256 for output in call.outputs))
        if names and not whole:
            origin.objects.update(f"{call.cwd}/{name}" for name in names)

    def _input(self, link_input: LinkInput, origin: _FoundOrigin) -> None:
        if link_input.kind == "shared":
            if self._inside(link_input.path):
                # The library has flags of its own to be judged, where it is loaded.
                of_program = dict(origin.outputs)
                self._content(link_input.sha256, link_input.path, "", origin)
                origin.outputs = of_program
        elif link_input.kind == "object":
            self._content(link_input.sha256, link_input.path, "", origin)
        elif link_input.sha256 in self._made and self._made[link_input.sha256][0].is_rust:
            # A crate is an archive that rustc wrote as a whole.
            self._content(link_input.sha256, link_input.path, "", origin)
        elif link_input.sha256 not in origin.seen:
            origin.seen.add(link_input.sha256)
            used = self._used.get(str(self._evidence.place.find(link_input.path, "/")))
            for member, digest in link_input.members:
                if used is None or member in used:
                    self._content(digest, link_input.path, member, origin)

    def _content(self, digest: str, path: str, member: str, origin: _FoundOrigin) -> None:
        if digest in origin.seen:
            return
        origin.seen.add(digest)
        made = self._made.get(digest)
        name = self._name(path, member)
        if made is not None:
            origin.objects.add(digest)
            self._call(*made, origin)
            if made[0].tool == "as":
                self._assembled(path, member, name, origin)
        elif self._of_machine(path):
            if not _RUNTIME.search(path):
                origin.machine[path] = None
        else:
            origin.strays[name] = self._stray(digest, path, member, name)

    def _assembled(self, path: str, member: str, name: str, origin: _FoundOrigin) -> None:
        """An assembler was called by hand, or by a compiler that is not recorded."""
        units, problems = _read(self._evidence.place.find(path, "/"), member)
        if problems or any(unit.kind is not UnitKind.ASSEMBLER for unit in units):
            origin.strays[name] = Stray(name, Why.UNRECORDED, "", units, problems)

    def _stray(self, digest: str, path: str, member: str, name: str) -> Stray:
        was = self._before.get(digest)
        here = self._evidence.place.find(path, "/")
        read = _read(here, member)
        if was is not None:
            return Stray(name, Why.BEFORE, was, *read)
        if not self._inside(path):
            return Stray(name, Why.OUTSIDE, "", *read)
        if not member and self._older(here):
            return Stray(name, Why.BEFORE, name, *read)
        return Stray(name, Why.UNRECORDED, "", *read)

    def _older(self, path: Path) -> bool:
        """True if a file was written before the build began, and only moved or unpacked by it."""
        try:
            return path.stat().st_mtime_ns < self._evidence.began_unix_ns - _CLOCKS_APART_NS
        except OSError as error:
            if is_shortage(error):
                raise
            return False

    def _inside(self, path: str) -> bool:
        own = (self._evidence.place.seen_as, self._evidence.scratch)
        return any(folder and path.startswith(folder + "/") for folder in own)

    def _of_machine(self, path: str) -> bool:
        return not self._inside(path) and (
            path.startswith(_MACHINES) or _RUST.search(path) is not None
        )

    def _name(self, path: str, member: str) -> str:
        root = self._evidence.place.seen_as
        inside = root and path.startswith(root + "/")
        name = os.path.relpath(path, root) if inside else path
        return f"{name}({member})" if member else name


def _read(path: Path, member: str) -> tuple[tuple[Unit, ...], tuple[str, ...]]:
    """Units and compilers of an object that is still there; nothing where it cannot be read."""
    try:
        for data in _data(path, member):
            with elf_of(data) as elf:
                return tuple(units_of(data)), comments(elf)
    except DamagedFile:
        pass
    return (), ()


def _data(path: Path, member: str) -> Iterator[Path | bytes]:
    if not member:
        yield path
        return
    for name, content in contents(path):
        if name == member:
            yield content
