"""How tools write what is wrong, with its file and line: a form for each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from ensign.host.processes import without_colors

CONSEQUENCE, PANIC = "consequence", "panic"  # told only where nothing tells their cause
COMPILE, LINK, PLAIN = "compile", "link", "plain"
_LONGEST_LINE = 2000
_MOST_ERRORS = 5000
_NEAR_LINES = 20
# Around what a tool said: cargo's word for its build scripts, rustc's for its linker.
_AROUND = re.compile(r"^\s*(?:cargo:warning=|warning: [^\s:]+@[^\s:]+: |= note: )?")
_MAY_BE_ONE = re.compile(
    r"[Ee]rror|ERROR|\*\*\*|undefined|multiple def|cannot|can't|not found|No such|denied|panicked"
    r"|Exception|Exit|\bld|mold"
)
_FOLDER = re.compile(
    r"^\S*(?:make(?:\[\d+\])?|ninja): (?P<how>Entering|Leaving) directory [`'](?P<folder>.+)'$"
)
_INCLUDED = re.compile(r"^(?:In file included from| +from) (?P<file>[^\s:]+):\d+")
_SAID_OF_PLACE = re.compile(r"^[^\s:]+:\d+:")
_NO_SOURCE = re.compile(r"^<|\.o$")
_FILE = r"(?P<file>[^\s:][^:]*)"
_PLACE = rf"{_FILE}:(?P<line>\d+)"
_LINKER = r"(?:\S*/)?(?:ld(?:\.[\w-]+)?|mold|rust-lld)"


@dataclass(frozen=True, slots=True)
class _Form:
    """`before` and `after` find the place in a line near an error that does not say it."""

    kind: str
    pattern: re.Pattern[str]
    before: re.Pattern[str] | None = None
    after: re.Pattern[str] | None = None


def _form(kind: str, pattern: str, before: str = "", after: str = "") -> _Form:
    near = (re.compile(each) if each else None for each in (before, after))
    return _Form(kind, re.compile(pattern), *near)


# The first that fits counts. An empty text stands in the lines that follow.
_FORMS = (
    _form(
        CONSEQUENCE,
        r"^(?:[^\s:]+: )?(?:fatal )?error: (?P<text>(?:linker command failed|ld returned"
        r"|could not compile|aborting due to|linking with .* failed|failed to run custom build"
        r"|(?:all|some) warnings being treated|.* returned (?:exit code|\d+ exit)).*)",
    ),
    _form(
        LINK,
        rf"^(?:{_LINKER}: )?(?:[^\s:]+\.o:)?{_FILE}:(?:(?P<line>\d+)|\([^)]*\)|function [^:]+): "
        r"(?:error: )?(?P<text>(?:undefined reference to|multiple definition of) .+)",
    ),
    _form(
        LINK,
        rf"^{_LINKER}: (?:error|fatal): (?P<text>.+)",
        after=rf"^\s*>>> (?:referenced|defined) (?:by|at|in) (?:\S+ \({_PLACE}\)$|"
        r"(?P<other>[^\s:]+)(?::(?P<other_line>\d+))?$)",
    ),
    _form(
        LINK,
        rf"^{_LINKER}: (?P<text>cannot find .+|error loading plugin: .+|internal error .+"
        r"|(?!warning|NOTE)[^\s:]+: (?!in function|warning).+)",
    ),
    _form(
        COMPILE,
        rf"^{_PLACE}:(?:\d+:)? (?:fatal |internal compiler )?(?:[Ee]rror|ERROR): (?P<text>.+)",
    ),
    _form(PLAIN, r"^error(?:\[E\d+\])?: (?P<text>.+)", after=rf"^\s*--> {_PLACE}:\d+$"),
    _form(PANIC, rf"^thread '.*' (?:\(\d+\) )?panicked at {_PLACE}:\d+:(?P<text>)$"),
    _form("tool", r"^(?!make|gmake)[^\s:]+: (?:fatal )?[Ee]rror: (?P<text>.+)"),
    _form("cmake", rf"^CMake Error at {_PLACE} \(.*\):(?P<text>)$"),
    _form("cmake", r"^CMake Error: (?P<text>.+)"),
    _form("make", rf"^{_PLACE}: \*\*\* (?P<text>.+?)\.?(?:  Stop\.)?$"),
    _form("make", r"^\S*make(?:\[\d+\])?: \*\*\* (?P<text>No rule .+?)\.?(?:  Stop\.)?$"),
    _form(
        "shell",
        r"^(?:\S*make(?:\[\d+\])?): (?P<text>[^\s:]+: (?:No such file or directory"
        r"|Permission denied))$",
    ),
    _form(
        "shell",
        r"^(?:(?:\S*/)?(?:ba|da)?sh|(?P<file>[^\s:]+)): (?:line )?(?P<line>\d+): "
        r"(?P<text>.+: (?:command )?not found|[Ss]yntax error.*)$",
    ),
    _form("shell", r"^(?P<text>[\w.+-]+: (?:cannot |can't ).+: [A-Z][a-z ]+)$"),
    _form(
        "python",
        r"^(?P<text>(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Exit)(?:: .+)?)$",
        before=r'^\s*File "(?P<file>[^"<]+)", line (?P<line>\d+)',
    ),
)


@dataclass(frozen=True, slots=True)
class LoggedError:
    """An error in the line `at` of a log.

    `root` is the file that was compiled, as far as it is told; `folder` the one that a build system
    had entered, empty where there were several.
    """

    at: int
    kind: str
    text: str
    file: str = ""
    line: int = 0
    root: str = ""
    folder: str = ""


def lines_of(output: str) -> list[str]:
    """The lines of what a command printed, without colors, the beginning of long ones."""
    return [line[:_LONGEST_LINE].rstrip() for line in without_colors(output).splitlines()]


def errors_in(lines: Sequence[str]) -> Iterator[LoggedError]:
    """All errors in the lines of a log, in their order."""
    folders: list[str] = []
    roots: dict[str, str] = {}
    including = ""
    found = 0
    for at, line in enumerate(lines):
        entered, included = _FOLDER.match(line), _INCLUDED.match(line)
        if entered is not None:
            _enter(folders, entered["folder"], entering=entered["how"] == "Entering")
        elif included is not None:
            including = included["file"]  # the last of these lines names what was compiled
        elif _MAY_BE_ONE.search(line) and (error := _error(lines, at)) is not None:
            if including:
                roots[error.file] = including
            # In folders beside each other at once, nobody says whose line it is.
            nested = all(b.startswith(a) for a, b in pairwise(folders))
            yield replace(
                error,
                root=roots.get(error.file, error.file),
                folder=folders[-1] if folders and nested else "",
            )
            found += 1
        if _SAID_OF_PLACE.match(line):
            including = ""
        if found == _MOST_ERRORS:
            return


def _enter(folders: list[str], folder: str, *, entering: bool) -> None:
    if entering:
        folders.append(folder)
    elif folder in folders:
        folders.remove(folder)


def _error(lines: Sequence[str], at: int) -> LoggedError | None:
    line = _AROUND.sub("", lines[at])
    for form in _FORMS:
        match = form.pattern.match(line)
        if match is not None:
            break
    else:
        return None
    said = match.groupdict()
    file, number = said.get("file") or "", said.get("line") or ""
    near = None if file else _near(lines, at, form)
    if near is not None:
        places = near.groupdict()
        file = places.get("file") or places.get("other") or ""
        number = places.get("line") or places.get("other_line") or ""
    if _NO_SOURCE.search(file):  # an object, or what link-time optimization made
        file, number = "", ""
    text = said["text"].strip() or _following(lines, at, 1 if form.kind == PANIC else _NEAR_LINES)
    return LoggedError(at, form.kind, text, file, int(number[:9] or 0))


def _near(lines: Sequence[str], at: int, form: _Form) -> re.Match[str] | None:
    """The place of an error, in a line of its paragraph."""
    if form.before is not None:
        searched, pattern = reversed(lines[max(0, at - _NEAR_LINES) : at]), form.before
    elif form.after is not None:
        searched, pattern = iter(lines[at + 1 : at + _NEAR_LINES]), form.after
    else:
        return None
    matches = (pattern.match(line) for line in takewhile(str.strip, searched))
    return next(filter(None, matches), None)


def _following(lines: Sequence[str], at: int, most: int) -> str:
    """The first paragraph after a line."""
    return " ".join(map(str.strip, takewhile(str.strip, lines[at + 1 : at + 1 + most])))
