"""Calls of compilers, linkers and archivers, as the recorder saw them during a build."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

_OBJECTS = (".o", ".lo", ".obj", ".os", ".bc")
_SHARED = re.compile(r"\.so(\.[\d.]+)?$")


@dataclass(frozen=True, slots=True)
class Output:
    """A file that a call wrote; `path` is absolute as the build saw it."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LinkInput:
    """A file that a link took, or that `objcopy` or `strip` changed, as it was just before.

    `kind` is `object`, `archive`, `thin` (an archive that names files) or `shared`; `members` are
    an archive's, as name and SHA-256.
    """

    path: str
    kind: str
    sha256: str
    members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkWord:
    """An input of a link as written: a path, or `-lNAME`.

    `static`: only an archive will do for a name; `whole`: with all members; `grouped`: looked
    through again and again with its neighbors.
    """

    text: str
    static: bool = False
    whole: bool = False
    grouped: bool = False

    @property
    def is_object(self) -> bool:
        """True if it is an object file by its name."""
        return is_object(self.text)

    @property
    def is_library(self) -> bool:
        """True if it stands for an archive or a shared library."""
        return self.text.startswith("-l") or self.text.endswith(".a") or is_shared(self.text)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Content of a compiler's or a linker's command line, as the recorder reads it.

    Places count words from 0, without the program's name. `output` is what the last `-o` names,
    `files` are places of words that are neither options nor values of options, `output_words` of
    those that name the output; `folders` are searched for libraries; `inputs` of a link come in
    their order, without sources.
    """

    compiles: bool = False
    links: bool = False
    output: str | None = None
    sources: tuple[str, ...] = ()
    files: tuple[int, ...] = ()
    output_words: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()
    inputs: tuple[LinkWord, ...] = ()

    def with_paths(self, path: Callable[[str], str]) -> CommandLine:
        """The same line with other paths."""
        return replace(
            self,
            output=None if self.output is None else path(self.output),
            sources=tuple(map(path, self.sources)),
            folders=tuple(map(path, self.folders)),
            inputs=tuple(replace(word, text=path(word.text)) for word in self.inputs),
        )


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that nobody recorded, as a build system would make it."""

    tool: str
    argv: tuple[str, ...]
    cwd: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `argv` is what the build asked for, `ran` what was run after rewriting.

    `tool` is the role of the program (`cc`, `cxx`, `ld`, `ar`, `ranlib`, `nm`, `as`, `objcopy`,
    `strip`, `rustc`, `launcher` where ccache ran no compiler), `program` its path,
    `cwd` the folder it ran in; response files (`@file`) are expanded in both lists. `exit` is None
    where a signal ended it. `variables` are those that Cargo set for a crate (`NAME=VALUE`). `line`
    is what `ran` says; of tools that neither compile nor link it says nothing.
    """

    tool: str
    program: str
    argv: tuple[str, ...]
    ran: tuple[str, ...]
    cwd: str
    started_unix_ns: int
    wall_ns: int
    exit: int | None
    outputs: tuple[Output, ...]
    inputs: tuple[LinkInput, ...] = ()
    line: CommandLine = CommandLine()
    variables: tuple[str, ...] = ()

    @property
    def is_compiler(self) -> bool:
        """True if it is one of a compiler driver, for C or C++."""
        return self.tool in ("cc", "cxx")

    @property
    def is_rust(self) -> bool:
        """True if it is one of rustc, which compiles a crate and may link it."""
        return self.tool == "rustc"

    @property
    def has_linked(self) -> bool:
        """True if it is a compiler driver's, and linked successfully."""
        return self.is_compiler and self.exit == 0 and self.line.links

    def words_without_output(self) -> tuple[str, ...]:
        """Words that were run, without the program's name and those that name the output."""
        left_out = self.line.output_words
        return tuple(word for at, word in enumerate(self.ran[1:]) if at not in left_out)


def is_shared(name: str) -> bool:
    """True if a file name is that of a shared library."""
    return _SHARED.search(name) is not None


def is_object(name: str) -> bool:
    """True if a file name is that of an object."""
    return name.endswith(_OBJECTS)
