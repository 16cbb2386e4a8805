"""Effects of the order of a link line. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ensign.model.calls import LinkWord, is_object
from ensign.proof.archives import Member
from ensign.proof.facts import Order, OrderFact

_MEMBER = re.compile(r"(?<!\S)(\S+\.(?:a|rlib))[(:]([^()\s]+?)\)")
_TEXT_OF_MEMBER = re.compile(_MEMBER.pattern + r":\(\.text\)")
_FUNCTION_OF_MEMBER = re.compile(_MEMBER.pattern + r":\(\.text\.")
_SOME = 5
# Today's C libraries keep empty archives (libdl.a, librt.a) for the sake of old link lines.
_SYSTEM = ("/usr/lib", "/lib")


@dataclass(frozen=True, slots=True)
class LineInput:
    """An input as found. `members` is for archives, `defines` and `needs` for the others.

    `language` is the intermediate one of an object for which code is generated at the link, or of
    such a member. The members of a `thin` archive are files beside it.
    """

    word: LinkWord
    path: str
    kind: str
    defines: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    members: tuple[Member, ...] = field(default=())
    language: str = ""
    thin: bool = False


def used_by_map(text: str) -> frozenset[tuple[str, str]]:
    """Archive (its file name) and member for each that a linker's map shows in the program.

    bfd, lld and mold all write `path/lib.a(member.o)`, and no member that they left out.
    """
    return frozenset(
        (PurePosixPath(archive).name, member) for archive, member in members_in_map(text)
    )


def members_in_map(text: str) -> tuple[tuple[str, str], ...]:
    """Archives, as the link named them, and members, in the order of the link.

    bfd and gold list them by it first; with lld and mold it is that of `.text`, or of what begins
    so, and of nothing else.
    """
    matches = (pattern.findall(text) for pattern in (_TEXT_OF_MEMBER, _FUNCTION_OF_MEMBER, _MEMBER))
    return tuple(dict.fromkeys(member for members in matches for member in members))


def files_in_map(text: str) -> tuple[str, ...]:
    """Objects that a linker's map names as files of their own, as bfd does a thin archive's."""
    return tuple(dict.fromkeys(word for word in text.split() if is_object(word)))


Used = Mapping[str, frozenset[str]]


def used_by_symbols(inputs: Sequence[LineInput], defined: frozenset[str]) -> Used:
    """Members of each archive by path that left a symbol in the program."""
    plain = {name for argument in inputs if argument.kind == "object" for name in argument.defines}
    return {
        argument.path: frozenset(
            member.name for member in argument.members if (member.defines - plain) & defined
        )
        for argument in inputs
        if argument.kind == "archive"
    }


def order_facts(inputs: Sequence[LineInput], used: Used) -> tuple[OrderFact, ...]:
    """Effects of the order of the inputs, given which members of archives were used."""
    facts = [*_duplicates(inputs), *_unread(inputs)]
    twice = {fact.library for fact in facts}
    given = {name for argument in inputs if argument.kind == "object" for name in argument.defines}
    for line_input in inputs:
        for member in line_input.members:
            if member.name in used.get(line_input.path, frozenset()):
                given |= member.defines
    seen: set[str] = set()
    for index, link_input in enumerate(inputs):
        if link_input.kind != "archive" or link_input.word.whole or link_input.path in seen:
            continue
        seen.add(link_input.path)
        if link_input.word.text not in twice:
            facts += _archive(inputs, index, used, frozenset(given))
    return tuple(facts)


def _duplicates(inputs: Sequence[LineInput]) -> Iterator[OrderFact]:
    counts = Counter(
        argument.word.text
        for argument in inputs
        if argument.word.is_library and not argument.word.grouped
    )
    yield from (OrderFact(Order.DUPLICATE, text) for text, count in counts.items() if count > 1)


def _unread(inputs: Sequence[LineInput]) -> Iterator[OrderFact]:
    """Archives that are not there to be read, before objects."""
    for index, argument in enumerate(inputs):
        after = [other.word.text for other in inputs[index + 1 :] if other.word.is_object]
        plain = argument.kind == "other" and not argument.word.whole and not argument.word.grouped
        if plain and argument.word.text.endswith(".a") and after:
            yield OrderFact(Order.BEFORE_OBJECTS, argument.word.text, after[0])


def _archive(
    inputs: Sequence[LineInput], index: int, used: Used, given: frozenset[str]
) -> Iterator[OrderFact]:
    archive = inputs[index]
    taken = used.get(archive.path, frozenset())
    offers = {name for member in archive.members for name in member.defines} - given
    before = _needs(inputs[:index], used) & offers
    after = _needs(inputs[index + 1 :], used) & offers
    for other in inputs[:index]:
        shared = before & other.defines if other.kind == "shared" else frozenset()
        if shared:
            yield OrderFact(Order.AFTER_SHARED, archive.word.text, other.word.text, _some(shared))
            return
    if after and not before:
        needing = next(other for other in inputs[index + 1 :] if _needs((other,), used) & after)
        having = (
            argument
            for argument in inputs
            if argument.kind == "shared" and argument.defines & after
        )
        winner = next((argument.word.text for argument in having), "")
        names = (archive.word.text, needing.word.text)
        yield OrderFact(Order.BEFORE_OBJECTS, *names, _some(after), winner)
    elif not taken and not archive.path.startswith(_SYSTEM):
        yield OrderFact(Order.UNUSED, archive.word.text)


def _needs(inputs: Sequence[LineInput], used: Used) -> frozenset[str]:
    needs: set[str] = set()
    for argument in inputs:
        needs |= argument.needs if argument.kind == "object" else frozenset()
        for member in argument.members:
            if member.name in used.get(argument.path, frozenset()):
                needs |= member.needs
    return frozenset(needs)


def _some(names: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(names)[:_SOME])
