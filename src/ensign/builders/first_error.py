"""The error that failed a build, from what was printed and what was recorded. Pure.

Of several errors that of the target counts which `make` or `ninja` gave up; or else the first of
what was said last to be wrong, for what a build tolerates comes before.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, takewhile
from pathlib import PurePosixPath

from ensign.host.processes import without_colors
from ensign.model.builds import BuildError
from ensign.model.calls import Call
from ensign.model.quoting import shortened

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
    near = (re.compile(text) if text else None for text in (before, after))
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
    _form("tool", r"^(?:checking .*\.\.\. *)?configure: error:(?P<text>.*)$"),
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
    count = 0
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
            count += 1
        if _SAID_OF_PLACE.match(line):
            including = ""
        if count == _MOST_ERRORS:
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
    parts = match.groupdict()
    file, number = parts.get("file") or "", parts.get("line") or ""
    near = None if file else _near(lines, at, form)
    if near is not None:
        places = near.groupdict()
        file = places.get("file") or places.get("other") or ""
        number = places.get("line") or places.get("other_line") or ""
    if _NO_SOURCE.search(file):  # an object, or what link-time optimization made
        file, number = "", ""
    text = parts["text"].strip() or _following(lines, at, 1 if form.kind == PANIC else _NEAR_LINES)
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
    below = dropwhile(lambda line: not line.strip(), lines[at + 1 : at + 1 + most])
    return " ".join(map(str.strip, takewhile(str.strip, below)))


_LONGEST_TEXT = 240
_SHOWN_LINES = 12
_GIVEN_UP = re.compile(
    r"^\S*make(?:\[\d+\])?: \*\*\* \[(?:(?P<file>[^\]\s:]+):(?P<line>\d+): )?(?P<target>[^\]]+)\]"
    r" (?P<how>.+)$"
)
_IGNORED = re.compile(r"^\S*make(?:\[\d+\])?: \[.*\] .*\(ignored\)$")
_NINJA = re.compile(r"^FAILED: (?:\[code=\d+\] )?(?P<target>.+)$")
_NINJA_NEXT = re.compile(r"^(?:FAILED: |\[\d+/\d+\] |ninja: )")
# An error that is an option's: newer compilers make one of what was a warning, or `-Werror` does.
_OPTION = re.compile(r"\s*\[-W(?P<turned>error[=,](?:-W)?)?(?P<name>[a-z][\w+-]*)\]$")
_REFUSED = {
    "implicit-function-declaration": "Clang 16, GCC 14 and later refuse implicit declarations",
    "implicit-int": "Clang 16, GCC 14 and later refuse declarations without a type",
    "incompatible-function-pointer-types": "Clang 16 and later refuse such pointers to functions",
    "int-conversion": "Clang 15, GCC 14 and later refuse integers as pointers",
}
_PLAIN_ROWS = (
    (
        re.compile(r"cannot find \S*/llvm-(\d+)/\S*/libclang_rt\.profile\S*"),
        r"Clang's profile runtime is missing: Debian and Ubuntu have it in libclang-rt-\1-dev",
    ),
)


@dataclass(frozen=True, slots=True)
class _Window:
    """Part of a log in which the cause is looked for, and what a build system gave up there."""

    begin: int
    end: int
    target: str = ""
    given_up: re.Match[str] | None = None


@dataclass(frozen=True, slots=True)
class _Cause:
    error: LoggedError
    call: Call | None

    @property
    def owner(self) -> object:
        """Key that errors of one call, or of one compiled file, share."""
        if self.call is not None:
            return self.call.started_unix_ns, self.call.argv
        return self.error.kind, self.error.root if self.error.kind == COMPILE else ""

    def made(self, target: str) -> bool:
        """True if it is about what was to make the target, by its call or by its name."""
        if self.call is not None and self.call.line.output is not None:
            return PurePosixPath(self.call.line.output).name == PurePosixPath(target).name
        root, stem = self.error.root, PurePosixPath(target).name.partition(".")[0]
        return bool(root) and stem.endswith(PurePosixPath(root).stem)


def first_error(output: str, calls: Sequence[Call] = (), tree: str = "") -> BuildError | None:
    """Why a command failed that printed `output`; None where that cannot be told.

    `calls` are the compiler calls that were recorded. `tree` is the path of the source as commands
    see it, to which names of files become relative.
    """
    lines = lines_of(output)
    window = _window(lines)
    failed = [call for call in calls if call.exit != 0]
    causes = [
        _Cause(error, _call_of(error, failed))
        for error in errors_in(lines)
        if window.begin <= error.at < window.end
    ]
    chosen = _chosen(_without_consequences(causes), window.target)
    if chosen is not None:
        known = chosen.made(window.target) if window.target else False
        if known or not _went_on(chosen.call, calls):
            return _build_error(chosen, tree)
    given_up = window.given_up
    if given_up is None:
        return None
    text = f"'{given_up['target']}' ended with {given_up['how']}"
    return BuildError(given_up["file"] or "", int((given_up["line"] or "0")[:9]), text)


def excerpt(output: str, error: BuildError | None) -> tuple[str, ...]:
    """The lines of an output from an error on, or its last ones."""
    lines = [line for line in lines_of(output) if line.strip()]
    begin = max(0, len(lines) - _SHOWN_LINES)
    if error is not None:
        words = error.text.removesuffix("…")
        begin = next((max(0, at - 1) for at, line in enumerate(lines) if words in line), begin)
    return tuple(lines[begin : begin + _SHOWN_LINES])


def _window(lines: Sequence[str]) -> _Window:
    begin = 0
    for at, line in enumerate(lines):
        ninja, given_up = _NINJA.match(line), _GIVEN_UP.match(line)
        if ninja is not None:
            after = takewhile(lambda line: not _NINJA_NEXT.match(line), lines[at + 1 :])
            return _Window(at, at + 1 + sum(1 for _ in after), ninja["target"].strip())
        if _IGNORED.match(line):
            begin = at
        elif given_up is not None:
            return _Window(begin, at, given_up["target"], given_up)
    return _Window(0, len(lines))


def _without_consequences(causes: list[_Cause]) -> list[_Cause]:
    for kinds in ((CONSEQUENCE, PANIC), (CONSEQUENCE,)):
        rest = [cause for cause in causes if cause.error.kind not in kinds]
        if rest:
            return rest
    return causes


def _chosen(causes: Sequence[_Cause], target: str) -> _Cause | None:
    if target:
        of_target = [cause for cause in causes if cause.made(target)]
        if of_target:
            return of_target[0]
    if not causes:
        return None
    last = causes[-1].owner
    return list(takewhile(lambda cause: cause.owner == last, reversed(causes)))[-1]


def _call_of(error: LoggedError, failed: Sequence[Call]) -> Call | None:
    """The failed call that said it, where only one may have."""
    if error.kind in (COMPILE, PLAIN) and error.root:
        calls = [call for call in failed if _path(error.root, call.cwd) in _sources(call)]
        return calls[-1] if calls else None
    linking = [call for call in failed if call.line.links or call.tool == "ld"]
    return linking[0] if error.kind == LINK and len(linking) == 1 else None


def _sources(call: Call) -> set[str]:
    return {_path(source, call.cwd) for source in call.line.sources}


def _path(name: str, folder: str) -> str:
    return os.path.normpath(f"{folder}/{name}" if not name.startswith("/") else name)


def _went_on(call: Call | None, calls: Sequence[Call]) -> bool:
    """True if a build compiled on after a call had failed, so that it did not fail for that."""
    if call is None:
        return False
    ended_ns = call.started_unix_ns + call.wall_ns
    return any(later.exit == 0 and later.started_unix_ns > ended_ns for later in calls)


def _build_error(cause: _Cause, tree: str) -> BuildError:
    error = cause.error
    file, folder = error.file, error.folder if cause.call is None else cause.call.cwd
    if file and folder:
        file = _path(file, _path(folder, tree))
    if tree and file.startswith(f"{tree}/"):
        file = file.removeprefix(f"{tree}/")
    elif not error.file.startswith("/"):
        file = error.file  # it lies elsewhere than where the commands began
    text = shortened(without_option(error.text), _LONGEST_TEXT)
    return BuildError(file, error.line, text, compiler_hint(error.text))


def without_option(text: str) -> str:
    """An error without the name of the option that it ends in."""
    return _OPTION.sub("", text)


def compiler_hint(text: str) -> str:
    """Remedy for an error, as its tool says it; empty where nothing is known."""
    for pattern, sentence in _PLAIN_ROWS:
        match = pattern.search(text)
        if match is not None:
            return match.expand(sentence)
    option = _OPTION.search(text)
    if option is None:
        return ""
    name = option["name"]
    why = _REFUSED.get(name, "this compiler refuses it by default")
    if option["turned"]:
        why = "the project makes errors of warnings (-Werror)"
    flag = f"-Wno-{name}"
    return f'{why}; compile with {flag} (in a study: build.rewrite.compile = ["{flag}"])'
