"""Archives that no link of a build took, while the program has their functions from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ensign.host.files import tree_entries
from ensign.model.calls import Call, is_shared
from ensign.proof.archives import read_archive
from ensign.proof.bounded_elf import DamagedFile, damage_told
from ensign.proof.elf import exported
from ensign.proof.facts import LinkFacts, Order, OrderFact
from ensign.proof.identity import read_identity
from ensign.proof.link import TreePlace, offered, path_of


def with_unlinked_archives(
    seen: LinkFacts, artifact: Path, link: Call, calls: Sequence[Call], place: TreePlace
) -> LinkFacts:
    """The facts of a link with one for each of them. `calls` are all of the artifact's stage."""
    return replace(seen, order=(*seen.order, *_unlinked(artifact, link, calls, place)))


def _unlinked(
    artifact: Path, link: Call, calls: Sequence[Call], place: TreePlace
) -> tuple[OrderFact, ...]:
    identity = read_identity(artifact)
    files = {} if identity is None or not identity.imports else dict(_files(place.tree))
    archives = {name: path for name, path in files.items() if name.endswith(".a")}
    if identity is None or not archives:
        return ()
    linked = {
        path_of(word, call, place).resolve()
        for call in calls
        if call.has_linked
        for word in call.line.inputs
    }
    own = {symbol for name, path in files.items() if is_shared(name) for symbol in exported(path)}
    foreign = identity.imports - own
    found = []
    for name, path in archives.items():
        archive = None if path.resolve() in linked else read_archive(path)
        if archive is None:
            continue
        # What bitcode defines is known of the index alone.
        own_index = archive.index or frozenset()
        if taken := foreign & own_index.union(*(each.defines for each in archive.members)):
            other = _offering(taken, link, place)
            found.append(OrderFact(Order.UNLINKED, name, other, tuple(sorted(taken))))
    return tuple(found)


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
