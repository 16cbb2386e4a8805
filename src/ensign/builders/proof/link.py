"""Reading the files of a link line, and what the link made of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ensign.builders.driver_line import Word, input_words, is_shared
from ensign.builders.proof.archives import intermediate, is_archive, read_archive
from ensign.builders.proof.elf import READ_ERRORS, exported, symbols
from ensign.builders.proof.facts import LinkFacts, OrderFact
from ensign.builders.proof.link_line import (
    Input,
    Used,
    order_facts,
    used_by_map,
    used_by_symbols,
)

_IN_SCRIPT = re.compile(r"/\S+\.so[.\d]*")
_LONGEST_SCRIPT_BYTES = 10_000
_SYSTEM = ("/usr/lib/{machine}", "/lib/{machine}", "/usr/lib64", "/lib64", "/usr/lib", "/lib")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a build's paths are: what the build saw as `seen_as` is `tree` here."""

    tree: Path
    seen_as: str = ""

    def find(self, name: str, cwd: str) -> Path:
        """The file that the build called `name` in its folder `cwd`."""
        path = os.path.normpath(str(PurePosixPath(cwd) / name))
        if self.seen_as and (path == self.seen_as or path.startswith(self.seen_as + "/")):
            return self.tree / path[len(self.seen_as) :].lstrip("/")
        return Path(path)


@dataclass(frozen=True, slots=True)
class Link:
    """A call that linked: its words after rewriting, and its folder."""

    argv: tuple[str, ...]
    cwd: str


def read_link(link: Link, place: Place, artefact: Path, map_text: str | None) -> LinkFacts:
    """Judge the order of a link by a map, or by the symbols that the artefact has."""
    inputs = tuple(_input(word, link, place) for word in input_words(link.argv))
    if not any(each.kind == "archive" for each in inputs):
        return LinkFacts(order_facts(inputs, {}), by="the link line")
    if any(_is_lto(each, link, place) for each in inputs):
        unknown = "the objects hold LTO's intermediate language, whose symbols are not read"
        return LinkFacts(order_facts_of_words(inputs), unknown)
    if map_text is not None:
        by_map = used_by_map(map_text)
        used = {each.path: _used_in(each, by_map) for each in inputs if each.kind == "archive"}
        return LinkFacts(order_facts(inputs, used), by="the linker's map")
    defined = defined_names(artefact)
    if not defined:
        unknown = "there is neither a linker map nor a symbol table"
        return LinkFacts(order_facts_of_words(inputs), unknown)
    used_here: Used = used_by_symbols(inputs, defined)
    return LinkFacts(order_facts(inputs, used_here), by="the symbols of the artefact")


def order_facts_of_words(inputs: Sequence[Input]) -> tuple[OrderFact, ...]:
    """What the words alone show."""
    return order_facts([each for each in inputs if each.kind != "archive"], {})


def _used_in(archive: Input, by_map: frozenset[tuple[str, str]]) -> frozenset[str]:
    name = PurePosixPath(archive.path).name
    return frozenset(each.name for each in archive.members if (name, each.name) in by_map)


def _input(word: Word, link: Link, place: Place) -> Input:
    path = _library(word, link, place) if word.text.startswith("-l") else None
    path = path or place.find(word.text, link.cwd)
    try:
        if is_archive(path):
            archive = read_archive(path)
            members = archive.members if archive is not None else ()
            return Input(word, str(path), "archive", members=members)
        if is_shared(path.name):
            return Input(word, str(path), "shared", _offered(path))
        with path.open("rb") as file:
            defines, needs = symbols(file)
        return Input(word, str(path), "object", defines, needs)
    except READ_ERRORS:
        return Input(word, str(path), "other")


def _offered(path: Path) -> frozenset[str]:
    """Of a shared library, or of those that a linker script in its place names."""
    if path.stat().st_size > _LONGEST_SCRIPT_BYTES:
        return exported(path)
    with path.open("rb") as file:
        if file.read(4) == b"\x7fELF":
            return exported(path)
    names = _IN_SCRIPT.findall(path.read_text(errors="replace"))
    return frozenset().union(*(exported(Path(name)) for name in names))


def _library(word: Word, link: Link, place: Place) -> Path | None:
    name = word.text[2:]
    endings = (".a",) if word.static else (".so", ".a")
    names = [name[1:]] if name.startswith(":") else [f"lib{name}{end}" for end in endings]
    machine = f"{os.uname().machine}-linux-gnu"
    folders = (*word.folders, *(folder.format(machine=machine) for folder in _SYSTEM))
    for folder in folders:
        for each in names:
            path = place.find(f"{folder}/{each}", link.cwd)
            if path.is_file():
                return path
    return None


def _is_lto(each: Input, link: Link, place: Place) -> bool:
    if each.kind == "archive":
        return any(member.slim for member in each.members)
    path = place.find(each.word.text, link.cwd)
    if each.kind == "shared" or not path.is_file():
        return False
    found = intermediate(path.read_bytes())
    return bool(found.language) and not found.fat


def defined_names(artefact: Path) -> frozenset[str]:
    """All names that the artefact's symbol table defines, local ones too."""
    try:
        with artefact.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            if not isinstance(table, SymbolTableSection):
                return frozenset()
            return frozenset(
                each.name
                for each in table.iter_symbols()
                if each["st_shndx"] != "SHN_UNDEF" and each["st_info"]["type"] != "STT_FILE"
            )
    except READ_ERRORS:
        return frozenset()
