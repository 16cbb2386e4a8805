"""Which members of archives a linker takes, from the symbols of all inputs. Pure.

What LTO generates shows no members: it has inlined them, and the linker's map has its own objects.
GNU ld goes through the inputs once and takes of an archive what is needed so far (ld(1), on
archives and `--start-group`). lld and mold remember what archives offer, and take a member when
something needs it, before or after; of an archive and a shared library the first one gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from ensign.proof.archives import Member
from ensign.proof.link_line import LineInput, Used

_START = frozenset({"main"})  # needed by the C library's start file
_REMEMBERING = ("lld", "mold")


def linker_of(argv: Sequence[str]) -> str:
    """`lld`, `mold` or another name that `-fuse-ld=` gives last; else `ld`, the system's."""
    named = [word.partition("=")[2] for word in argv if word.startswith("-fuse-ld=")]
    name = PurePosixPath(named[-1]).name if named else "ld"
    return name.removeprefix("ld.").partition("-")[0]


def used_by_resolution(inputs: Sequence[LineInput], argv: Sequence[str]) -> Used:
    """Members of each archive by path that the link `argv` of these inputs takes."""
    link = _Link(_START | frozenset(_asked(argv)))
    for each in inputs:
        if each.kind == "archive" and each.word.whole:
            for member in each.members:
                link.take(each.path, member)
    if linker_of(argv) in _REMEMBERING:
        link.remember(inputs)
    else:
        link.once(inputs)
    return {
        each.path: frozenset(name for path, name in link.taken if path == each.path)
        for each in inputs
        if each.kind == "archive"
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
        for grouped, run in groupby(inputs, key=lambda each: each.word.grouped):
            several = [*run]
            for batch in [several] if grouped else [[each] for each in several]:
                before = -1
                while before != len(self.taken):
                    before = len(self.taken)
                    for each in batch:
                        self._visit(each)

    def _visit(self, each: LineInput) -> None:
        if each.kind != "archive":
            self.add(each.defines, each.needs if each.kind == "object" else frozenset())
        before = -1
        while before != len(self.taken):
            before = len(self.taken)
            for member in each.members:
                if (each.path, member.name) not in self.taken and member.defines & self.needed:
                    self.take(each.path, member)

    def remember(self, inputs: Sequence[LineInput]) -> None:
        """As lld and mold: whatever is needed comes from the first that offers it."""
        offers: dict[str, tuple[str, Member]] = {}
        for each in inputs:
            if each.kind == "object":
                self.add(each.defines, each.needs)
            members = (_whole(each),) if each.kind == "shared" else each.members
            for member in members:
                for name in member.defines:
                    offers.setdefault(name, (each.path, member))
        while found := sorted(self.needed & offers.keys()):
            self.take(*offers[found[0]])


def _whole(shared: LineInput) -> Member:
    return Member("", language="", defines=shared.defines, needs=frozenset())
