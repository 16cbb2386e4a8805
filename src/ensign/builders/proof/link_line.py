"""Link lines: what is on them, and what their order did. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath

from ensign.builders.proof.archives import Member
from ensign.builders.proof.facts import Order, OrderFact

# Options of compiler drivers whose argument is a word of its own.
_WITH_ARGUMENT = frozenset(
    re.split(
        r"\s+",
        "-o -x -I -L -T -u -D -U -e -z -Xlinker -Xassembler -Xpreprocessor -Xclang -include "
        "-isystem -idirafter -iquote -MF -MT -MQ -arch -target -dumpdir --param -rpath -soname",
    )
)
_NO_LINK = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "-v", "-dM")
_SHARED = re.compile(r"\.so(\.[\d.]+)?$")
_MEMBER = re.compile(r"(\S+\.a)[(:]([^()\s]+?)\)")
_SOURCES = re.compile(r"\.(c|cc|cpp|cxx|c\+\+|C|m|mm|i|ii|s|S)$")
_SOME = 5
# Today's C libraries keep empty archives (libdl.a, librt.a) for the sake of old link lines.
_SYSTEM = ("/usr/lib", "/lib")


@dataclass(frozen=True, slots=True)
class Word:
    """An input as written: a path, or `-lNAME` with the folders searched for it."""

    text: str
    folders: tuple[str, ...] = ()
    static: bool = False
    whole: bool = False
    grouped: bool = False

    @property
    def is_object(self) -> bool:
        """Whether it is an object file by its name."""
        return self.text.endswith((".o", ".lo"))

    @property
    def is_library(self) -> bool:
        """Whether it stands for an archive or a shared library."""
        return self.text.startswith("-l") or self.text.endswith(".a") or is_shared(self.text)


@dataclass(frozen=True, slots=True)
class Input:
    """An input as found. `members` is for archives, `defines` and `needs` for the others."""

    word: Word
    path: str
    kind: str
    defines: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    members: tuple[Member, ...] = field(default=())


def is_shared(name: str) -> bool:
    """Whether a file name is that of a shared library."""
    return _SHARED.search(name) is not None


def is_source(word: str) -> bool:
    """Whether a word of a compiler's command is a source file."""
    return not word.startswith("-") and _SOURCES.search(word) is not None


def links(argv: Sequence[str]) -> bool:
    """Whether a call of a compiler driver links."""
    return not any(word in _NO_LINK for word in argv[1:]) and any(_inputs_in(argv))


def _inputs_in(argv: Sequence[str]) -> Iterator[str]:
    yield from (word.text for word in input_words(argv))
    yield from sources(argv)


def sources(argv: Sequence[str]) -> tuple[str, ...]:
    """The source files of a call."""
    return tuple(word for word in _positional(argv) if is_source(word))


def output_of(argv: Sequence[str]) -> str:
    """What `-o` names; empty without it."""
    for index, word in enumerate(argv):
        if word == "-o" and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith("-o") and len(word) > len("-o") and not word.startswith("-object"):
            return word[2:]
    return ""


def _positional(argv: Sequence[str]) -> Iterator[str]:
    skip = False
    for word in argv[1:]:
        if skip:
            skip = False
        elif word in _WITH_ARGUMENT:
            skip = True
        elif not word.startswith("-"):
            yield word


def input_words(argv: Sequence[str]) -> tuple[Word, ...]:
    """Objects and libraries of a link in their order, without source files."""
    folders = tuple(_folders(argv))
    static = "-static" in argv
    whole = grouped = False
    found = []
    words = _flattened(argv)
    for word in words:
        if word in ("-Bstatic", "-dn", "-non_shared"):
            static = True
        elif word in ("-Bdynamic", "-dy", "-call_shared"):
            static = False
        elif word in ("--whole-archive", "--no-whole-archive"):
            whole = word == "--whole-archive"
        elif word in ("--start-group", "-(", "--end-group", "-)"):
            grouped = word in ("--start-group", "-(")
        elif word.startswith("-l") and len(word) > len("-l"):
            found.append(Word(word, folders, static, whole, grouped))
        elif not word.startswith("-") and not is_source(word):
            found.append(Word(word, (), static, whole, grouped))
    return tuple(found)


def _flattened(argv: Sequence[str]) -> Iterator[str]:
    """Words that matter to the linker; those after `-Wl,` one by one, arguments left out."""
    skip = False
    for before, word in pairwise(argv):
        if skip:
            skip = False
            if before == "-Xlinker" and word.startswith("-"):
                yield word
        elif word in _WITH_ARGUMENT:
            skip = True
        elif word.startswith("-Wl,"):
            yield from (part for part in word.split(",")[1:] if part.startswith("-"))
        else:
            yield word


def _folders(argv: Sequence[str]) -> Iterator[str]:
    for word, after in zip(argv, [*argv[1:], ""], strict=True):
        if word == "-L":
            yield after
        elif word.startswith("-L"):
            yield word[2:]


def used_by_map(text: str) -> frozenset[tuple[str, str]]:
    """Archive (its file name) and member for each that a linker's map shows in the program.

    bfd, lld and mold all write `path/lib.a(member.o)`, and no member that they left out.
    """
    return frozenset(
        (PurePosixPath(archive).name, member) for archive, member in _MEMBER.findall(text)
    )


Used = Mapping[str, frozenset[str]]


def used_by_symbols(inputs: Sequence[Input], defined: frozenset[str]) -> Used:
    """Members of each archive by path that left a symbol in the program."""
    plain = {name for each in inputs if each.kind == "object" for name in each.defines}
    return {
        each.path: frozenset(
            member.name for member in each.members if (member.defines - plain) & defined
        )
        for each in inputs
        if each.kind == "archive"
    }


def order_facts(inputs: Sequence[Input], used: Used) -> tuple[OrderFact, ...]:
    """What the order of the inputs did, given which members of archives were used."""
    facts = [*_duplicates(inputs), *_unread(inputs)]
    twice = {fact.library for fact in facts}
    given = {name for each in inputs if each.kind == "object" for name in each.defines}
    for each in inputs:
        for member in each.members:
            if member.name in used.get(each.path, frozenset()):
                given |= member.defines
    seen: set[str] = set()
    for index, each in enumerate(inputs):
        if each.kind != "archive" or each.word.whole or each.path in seen:
            continue
        seen.add(each.path)
        if each.word.text not in twice:
            facts += _archive(inputs, index, used, frozenset(given))
    return tuple(facts)


def _duplicates(inputs: Sequence[Input]) -> Iterator[OrderFact]:
    counts = Counter(
        each.word.text for each in inputs if each.word.is_library and not each.word.grouped
    )
    yield from (OrderFact(Order.DUPLICATE, text) for text, count in counts.items() if count > 1)


def _unread(inputs: Sequence[Input]) -> Iterator[OrderFact]:
    """Archives that are not there to be read, before objects."""
    for index, each in enumerate(inputs):
        after = [other.word.text for other in inputs[index + 1 :] if other.word.is_object]
        plain = each.kind == "other" and not each.word.whole and not each.word.grouped
        if plain and each.word.text.endswith(".a") and after:
            yield OrderFact(Order.BEFORE_OBJECTS, each.word.text, after[0])


def _archive(
    inputs: Sequence[Input], index: int, used: Used, given: frozenset[str]
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
        symbols = _some(after)
        yield OrderFact(Order.BEFORE_OBJECTS, archive.word.text, needing.word.text, symbols)
    elif not taken and not archive.path.startswith(_SYSTEM):
        yield OrderFact(Order.UNUSED, archive.word.text)


def _needs(inputs: Sequence[Input], used: Used) -> frozenset[str]:
    needs: set[str] = set()
    for each in inputs:
        needs |= each.needs if each.kind == "object" else frozenset()
        for member in each.members:
            if member.name in used.get(each.path, frozenset()):
                needs |= member.needs
    return frozenset(needs)


def _some(names: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(names)[:_SOME])
