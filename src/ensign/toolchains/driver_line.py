"""Command lines of compiler drivers, as GCC and Clang read them. Pure.

`argv` starts with the program's name, `words` is what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ensign.model.calls import Call

# Options whose value may be a word of its own.
_WITH_VALUE = frozenset(
    (
        *("-o", "-x", "-I", "-L", "-l", "-T", "-u", "-D", "-U", "-B", "-e", "-z"),
        *("-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xclang", "--param", "-arch", "-target"),
        *("-include", "-imacros", "-isystem", "-idirafter", "-iquote", "-MF", "-MT", "-MQ"),
        *("-dumpdir", "-rpath", "-soname"),
    )
)
_NO_LINK = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "-v", "-dM")
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".m", ".mm", ".i", ".ii", ".s", ".S")
_OBJECTS = (".o", ".lo", ".obj", ".os", ".bc")
_SHARED = re.compile(r"\.so(\.[\d.]+)?$")
_LONG_OUTPUT = "--output="


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
        return is_object(self.text)

    @property
    def is_library(self) -> bool:
        """Whether it stands for an archive or a shared library."""
        return self.text.startswith("-l") or self.text.endswith(".a") or is_shared(self.text)


def is_compiler(call: Call) -> bool:
    """Whether a call is one of a compiler driver, for C or C++."""
    return call.tool in ("cc", "cxx")


def is_shared(name: str) -> bool:
    """Whether a file name is that of a shared library."""
    return _SHARED.search(name) is not None


def is_object(name: str) -> bool:
    """Whether a file name is that of an object."""
    return name.endswith(_OBJECTS)


def is_source(name: str) -> bool:
    """Whether a file name is that of a source, assembly included."""
    return name.endswith(_SOURCES)


def places_of_files(words: Sequence[str]) -> Iterator[int]:
    """Where words stand that are neither options nor values of options."""
    is_value = False
    for at, word in enumerate(words):
        if is_value:
            is_value = False
        elif word in _WITH_VALUE:
            is_value = True
        elif not word.startswith("-"):
            yield at


def sources(argv: Sequence[str]) -> tuple[str, ...]:
    """The source files of a call."""
    words = argv[1:]
    return tuple(words[at] for at in places_of_files(words) if is_source(words[at]))


def links(argv: Sequence[str]) -> bool:
    """Whether a call links."""
    no_link = any(word in _NO_LINK for word in argv[1:])
    return not no_link and bool(input_words(argv) or sources(argv))


def output_of(argv: Sequence[str]) -> str:
    """What `-o` names; empty without it."""
    for word, after in pairwise((*argv, "")):
        if word == "-o" and after:
            return after
        if _is_output(word):
            return word.removeprefix(_LONG_OUTPUT if word.startswith(_LONG_OUTPUT) else "-o")
    return ""


def without_output(words: Iterable[str]) -> Iterator[str]:
    """All words but those that name the output."""
    rest = iter(words)
    for word in rest:
        if word == "-o":
            next(rest, None)
        elif not _is_output(word):
            yield word


def _is_output(word: str) -> bool:
    """Whether a word is the option and its value, joined."""
    joined = word.startswith("-o") and word != "-o" and not word.startswith("-object")
    return joined or word.startswith(_LONG_OUTPUT)


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
        elif word in _WITH_VALUE:
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
