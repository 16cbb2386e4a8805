"""Reading the files of a link line, and what the link made of them.

What LTO generates shows no members: it has inlined them, and the linker's map has its own objects.
GNU ld goes through the inputs once and takes of an archive what is needed so far (ld(1), on
archives and `--start-group`). lld and mold remember what archives offer, and take a member when
something needs it, before or after; of an archive and a shared library the first one gives.
A short link is done once more for the map alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path, PurePosixPath

from elftools.elf.sections import SymbolTableSection

from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.host.processes import Processes
from ensign.host.regular_file import read_regular
from ensign.model.calls import Call, LinkWord, is_shared
from ensign.proof.archives import (
    LtoSymbols,
    Member,
    UnreadError,
    bitcode_symbols,
    intermediate,
    is_archive,
    read_archive,
    symbols_of,
)
from ensign.proof.bounded_elf import DamagedFile, damage_told, elf_of
from ensign.proof.elf import exported
from ensign.proof.facts import LinkFacts, OrderFact
from ensign.proof.flags import lto_of
from ensign.proof.link_line import (
    LineInput,
    Used,
    files_in_map,
    order_facts,
    used_by_map,
    used_by_symbols,
)

_IN_SCRIPT = re.compile(r"/\S+\.so[.\d]*")
_LONGEST_SCRIPT_BYTES = 10_000
_SYSTEM = ("/usr/lib/{machine}", "/lib/{machine}", "/usr/lib64", "/lib64", "/usr/lib", "/lib")
_START = frozenset({"main"})  # needed by the C library's start file
_REMEMBERING = ("lld", "mold")
_LONGEST_MAP_BYTES = 2**30
_LONGEST_NS = 20 * 10**9
MAP, _OUTPUT = "link.map", "relinked"


@dataclass(frozen=True, slots=True)
class TreePlace:
    """Place of a build's paths: what the build saw as `seen_as` is `tree` here."""

    tree: Path
    seen_as: str = ""

    def find(self, name: str, cwd: str) -> Path:
        """The file that the build called `name` in its folder `cwd`."""
        path = os.path.normpath(str(PurePosixPath(cwd) / name))
        if self.seen_as and (path == self.seen_as or path.startswith(self.seen_as + "/")):
            return self.tree / path[len(self.seen_as) :].lstrip("/")
        return Path(path)


def command_for_map(call: Call | None, folder: str) -> tuple[str, ...]:
    """The command that writes a map of that link into `folder`; empty where it is not worth it.

    A link with LTO generates all code again and its map shows no archive members, so it is left
    alone, and so is one without archives, or one that took long.
    """
    if call is None or call.wall_ns > _LONGEST_NS or lto_of(call.ran):
        return ()
    if not any(word.is_library for word in call.line.inputs):
        return ()
    words = (*call.words_without_output(), "-o", f"{folder}/{_OUTPUT}")
    return ("env", "-C", call.cwd, call.program, *words, f"-Wl,-Map={folder}/{MAP}")


def read_map(folder: Path) -> str | None:
    """The map that the command wrote; None if there is none."""
    try:
        return read_foreign(folder / MAP, _LONGEST_MAP_BYTES).decode(errors="replace")
    except HostileFileError:
        return None


def read_link(
    link: Call, place: TreePlace, artifact: Path, map_text: str | None, processes: Processes
) -> LinkFacts:
    """Judge the order of a link by a map, or by the symbols that the artifact has.

    With LTO neither shows what was taken, so it is told from the symbols of the inputs.
    """
    inputs = tuple(_input(word, link, place) for word in link.line.inputs)
    if not any(argument.kind == "archive" for argument in inputs):
        return LinkFacts(order_facts(inputs, {}), by="the link line")
    if lto_of(link.ran[1:]) or any(argument.language for argument in inputs):
        return _lto_link(link, inputs, processes)
    if map_text is not None:
        by_map = used_by_map(map_text)
        files = frozenset(str(place.find(name, link.cwd)) for name in files_in_map(map_text))
        used = {
            argument.path: _used_in(argument, by_map, files)
            for argument in inputs
            if argument.kind == "archive"
        }
        return _facts(inputs, used, by="the linker's map")
    defined = defined_names(artifact)
    if not defined:
        unknown = "there is neither a linker map nor a symbol table"
        return LinkFacts(order_facts_of_words(inputs), unknown)
    used_here: Used = used_by_symbols(inputs, defined)
    return _facts(inputs, used_here, by="the symbols of the artifact")


def _facts(inputs: Sequence[LineInput], used: Used, by: str) -> LinkFacts:
    taken = tuple((path, tuple(sorted(names))) for path, names in used.items())
    return LinkFacts(order_facts(inputs, used), by=by, used=taken)


def _lto_link(link: Call, inputs: Sequence[LineInput], processes: Processes) -> LinkFacts:
    try:
        _require_symbols(link, inputs)
        read = [_with_bitcode(argument, link, processes) for argument in inputs]
    except UnreadError as error:
        return LinkFacts(order_facts_of_words(inputs), str(error))
    used = used_by_resolution(read, link.ran)
    by = f"the symbols of its inputs, taken as {linker_of(link.ran)} does"
    return _facts(read, used, by)


def _require_symbols(link: Call, inputs: Sequence[LineInput]) -> None:
    compiled = link.line.sources
    if compiled:
        raise UnreadError(f"the symbols of {compiled[0]}, compiled at the link, are not kept")
    for argument in inputs:
        if argument.kind == "other" and not argument.word.text.startswith("-l"):
            raise UnreadError(f"the symbols of {argument.word.text} cannot be read")


def _with_bitcode(argument: LineInput, link: Call, processes: Processes) -> LineInput:
    """The input with the symbols of the bitcode in it."""
    if argument.language != "llvm":
        return argument
    symbols = bitcode_symbols(Path(argument.path), link.program, processes)
    if argument.kind == "object":
        own = symbols.get("", LtoSymbols())
        return replace(argument, defines=own.defines, needs=own.needs)
    members = []
    for member in argument.members:
        own = symbols.get(member.name, LtoSymbols())
        read = replace(member, defines=own.defines, needs=own.needs)
        members.append(read if member.language == "llvm" else member)
    return replace(argument, members=tuple(members))


def order_facts_of_words(inputs: Sequence[LineInput]) -> tuple[OrderFact, ...]:
    """Findings on the order of the words alone."""
    return order_facts([argument for argument in inputs if argument.kind != "archive"], {})


def _used_in(
    archive: LineInput, by_map: frozenset[tuple[str, str]], files: frozenset[str]
) -> frozenset[str]:
    path = PurePosixPath(archive.path)
    return frozenset(
        member.name
        for member in archive.members
        if (path.name, member.name) in by_map
        or (archive.thin and os.path.normpath(path.parent / member.name) in files)
    )


def path_of(word: LinkWord, link: Call, place: TreePlace) -> Path:
    """The file that a word of a link means."""
    path = _library(word, link, place) if word.text.startswith("-l") else None
    return path or place.find(word.text, link.cwd)


def _input(word: LinkWord, link: Call, place: TreePlace) -> LineInput:
    path = path_of(word, link, place)
    try:
        with damage_told():
            archived = is_archive(path)
        if archived:
            archive = read_archive(path)
            members = archive.members if archive is not None else ()
            language = next((member.language for member in members if member.language), "")
            thin = archive is not None and archive.thin
            return LineInput(
                word, str(path), "archive", members=members, language=language, thin=thin
            )
        if is_shared(path.name):
            with damage_told():
                return LineInput(word, str(path), "shared", offered(path))
        code = intermediate(path)
        defines, needs = symbols_of(path, code)
        return LineInput(word, str(path), "object", defines, needs, language=code.slim)
    except DamagedFile:
        return LineInput(word, str(path), "other")


def offered(path: Path) -> frozenset[str]:
    """Symbols that a shared library exports, or those that a linker script in its place names.

    DamagedFile where it cannot be read.
    """
    if path.stat().st_size > _LONGEST_SCRIPT_BYTES:
        return exported(path)
    data = read_regular(path, _LONGEST_SCRIPT_BYTES)
    if data.startswith(b"\x7fELF"):
        return exported(path)
    names = _IN_SCRIPT.findall(data.decode(errors="replace"))
    return frozenset().union(*(exported(Path(name)) for name in names))


def _library(word: LinkWord, link: Call, place: TreePlace) -> Path | None:
    name = word.text[2:]
    endings = (".a",) if word.static else (".so", ".a")
    names = [name[1:]] if name.startswith(":") else [f"lib{name}{end}" for end in endings]
    machine = f"{os.uname().machine}-linux-gnu"
    folders = (*link.line.folders, *(folder.format(machine=machine) for folder in _SYSTEM))
    for folder in folders:
        for each in names:
            path = place.find(f"{folder}/{each}", link.cwd)
            if path.is_file():
                return path
    return None


def defined_names(artifact: Path) -> frozenset[str]:
    """All names that the artifact's symbol table defines, local ones too."""
    try:
        with elf_of(artifact) as elf:
            table = elf.get_section_by_name(".symtab")
            if not isinstance(table, SymbolTableSection):
                return frozenset()
            return frozenset(
                symbol.name
                for symbol in table.iter_symbols()
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] != "STT_FILE"
            )
    except DamagedFile:
        return frozenset()


def linker_of(argv: Sequence[str]) -> str:
    """`lld`, `mold` or another name that `-fuse-ld=` gives last; else `ld`, the system's."""
    named = [word.partition("=")[2] for word in argv if word.startswith("-fuse-ld=")]
    name = PurePosixPath(named[-1]).name if named else "ld"
    return name.removeprefix("ld.").partition("-")[0]


def used_by_resolution(inputs: Sequence[LineInput], argv: Sequence[str]) -> Used:
    """Members of each archive by path that the link `argv` of these inputs takes."""
    link = _Link(_START | frozenset(_asked(argv)))
    for argument in inputs:
        if argument.kind == "archive" and argument.word.whole:
            for member in argument.members:
                link.take(argument.path, member)
    if linker_of(argv) in _REMEMBERING:
        link.remember(inputs)
    else:
        link.once(inputs)
    return {
        line_input.path: frozenset(name for path, name in link.taken if path == line_input.path)
        for line_input in inputs
        if line_input.kind == "archive"
    }


def _asked(argv: Sequence[str]) -> Iterator[str]:
    """Symbols that `-u` asks for."""
    words = [part for word in argv for part in word.removeprefix("-Wl,").split(",")]
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word in ("-u", "--undefined"):
            yield after
        elif word.startswith("--undefined="):
            yield word.partition("=")[2]


class _Link:
    def __init__(self, needed: frozenset[str]) -> None:
        self.needed = set(needed)
        self.given: set[str] = set()
        self.taken: set[tuple[str, str]] = set()

    def add(self, defines: frozenset[str], needs: frozenset[str] = frozenset()) -> None:
        self.given |= defines
        self.needed = (self.needed | needs) - self.given

    def take(self, path: str, member: Member) -> None:
        self.taken.add((path, member.name))
        self.add(member.defines, member.needs)

    def once(self, inputs: Sequence[LineInput]) -> None:
        """As GNU ld: archives of a group again and again, others once."""
        for grouped, run in groupby(inputs, key=lambda argument: argument.word.grouped):
            several = [*run]
            for batch in [several] if grouped else [[argument] for argument in several]:
                before = -1
                while before != len(self.taken):
                    before = len(self.taken)
                    for line_input in batch:
                        self._visit(line_input)

    def _visit(self, argument: LineInput) -> None:
        if argument.kind != "archive":
            self.add(argument.defines, argument.needs if argument.kind == "object" else frozenset())
        before = -1
        while before != len(self.taken):
            before = len(self.taken)
            for member in argument.members:
                if (argument.path, member.name) not in self.taken and member.defines & self.needed:
                    self.take(argument.path, member)

    def remember(self, inputs: Sequence[LineInput]) -> None:
        """As lld and mold: whatever is needed comes from the first that offers it."""
        offers: dict[str, tuple[str, Member]] = {}
        for argument in inputs:
            if argument.kind == "object":
                self.add(argument.defines, argument.needs)
            members = (_whole(argument),) if argument.kind == "shared" else argument.members
            for member in members:
                for name in member.defines:
                    offers.setdefault(name, (argument.path, member))
        while names := sorted(self.needed & offers.keys()):
            self.take(*offers[names[0]])


def _whole(shared: LineInput) -> Member:
    return Member("", language="", defines=shared.defines, needs=frozenset())
