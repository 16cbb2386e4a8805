"""Plain make, whose variables are the makefile's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ensign.builders.systems.build_system import Listing, Recognized, not_for, with_recipe
from ensign.model.study_build import Build, FlagsBy, SystemName
from ensign.model.study_problems import Problem

FILES = ("GNUmakefile", "makefile", "Makefile")
_ASSIGNED = re.compile(
    r"^[ ]*(?:override\s+)?(C(?:XX)?FLAGS|LDFLAGS)\s*([?:+]?:?=)(.*)$", re.MULTILINE
)
_LEVEL = re.compile(r"\s-O(?:[0-3gsz]|fast)?(?![\w-])")
_DRIVER = r"gcc|g\+\+|cc|c\+\+|clang|clang\+\+"
_COMPILER = rf"(?:{_DRIVER})(?:-\d+)?\s"
_NAMED_COMPILER = re.compile(rf"^\t[ \t@+-]*{_COMPILER}", re.MULTILINE)
_ANY_COMPILER = re.compile(rf"\$[({{](?:CC|CXX)[)}}]|(?<![\w.-]){_COMPILER}")
_INCLUDED = re.compile(r"^ *(?:-include|sinclude|include)[ \t]+([^#\n]*)", re.MULTILINE)
_CONTINUED = re.compile(r"\\\n[ \t]*")
_TOOLS = {
    "CC": "{cc}",
    "CXX": "{cxx_if_any}",
    "AR": "{ar}",
    "RANLIB": "{ranlib}",
    "NM": "{nm}",
}
# What a makefile calls a tool, with words of its own: `AR = ar rcu`, `CC = $(CROSS)gcc -std=gnu99`.
_TOOL = re.compile(
    rf"^ *(?:export +)?({'|'.join(_TOOLS)})[ \t]*[?:]*=[ \t]*"
    rf"((?:\S*[-/)}}])?(?:{_DRIVER}|ar|ranlib|nm)(?:-[\d.]+)?(?![^ \t\n]))?"
    r"([^#\n]*)",
    re.MULTILINE,
)
_CONDITION, _END_OF_CONDITION = re.compile(r"[ \t]*ifn?(def|eq)\b"), re.compile(r"[ \t]*endif\b")
# What a variable given on the command line would take away from the makefile.
_NEEDED = re.compile(r"(^|\s)-([DIilLW]\w|std=|f(PIC|pic|no-common)|pthread)|\$")
_CLEAN = "if make -n clean >/dev/null 2>&1; then make clean; fi"


class Make:
    """A makefile that somebody wrote."""

    name: SystemName = "make"
    texts: tuple[str, ...] = FILES

    def recognized(self, listing: Listing) -> Recognized | None:
        """See `BuildSystem`."""
        name = makefile_of(listing.names)
        if not name:
            return None
        text = _with_included(listing, name)
        by = _how_it_listens(text)
        keys: dict[str, object] = {} if by == "variables" else {"flags_by": by}
        options = _tools_with_words((text, *_called(listing, text)))
        if options:
            keys["options"] = options
        return Recognized(self.name, keys, programs=("make",))

    def problems(self, build: Build) -> Iterator[Problem]:
        """See `BuildSystem`."""
        return not_for(build, "in_source")

    def recipe(self, build: Build) -> Build:
        """See `BuildSystem`."""
        passed = ["CFLAGS={cflags}", "CXXFLAGS={cflags}", "LDFLAGS={ldflags}"]
        before = ["env", *passed] if build.flags_by == "environment" else []
        after = passed if build.flags_by == "variables" else []
        tools = [f"{name}={tool}" for name, tool in _TOOLS.items()]
        command = [*before, "make", "-C", build.folder, "-j{jobs}", "V=1", *tools, *after]
        return with_recipe(
            build,
            [["env", "-C", build.folder, "sh", "-c", _CLEAN]],
            [[*command, *build.options, *build.targets]],
        )


def makefile_of(names: frozenset[str]) -> str:
    """The one that GNU make takes of a folder; empty where there is none."""
    return next((name for name in FILES if name in names), "")


def included_names(text: str) -> tuple[str, ...]:
    """Files that a makefile includes, as far as it says so without variables and patterns."""
    words = (
        word for names in _INCLUDED.findall(_CONTINUED.sub(" ", text)) for word in names.split()
    )
    return tuple(dict.fromkeys(word for word in words if not set("$%*?[") & set(word)))


def _with_included(listing: Listing, name: str) -> str:
    """The text of a makefile with those of all that it includes, each once, in whole lines."""
    texts: dict[str, str] = {}
    waiting = [name]
    while waiting:
        included = waiting.pop(0)
        if included not in texts:
            texts[included] = _CONTINUED.sub(" ", listing.text(included))
            waiting += included_names(texts[included])
    return "\n".join(texts.values())


def _called(listing: Listing, text: str) -> Iterator[str]:
    """Texts of makefiles in folders that one calls make for."""
    for below in listing.folders.values() if "$(MAKE)" in text else ():
        if name := makefile_of(below.names):
            yield _with_included(below, name)


def _tools_with_words(texts: Iterable[str]) -> list[str]:
    """Variables for the command line, which would take away words that makefiles give their tools.

    Nothing where they do not agree.
    """
    ways: dict[str, set[str]] = {}
    for text in texts:
        own: dict[str, set[str]] = {}
        for name, program, words in _TOOL.findall(_unconditional(text)):
            own.setdefault(name, set()).add(_kept(name, words) if program else "")
        for name, (words, *others) in own.items():
            if words and not others:
                ways.setdefault(name, set()).add(words)
    return [
        f"{name}={_TOOLS[name]} {words}" for name, (words, *others) in ways.items() if not others
    ]


def _kept(name: str, words: str) -> str:
    """Words of a tool that mean the same on the command line: of compilers options, no levels."""
    plain = re.sub(r"\$\{(\w+)\}", r"$(\1)", words).strip()
    if name in ("CC", "CXX"):
        plain = _LEVEL.sub("", f" {plain}").strip()
        plain = plain if plain.startswith(("-", "$(")) else ""
    return "" if set("{}") & set(plain) else plain


def _unconditional(text: str) -> str:
    """The lines that hold whatever conditions say."""
    kept, depth = [], 0
    for line in text.splitlines():
        depth += _CONDITION.match(line) is not None
        if not depth:
            kept.append(line)
        depth -= _END_OF_CONDITION.match(line) is not None
    return "\n".join(kept)


def _how_it_listens(text: str) -> FlagsBy:
    """Ways by which flags reach the compiler past what a makefile says of its variables.

    A variable of the command line replaces what the makefile assigns to it, which may be needed.
    One of the environment is replaced by the makefile, unless that only adds, or gives a default.
    What is added comes last, and a level there would undo the variant's.
    """
    if _NAMED_COMPILER.search(text) or any(map(_has_own_level, text.splitlines())):
        return "recorder"
    plain = [match for match in _ASSIGNED.finditer(text) if match[2] in ("=", ":=", "::=")]
    added = [match for match in _ASSIGNED.finditer(text) if match[2] not in ("=", ":=", "::=")]
    if not plain and not added:
        return "variables" if re.search(r"\$[({](C|CXX|LD)FLAGS", text) else "recorder"
    if any(match[2] == "+=" and _LEVEL.search(f" {match[3]}") for match in added):
        return "recorder"
    if not plain:
        return "environment"
    if added or any(_NEEDED.search(match[3]) for match in plain):
        return "recorder"
    return "variables"


def _has_own_level(line: str) -> bool:
    """True if a recipe calls a compiler with a level that no variable holds."""
    calls = line.startswith("\t") and _ANY_COMPILER.search(line) is not None
    return calls and _LEVEL.search(line) is not None
