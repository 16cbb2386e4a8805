"""Calls of compilers and archivers as a dry run of make prints them, and from JSON lists. Pure.

Make may have been given other variables than a dry run has, so that its commands are evidence of
a file only where the file's own units bear them out.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ensign.model.calls import AskedCall
from ensign.proof.comparison import differences
from ensign.proof.evidence import BuildEvidence, Compiled, own_units
from ensign.proof.flags import effects

_COMPILER = re.compile(r"(?:[\w.]+-)*(gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-[\d.]+)?")
_ARCHIVER = re.compile(r"(?:[\w.]+-)*ar(?:-[\d.]+)?")
_CXX = ("g++", "c++", "clang++")
_ENTERS = re.compile(r"make(?:\[\d+\])?: Entering directory '(.*)'")
_LEAVES = re.compile(r"make(?:\[\d+\])?: Leaving directory '.*'")
# What compilers record as they were told, with what no flag means.
_RECORDED = {"O": "-O0", "lto": "off", "profile-use": "off", "profile-generate": "off"}
# In this order: clang++ holds g++.
_FAMILIES = {"clang": "Clang", "gcc": "GCC", "g++": "GCC"}
_ENDS = frozenset({"&&", "||", ";", "|", "&", "(", ")", ">", ">>", "<"})


def asked_of_dry_run(text: str, folder: str) -> tuple[AskedCall, ...]:
    """The calls in the output of `make -n -w`, run in `folder`."""
    return tuple(_calls(text, folder))


def _calls(text: str, folder: str) -> Iterator[AskedCall]:
    folders = [folder]
    for line in text.replace("\\\n", " ").splitlines():
        enters = _ENTERS.search(line)
        if enters:
            folders.append(enters[1])
        elif _LEAVES.search(line):
            folders = folders[:-1] or [folder]
        else:
            yield from _calls_of_line(line, folders[-1])


def _calls_of_line(line: str, cwd: str) -> Iterator[AskedCall]:
    for words in _commands(line):
        if words[0] == "cd" and len(words) > 1:
            cwd = os.path.normpath(str(PurePosixPath(cwd) / words[1]))
            continue
        call = asked_call(words, cwd)
        if call is not None:
            yield call


def _commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in lexer:
            if word in _ENDS:
                yield from [words] if words else []
                words = []
            else:
                words.append(word)
    except ValueError:  # an open quote: no command of a compiler that could be read
        return
    if words:
        yield words


def asked_call(words: Sequence[str], cwd: str) -> AskedCall | None:
    """The call in a command, behind words such as `ccache` or `libtool`; None if there is none."""
    for index, word in enumerate(words):
        name = PurePosixPath(word).name
        compiler = _COMPILER.fullmatch(name)
        if compiler or (index == 0 and _ARCHIVER.fullmatch(name)):
            argv = tuple(words[index:])
            tool = "ar" if compiler is None else "cxx" if compiler[1] in _CXX else "cc"
            return AskedCall(tool, argv, cwd)
    return None


def asked_of_commands(entries: Sequence[Mapping[str, object]]) -> tuple[AskedCall, ...]:
    """The calls of a `compile_commands.json`."""
    calls = []
    for entry in entries:
        arguments = entry.get("arguments")
        words = (
            [str(word) for word in arguments]
            if isinstance(arguments, list)
            else shlex.split(str(entry.get("command", "")))
        )
        call = asked_call(words, str(entry.get("directory", "."))) if words else None
        calls += [call] if call is not None else []
    return tuple(calls)


def borne_out(seen: BuildEvidence) -> bool:
    """True if units of the artifact say that the calls made them, and none contradicts."""
    told = [
        unit for unit in own_units(seen) if unit.unit is not None and unit.unit.flags is not None
    ]
    return any(unit.call for unit in told) and contradicted(seen) is None


def contradicted(seen: BuildEvidence) -> str | None:
    """A source, and how its unit differs from its call; None where no unit does."""
    for unit in own_units(seen):
        for difference in _contradictions(unit):
            return f"{PurePosixPath(unit.source).name} {difference}"
    return None


def _contradictions(compiled: Compiled) -> Iterator[str]:
    unit, call = compiled.unit, compiled.call
    if unit is None or call is None:
        return
    program = PurePosixPath(call.program).name
    family = next((family for word, family in _FAMILIES.items() if word in program), "")
    if not unit.compiler.startswith(family):
        yield f"is by {unit.compiler}, not by {program}"
    elif unit.flags is not None:
        told, has = _RECORDED | effects(compiled.asked), _RECORDED | effects(unit.flags)
        for difference in differences(told, has, _RECORDED):
            name = "" if difference.subject == "O" else f"{difference.subject} "
            yield f"has {name}{difference.there}, not {name}{difference.asked}"
