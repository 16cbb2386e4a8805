"""A link that names members of archives as objects, where that gives the same program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders import layouts
from ensign.builders.archive_members import (
    RUST_STANDARD,
    BuildArchive,
    NamedMembers,
    Pulled,
    foreign_archives,
    pulled,
    written_members,
)
from ensign.builders.layouts import LinkCommand
from ensign.builders.relink_context import CannotError, RelinkContext, repeat
from ensign.proof.link import MAP, read_map
from ensign.proof.loaded_bytes import Artifact, read_artifact

_KEPT = "members of {} keep their {}: {}"
_OTHERWISE = "named as objects, they give a different program"


@dataclass(frozen=True, slots=True)
class Linked:
    """A link done once more: what it made, and the members that it took."""

    artifact: Artifact | None
    pulled: Pulled


@dataclass(frozen=True, slots=True)
class Named:
    """A link that names members of archives; `pulled` are those that it still takes by itself."""

    link: LinkCommand
    pulled: frozenset[tuple[Path, str]] | None = None
    notes: tuple[str, ...] = ()


def linked(link: LinkCommand, context: RelinkContext) -> Linked:
    """Do a link once more, with a map. CannotError."""
    here, seen = context.scratch
    argv = layouts.again(link, f"{seen}/again")
    repeat(context, link, (*argv, f"-Wl,-Map={seen}/{MAP}"))
    made = read_artifact(here / "again")
    (here / "again").unlink()
    return Linked(made, pulled_again(link, context))


def pulled_again(link: LinkCommand, context: RelinkContext) -> Pulled:
    """What the map says that was written last; it is taken away."""
    text = read_map(context.scratch[0])
    if text is None:
        raise CannotError("its link, repeated, writes no map")
    (context.scratch[0] / MAP).unlink()
    return pulled(text, link.cwd, context.place)


def with_named_members(
    link: LinkCommand, archives: Sequence[BuildArchive], first: Linked, context: RelinkContext
) -> Named:
    """Members named as far as that gives the same program: all, else archive by archive."""
    here, seen = context.scratch
    members = written_members(archives, first.pulled, (here / "members", f"{seen}/members"))
    foreign = foreign_archives(first.pulled, context.place)
    notes = [
        *(_kept_foreign(path, seen) for path in foreign),
        *(_KEPT.format(each.archive.word, "order", each.left) for each in members if each.left),
    ]
    members = tuple(each for each in members if each.names)
    if not members:
        return Named(link, notes=tuple(notes))
    found = _proven(link, members, first, context)
    if found is None:
        good: list[NamedMembers] = []
        for each in members:
            more = _proven(link, (*good, each), first, context) if len(members) > 1 else None
            if more is None:
                notes.append(_KEPT.format(each.archive.word, "order", _OTHERWISE))
            else:
                good.append(each)
                found = more
    found = found or Named(link)
    return replace(found, notes=tuple(notes))


def _kept_foreign(path: str, scratch: str) -> str:
    """Why such an archive keeps its place; those in the scratch folder rustc wrote itself."""
    if path.startswith(f"{scratch}/"):
        name = path.rpartition("/")[2]
        return _KEPT.format(name, "places", "rustc wrote it for this link alone")
    of = "order" if path == RUST_STANDARD else "places"
    return _KEPT.format(path, of, "the build did not make it")


def _proven(
    link: LinkCommand, members: Sequence[NamedMembers], first: Linked, context: RelinkContext
) -> Named | None:
    """The link that names these members; None where it is another one."""
    words = {each.archive.word: each.names for each in members}
    whole = [each.archive.word for each in members if each.archive.whole]
    named = layouts.with_members(link, words, whole)
    try:
        made = linked(named, context)
    except CannotError:
        return None
    left = frozenset(first.pulled).difference(*(each.taken for each in members))
    same = same_program(made.artifact, first.artifact) and frozenset(made.pulled) == left
    return Named(named, left) if same else None


def same_program(one: Artifact | None, other: Artifact | None) -> bool:
    """Whether both are programs, and load the same bytes."""
    return one is not None and other is not None and one.loadable_sha256 == other.loadable_sha256
