"""Reading the proof of a build from its artifact and its tree."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ensign.host.files import tree_entries
from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.host.processes import Processes
from ensign.host.regular_file import read_regular
from ensign.model.calls import Call, is_shared
from ensign.proof.archives import intermediate, read_archive
from ensign.proof.bounded_elf import DamagedFile, damage_told
from ensign.proof.elf import exported, read_binary
from ensign.proof.facts import (
    Binary,
    LinkFacts,
    Objects,
    Order,
    OrderFact,
    Proof,
    UnindexedArchive,
)
from ensign.proof.identity import read_identity
from ensign.proof.link import TreePlace, offered, path_of, read_link

# Cargo reads those of the folder that it is started in, and of those above.
_FILES = (".cargo/config.toml", ".cargo/config")
_MOST_BYTES = 1 << 20
_LONGEST = 200
_LARGEST_SOURCE_BYTES = 8 << 20
# Sources that say themselves how they are optimized, which no record of flags shows.
_OWN = re.compile(
    rb"^[ \t]*#[ \t]*pragma[ \t]+(GCC|clang)[ \t]+optimize\b"
    rb"|\b_Pragma[ \t]*\([ \t]*\"(GCC|clang) optimize\b"
    rb"|\b__attribute__[ \t]*\(\([^)\n]*\b(__)?(optimize|optnone)(__)?\b"
    rb"|\[\[[^]\n]*\b(gnu::optimize|clang::optnone)\b",
    re.MULTILINE,
)


def read_proof(
    artifact: Path,
    place: TreePlace,
    calls: Sequence[Call],
    processes: Processes,
    map_text: str | None = None,
    beside: Proof | None = None,
) -> Proof:
    """Read all there is. `calls` are those of the stage that made the artifact.

    `beside` is the proof of another file of the same tree, which is not read again then.
    """
    binary = read_binary(artifact) or Binary(str(artifact))
    if beside is None:
        objects, unindexed = read_tree(place.tree)
    else:
        objects, unindexed = beside.objects, beside.unindexed
    call = link_of(calls, place, artifact)
    link = LinkFacts(unknown="no link of it was recorded")
    rust = any(each.is_rust for each in calls)
    if call is not None:
        link = read_link(call, place, artifact, map_text, processes)
        link = with_unlinked_archives(link, artifact, call, calls, place)
    elif rust:
        link = BY_RUSTC
    flags = own_rustflags(place.tree) if rust else ()
    levels = own_levels(calls, place) if beside is None else ()
    return Proof(
        binary, objects, unindexed, link, place.seen_as, own_rustflags=flags, own_levels=levels
    )


# Of the order of its inputs nothing can be asked of rustc.
BY_RUSTC = LinkFacts(unknown="rustc links by itself, in an order of its own")


def proof_after(linked: Proof, artifact: Path) -> Proof:
    """The proof of a program that was changed after its link: its own bytes, and that link."""
    binary = read_binary(artifact)
    return linked if binary is None else replace(linked, binary=binary)


def link_of(calls: Sequence[Call], place: TreePlace, artifact: Path) -> Call | None:
    """The last call that linked the artifact; None if none did, or under another name."""
    name = artifact.name
    last = None
    for call in calls:
        if not call.has_linked:
            continue
        output = place.find(call.line.output or "a.out", call.cwd)
        if output.name == name and (not output.exists() or _same(output, artifact)):
            last = call
    return last


def _same(left: Path, right: Path) -> bool:
    return left.stat().st_size == right.stat().st_size


def read_tree(tree: Path) -> tuple[Objects, tuple[UnindexedArchive, ...]]:
    """The objects and the wrongly made archives below a folder."""
    languages: list[tuple[str, bool]] = []
    unindexed = []
    for name, path in tree_entries(tree):
        if path.is_symlink() or not path.is_file():
            continue
        if name.endswith(".o"):
            code = intermediate(path)
            languages.append((code.language, code.fat))
        elif name.endswith(".a"):
            archive = unindexed_archive(path, name)
            unindexed += [archive] if archive else []
    objects = Objects(
        count=len(languages),
        gcc_lto=sum(language == "gcc" for language, _ in languages),
        bitcode=sum(language == "llvm" for language, _ in languages),
        fat=sum(fat for _, fat in languages),
    )
    return objects, tuple(unindexed)


def unindexed_archive(path: Path, name: str) -> UnindexedArchive | None:
    """The archive, to be called `name`, if its index leaves out LTO objects; else None."""
    archive = read_archive(path)
    if archive is None:
        return None
    slim = [member for member in archive.members if member.language]
    own = {symbol for member in slim for symbol in member.defines}
    plain = {symbol for member in archive.members for symbol in member.defines} - own
    index = archive.index or frozenset()
    # Symbols of bitcode are not known here: there it is whatever else the index has.
    if slim and not (index & own if own else index - plain):
        return UnindexedArchive(name, len(slim))
    return None


def with_unlinked_archives(
    seen: LinkFacts, artifact: Path, link: Call, calls: Sequence[Call], place: TreePlace
) -> LinkFacts:
    """The facts of a link with archives that none took, whose functions come from elsewhere.

    `calls` are all of the artifact's stage.
    """
    identity = read_identity(artifact)
    files = {} if identity is None or not identity.imports else dict(_files(place.tree))
    archives = {name: path for name, path in files.items() if name.endswith(".a")}
    if identity is None or not archives:
        return seen
    linked = {
        path_of(word, call, place).resolve()
        for call in calls
        if call.has_linked
        for word in call.line.inputs
    }
    own = {symbol for name, path in files.items() if is_shared(name) for symbol in exported(path)}
    foreign = identity.imports - own
    facts = []
    for name, path in archives.items():
        archive = None if path.resolve() in linked else read_archive(path)
        if archive is None:
            continue
        # What bitcode defines is known of the index alone.
        own_index = archive.index or frozenset()
        if taken := foreign & own_index.union(*(member.defines for member in archive.members)):
            other = _offering(taken, link, place)
            facts.append(OrderFact(Order.UNLINKED, name, other, tuple(sorted(taken))))
    return replace(seen, order=(*seen.order, *facts))


def _files(tree: Path) -> Iterator[tuple[str, Path]]:
    for name, path in tree_entries(tree):
        if (name.endswith(".a") or is_shared(path.name)) and path.is_file():
            yield name, path


def _offering(symbols: frozenset[str], link: Call, place: TreePlace) -> str:
    """The word of the link that names a shared library with one of these; empty if none does."""
    for word in link.line.inputs:
        path = path_of(word, link, place)
        with suppress(DamagedFile), damage_told():
            if is_shared(path.name) and symbols & offered(path):
                return word.text
    return ""


def own_levels(calls: Sequence[Call], place: TreePlace) -> tuple[str, ...]:
    """Compiled sources of the tree that say themselves how they are optimized, as `part.c:3`.

    What they include is not read.
    """
    sources = dict.fromkeys(
        place.find(source, call.cwd)
        for call in calls
        if call.is_compiler
        for source in call.line.sources
    )
    return tuple(_own_levels(sources, place.tree))


def _own_levels(sources: Iterable[Path], tree: Path) -> Iterator[str]:
    for path in sources:
        if path.is_relative_to(tree):
            with suppress(HostileFileError, OSError):
                line = line_of_own_level(read_foreign(path, _LARGEST_SOURCE_BYTES))
                if line:
                    yield f"{path.relative_to(tree)}:{line}"


def line_of_own_level(text: bytes) -> int:
    """The first line of a source that says so, from 1; 0 where none does."""
    match = _OWN.search(text)
    return text.count(b"\n", 0, match.start()) + 1 if match else 0


def own_rustflags(tree: Path) -> tuple[str, ...]:
    """Each place with its flags, such as `.cargo/config.toml: build.rustflags = -C lto=off`."""
    return tuple(line for name in _FILES for line in _of_file(tree, name))


def _of_file(tree: Path, name: str) -> Iterator[str]:
    try:
        text = read_regular(tree / name, _MOST_BYTES, follow=False).decode()
        content = tomllib.loads(text)
    except (OSError, ValueError, RecursionError):  # Cargo itself says what is wrong with it
        return
    build, target = content.get("build"), content.get("target")
    sections = {"build": build}
    if isinstance(target, Mapping):
        sections |= {f"target.{key}": section for key, section in target.items()}
    for key, section in sections.items():
        flags = section.get("rustflags") if isinstance(section, Mapping) else None
        words = flags if isinstance(flags, list) else [flags] if flags else []
        if words:
            shown_words = " ".join(map(str, words))[:_LONGEST]
            yield f"{name}: {key}.rustflags = {shown_words}"
