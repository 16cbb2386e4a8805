"""The recorder around a build: what goes in front of PATH, and what was recorded."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePosixPath

from ensign.host.confined_view import rustup_home
from ensign.host.files import write_atomically
from ensign.host.regular_file import read_json
from ensign.meter.questions import command_line
from ensign.model.calls import Call, LinkInput, Output
from ensign.model.errors import InputError
from ensign.toolchains.find import Toolchain
from ensign.toolchains.places import THIS_MACHINE, ProgramPlace
from ensign.toolchains.table import Family

SOCKET = "socket"
PROGRAM = "recorder"
SETTINGS = "settings.json"
_FRONT = "front"
CALLS = "calls.jsonl"
DEPENDENCY_CALLS = "dependency-calls.jsonl"
COMPILE_COMMANDS = "compile_commands.json"

_SCHEMA = 1
# Names that projects call whatever they are told; these stay the system's own programs.
_PLAIN = {"ar": "ar", "ranlib": "ranlib", "nm": "nm", "ld": "ld", "as": "as"}
_CHANGING = {"objcopy": "objcopy", "llvm-objcopy": "objcopy", "strip": "strip",
             "llvm-strip": "strip"}  # fmt: skip
_LAUNCHERS = dict.fromkeys(("ccache", "sccache", "distcc", "icecc"), "launcher")
_OTHER_DRIVERS = {
    "gcc": "cc", "g++": "cxx", "clang": "cc", "clang++": "cxx", "cc": "cc", "c++": "cxx",
}  # fmt: skip
_VERSIONED = re.compile(r"(?:[\w.]+-)*(gcc|g\+\+|clang|clang\+\+)-\d+")
_ARCHIVERS = ("ar", "ranlib", "nm")
# With a prefix (`x86_64-linux-gnu-gcc`), a version, or both.
_NAMED = re.compile(r"(?:[\w.]+-)*(gcc|g\+\+|clang|clang\+\+|ar|ranlib|nm)(?:-\d+)?")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A program that is recorded: the name that calls it, its role, and where it really is."""

    name: str
    tool: str
    program: str


@dataclass(frozen=True, slots=True)
class UnitChanges:
    """Flags, instead of those `told` to the build, of calls that compile such sources.

    A call that the build gives none of its flags keeps its own. `programs` are the compilers, by
    role. `root` is the source's folder as builds see it. With `functions` these alone are changed,
    in the object of a call that is made as it was.
    """

    root: str
    patterns: tuple[str, ...]
    inverted: bool
    told: tuple[str, ...]
    flags: tuple[str, ...]
    programs: Mapping[str, str]
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """Flags added to calls that compile or link, and patterns of flags that are dropped.

    `program_only` are words that are dropped where a call makes a shared library, `units` what
    sources of their own get instead.
    """

    compile: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    program_only: tuple[str, ...] = ()
    units: UnitChanges | None = None


NO_CHANGES = Changes()


def recorded_programs(
    toolchain: Toolchain,
    path: str,
    place: ProgramPlace = THIS_MACHINE,
    *,
    in_place_of_others: bool = False,
) -> tuple[Recorded, ...]:
    """All names under which a build may call this toolchain, or another one past it.

    `cc` and `c++` are this toolchain's. A compiler of the other family, or plain `ar`, is run as
    it is: a build that calls it is to be found out, not mended in silence; but for builds where
    this toolchain stands in the place of the system's own compiler, whatever calls that.
    `place` is where programs are looked for.
    """
    programs: dict[str, Recorded] = {}

    def add(name: str, tool: str, program: str | None) -> None:
        if program and name not in programs:
            programs[name] = Recorded(name, tool, program)

    rust = toolchain.kind.family is Family.RUST
    add(*_compiler(toolchain))
    for tool in ("cxx", "ar", "ranlib", "nm", "ld"):
        program = str(getattr(toolchain, tool))
        add(PurePosixPath(program).name, tool, program)
    gcc = toolchain.kind.family is Family.GCC
    for name, tool, program in (
        ()
        if rust
        else (
            ("cc", "cc", toolchain.cc),
            ("c++", "cxx", toolchain.cxx),
            ("gcc" if gcc else "clang", "cc", toolchain.cc),
            ("g++" if gcc else "clang++", "cxx", toolchain.cxx),
        )
    ):
        add(name, tool, program)
    machine = f"{os.uname().machine}-linux-gnu-"  # a native compiler's other name
    if gcc or in_place_of_others:
        for prefix in ("", machine):
            add(f"{prefix}gcc", "cc", toolchain.cc)
            add(f"{prefix}g++", "cxx", toolchain.cxx)
    for name, tool in (
        *((f"{machine}{name}", tool) for name, tool in (*_OTHER_DRIVERS.items(), *_PLAIN.items())),
        *_OTHER_DRIVERS.items(),
        *_PLAIN.items(),
        *_CHANGING.items(),
        *_LAUNCHERS.items(),
    ):
        add(name, tool, place.which(name, path))
    for name, tool in _versioned(path, place):
        add(name, tool, place.which(name, path))
    return tuple(programs.values())


def _compiler(toolchain: Toolchain) -> tuple[str, str, str]:
    """Name, role and path of a compiler."""
    rust = toolchain.kind.family is Family.RUST
    return PurePosixPath(toolchain.cc).name, "rustc" if rust else "cc", toolchain.cc


def programs_on_path(path: str) -> tuple[Recorded, ...]:
    """All compilers, linkers and archivers of a search path, under their own names.

    For builds that nobody told which compiler to take.
    """
    names = {
        "cc": "cc",
        "c++": "cxx",
        "rustc": "rustc",
        **_OTHER_DRIVERS,
        **_PLAIN,
        **_CHANGING,
        **_LAUNCHERS,
    }
    names |= dict.fromkeys(("ld.bfd", "ld.gold", "ld.lld", "mold"), "ld")
    names |= {f"{prefix}-{tool}": tool for prefix in ("gcc", "llvm") for tool in _ARCHIVERS}
    names |= dict(_versioned(path, THIS_MACHINE, _NAMED))
    programs = ((name, tool, shutil.which(name, path=path)) for name, tool in names.items())
    return tuple(
        Recorded(name, tool, str(Path(at).absolute())) for name, tool, at in programs if at
    )


def identities(programs: Iterable[Recorded], path: str) -> list[tuple[str, str, int, int]]:
    """Identity of the programs that any build may call, to tell whether they changed.

    What rustup stands for is told by the lists of its toolchains.
    """
    files = [(program.name, Path(program.program).resolve()) for program in programs]
    if home := rustup_home(path):
        listed = Path(home).glob("toolchains/*/lib/rustlib/multirust-channel-manifest.toml")
        files += [
            ("rustup", manifest) for manifest in (Path(home, "settings.toml"), *sorted(listed))
        ]
    seen = [(name, file, file.stat()) for name, file in files if file.exists()]
    return [(name, str(real), at.st_size, at.st_mtime_ns) for name, real, at in seen]


def _versioned(
    path: str, place: ProgramPlace, names: re.Pattern[str] = _VERSIONED
) -> Iterator[tuple[str, str]]:
    """Compilers on PATH whose names say a version, with their roles."""
    for folder in path.split(os.pathsep):
        # Names alone are sorted, the few that match: paths compare slowly, and folders are large.
        matches = filter(None, map(names.fullmatch, place.names_in(folder)))
        for match in sorted(matches, key=itemgetter(0)):
            yield match[0], _OTHER_DRIVERS.get(match[1], match[1])


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a recorder: a folder, and the path by which builds see it."""

    folder: Path
    seen_as: str


@dataclass(frozen=True, slots=True)
class Keeping:
    """True if calls are recorded, and whether builds are confined, so that nobody forges them."""

    records: bool = True
    confined: bool = True


def set_up(
    place: Place,
    meter: Path,
    programs: Iterable[Recorded],
    changes: Changes,
    keeping: Keeping = Keeping(),
) -> None:
    """Make the folder of links, the program that they lead to, and its settings."""
    folder, programs = place.folder, tuple(programs)
    (folder / "bin").mkdir(parents=True)
    shutil.copyfile(meter, folder / PROGRAM)
    # What cannot be read cannot be traced from its start, not by who may execute it either; but
    # build systems such as CMake want to read a compiler.
    hidden = keeping.records and keeping.confined
    (folder / PROGRAM).chmod(0o111 if hidden else 0o555)
    front = _FRONT if hidden else PROGRAM
    if hidden:
        shutil.copyfile(meter, folder / front)
        (folder / front).chmod(0o555)
    for program in programs:
        (folder / "bin" / program.name).symlink_to(f"../{front}")
    settings = {
        **_settings(programs, f"{place.seen_as}/{SOCKET}" if keeping.records else ""),
        "untraceable": hidden,
        **({"recorder": f"{place.seen_as}/{PROGRAM}"} if hidden else {}),
        "compile": changes.compile,
        "link": changes.link,
        "remove": changes.remove,
        **({"program_only": changes.program_only} if changes.program_only else {}),
        **({"units": asdict(changes.units)} if changes.units is not None else {}),
    }
    write_atomically(folder / SETTINGS, json.dumps(settings).encode(), mode=0o444)
    for name, mode in ((SETTINGS, 0o444), ("bin", 0o555)):  # whatever the umask is
        (folder / name).chmod(mode)


def listen_at(folder: Path, links: Path, programs: Iterable[Recorded]) -> dict[str, str]:
    """Makes a recorder that sends calls of `links`, which records nothing, to a socket in `folder`.

    The links may outlive the socket: build systems keep the paths of compilers that they found.
    Gives what to add to a command's environment, without PATH.
    """
    (folder / PROGRAM).symlink_to(links / PROGRAM)
    settings = _settings(programs, str(folder / SOCKET))
    write_atomically(folder / SETTINGS, json.dumps(settings).encode())
    return {"ENSIGN_RECORDER": str(folder / SETTINGS)}


def _settings(programs: Iterable[Recorded], socket: str) -> dict[str, object]:
    return {
        "schema": _SCHEMA,
        **({"socket": socket} if socket else {}),
        "tools": {
            program.name: {"tool": program.tool, "program": program.program} for program in programs
        },
    }


def environment(seen_as: str, path: str) -> dict[str, str]:
    """Variables that a build needs for its calls to be recorded."""
    return {"PATH": f"{seen_as}/bin:{path}", "ENSIGN_RECORDER": f"{seen_as}/settings.json"}


def read_calls(file: Path, skip: int = 0) -> tuple[Call, ...]:
    """The calls after the first `skip`, in the order in which they ended; none without a file."""
    if not file.exists():
        return ()
    try:
        with file.open() as lines:
            return tuple(call_of(line) for line in islice(lines, skip, None))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        text = f"{file} is damaged; delete {file.parent}, and it is built again"
        raise InputError(text) from None


def call_of(line: str) -> Call:
    """One line of a record. ValueError, KeyError, TypeError, AttributeError or OverflowError."""
    raw: dict[str, object] = read_json(line)
    outputs, inputs = raw["outputs"], raw.get("inputs")
    exit_status = raw["exit"]
    return Call(
        tool=str(raw["tool"]),
        program=str(raw["program"]),
        argv=_words(raw["argv"]),
        ran=_words(raw["ran"]),
        cwd=str(raw["cwd"]),
        started_unix_ns=int(str(raw["started_unix_ns"])),
        wall_ns=int(str(raw["wall_ns"])),
        exit=exit_status if isinstance(exit_status, int) else None,
        outputs=tuple(
            Output(str(output["path"]), str(output["sha256"]), int(output["size_bytes"]))
            for output in (outputs if isinstance(outputs, list) else ())
        ),
        inputs=tuple(map(_input, inputs if isinstance(inputs, list) else ())),
        line=command_line(raw["line"]),
        variables=_words(raw.get("variables")),
    )


def _input(raw: dict[str, object]) -> LinkInput:
    members = raw["members"]
    return LinkInput(
        path=str(raw["path"]),
        kind=str(raw["kind"]),
        sha256=str(raw["sha256"]),
        members=tuple(
            (str(member["name"]), str(member["sha256"]))
            for member in (members if isinstance(members, list) else ())
        ),
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def compile_commands(calls: Sequence[Call]) -> list[dict[str, object]]:
    """The calls that compiled, in the form that clang's tools and editors read."""
    return list(_compile_commands(calls))


def _compile_commands(calls: Sequence[Call]) -> Iterator[dict[str, object]]:
    for call in calls:
        if not call.is_compiler or call.exit != 0 or not call.outputs:
            continue
        for source in call.line.sources:
            yield {
                "directory": call.cwd,
                "file": source,
                "arguments": [call.program, *call.ran[1:]],
                "output": call.outputs[0].path,
            }
