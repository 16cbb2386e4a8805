"""Runs of the meter in a sandbox: all programs of a run in one, with a loopback of their own.

The meter itself runs inside, made before any control group is entered; started by root it keeps
its rights there, which the programs do not have. Paths are the same inside and outside, but for
the folder of the run, which is short there.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Required, TypedDict, cast

from ensign.builders.sandbox_mounts import RESULTS, given_env, paths_in, sandbox_paths, tree_limits
from ensign.experiment.ports import Ports
from ensign.experiment.study_file import StudyFile
from ensign.host.cache import cache_folder
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement import Bind
from ensign.host.confinement_probe import NOBODY, Confinement, probe_confinement
from ensign.host.foreign_files import HostileFileError, hand_over, read_foreign
from ensign.host.processes import ProcessLimits
from ensign.host.root_directory import METER_INSIDE, ROOT_PATH
from ensign.host.temporary import TEMPORARY_NAME, temporary_folder
from ensign.meter.client import AsItIs, Json, Placed, Surroundings, find_meter
from ensign.model.errors import InputError
from ensign.model.placeholders import METER
from ensign.model.study_build import SandboxSection
from ensign.model.units import parse_size_bytes

WORK = "/tmp/work"  # noqa: S108  # of the sandbox alone
_TMP = "{tmp}"
_MOST_LOG_BYTES = 2**28
_LOCALE = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+|TZ")
_FEWEST_PARTS = 3  # of a path: what lies in the root is no one study's
_COUNTS_APART = (5, 14)  # the Linux since which each user namespace has its own count
_OF_THE_METER = 16
_MADE_ANEW = ("/proc", "/dev", "/sys")


class _Process(TypedDict, total=False):
    """Keys of a process in a request that are read or changed here; the rest stays as it is."""

    argv: Required[Sequence[str]]
    env: Mapping[str, str]
    clear_env: bool
    limits: Mapping[str, int]
    cwd: str | None
    root: str | None
    stdin: object
    stdout: object
    stderr: object


class _Load(TypedDict, total=False):
    process: _Process | None


class _Variant(TypedDict, total=False):
    program: Required[_Process]
    preload: Sequence[_Process]
    prepare: Sequence[_Process]
    cleanup: Sequence[_Process]
    load: _Load | None
    files: Mapping[str, Sequence[str]] | None


class _Contained(TypedDict, total=False):
    reads: Sequence[str]
    writes: Sequence[str]
    user: Mapping[str, int] | None
    tmp_bytes: int | None
    marks: bool


class _Request(TypedDict, total=False):
    process: _Process
    variants: Sequence[_Variant]
    containment: _Contained
    scratch: str


_Change = Callable[[_Process], _Process]


@dataclass(frozen=True, slots=True)
class ProgramRules:
    """Limits and mounts of programs in a sandbox.

    `env` are the variables that they get besides PATH, HOME, TMPDIR, locale and time zone.
    `read` and `write` are shown to them, and all that requests name; `hidden` is not. Each process
    tree has the `limits`, and may write `tmp_bytes` below its `{tmp}`. They begin in `cwd`, which
    is shown unless it is a home folder.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = False
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    tmp_bytes: int | None = None
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Sandboxed:
    """`Surroundings` in a confinement that works; `env` is the caller's environment."""

    confinement: Confinement
    env: Mapping[str, str]
    rules: ProgramRules

    @contextmanager
    def placed(self, meter: Path, request: Json) -> Iterator[Placed]:
        """See `Surroundings.placed`."""
        asked = cast("_Request", request)
        with temporary_folder("work") as folder:
            folder.chmod(0o711)
            self._hand_over(asked)
            logs = _logs_of(asked)
            for number in logs:
                self._make_log(folder / f"log-{number}")
            contained = cast("Json", self._contained(asked, meter))
            argv = self.confinement.argv(self._shown(meter, asked, folder), as_user=False)
            try:
                yield Placed(contained, argv, self._env_of_meter())
            finally:
                for number in logs:
                    _take_log(folder / f"log-{number}", number)

    def _shown(self, meter: Path, request: _Request, folder: Path) -> ConfinementRequest:
        home = self.env.get("HOME", "")
        rules, named = self.rules, _named_paths(request, home, self.rules.cwd)
        contained = request.get("containment", {})
        write = (*rules.write, *self._own(request))
        read = (meter, *rules.read, *named.read, *map(Path, contained.get("reads", ())))
        return ConfinementRequest(
            path=self.env.get("PATH", os.defpath),
            home=home,
            programs=tuple(
                program for program in named.programs if not any(map(program.is_relative_to, write))
            ),
            read=tuple(path for path in read if not any(map(path.is_relative_to, write))),
            write=write,
            binds=(
                # The meter copies them: their owner alone may read them.
                *(Bind(each, each) for each in named.copied),
                Bind(str(folder), WORK, writable=True),
            ),
            hidden=rules.hidden,
            begun=tuple(named.empty),
            cwd=self._cwd(named, home),
            network=rules.network,
            ends_with_parent=False,
            cgroups=True,
            inner_roots=_roots_in(request),
            meter=meter,
        )

    def _cwd(self, named: _NamedPaths, home: str) -> str:
        """Working directory of programs that have no other."""
        cwd = self.rules.cwd
        return str(cwd) if cwd is not None and cwd in (*named.read, Path(home)) else "/"

    def _contained(self, request: _Request, meter: Path) -> _Request:
        user = self.confinement.user
        contained: _Contained = {
            **request.get("containment", {}),
            "user": None if user is None else {"uid": user.uid, "gid": user.gid},
            "tmp_bytes": self.rules.tmp_bytes,
            "marks": False,
        }
        own = self._own_count(len(request.get("variants", ())))
        changed = _with_processes(request, partial(self._process, own=own))
        home = self.env.get("HOME", "")
        cwd = self._cwd(_named_paths(request, home, self.rules.cwd), home)
        changed = _with_processes(changed, partial(_in_root, meter=str(meter), cwd=cwd))
        return {**changed, "scratch": WORK, "containment": contained}

    def _own_count(self, variants: int) -> int | None:
        """Number of processes that a run may have, where the kernel counts those alone.

        It does where they have a user namespace of their own. Elsewhere this would count all of the
        user's.
        """
        most = self.rules.limits.tree_processes
        release = re.match(r"(\d+)\.(\d+)", os.uname().release)
        counts = release is not None and (int(release[1]), int(release[2])) >= _COUNTS_APART
        if most is None or self.confinement.root or not counts:
            return None
        return most * max(1, variants) + _OF_THE_METER

    def _process(self, process: _Process, own: int | None) -> _Process:
        held = {
            "tree_processes": self.rules.limits.tree_processes,
            "tree_memory_bytes": self.rules.limits.tree_memory_bytes,
            "processes": own,
        }
        limits = {key: most for key, most in held.items() if most is not None}
        return {
            **process,
            "argv": [_held_file().sub(rf"{WORK}/log-\1/log", word) for word in process["argv"]],
            "env": {**self._env_of_program(), **process.get("env", {})},
            "clear_env": True,
            "limits": {**limits, **process.get("limits", {})},
        }

    def _env_of_program(self) -> Mapping[str, str]:
        return {**self._locale(), "HOME": _TMP, "TMPDIR": _TMP, **self.rules.env}

    def _env_of_meter(self) -> Mapping[str, str]:
        # Programs of the same user can read it.
        return {**self._locale(), "TMPDIR": WORK}

    def _locale(self) -> Mapping[str, str]:
        usual = {name: text for name, text in self.env.items() if _LOCALE.fullmatch(name)}
        return {"PATH": self.env.get("PATH", os.defpath), **usual}

    def _hand_over(self, request: _Request) -> None:
        """Gives the programs of this run what was made for them to write to."""
        user = self.confinement.user
        if user is not None:
            hand_over(self._own(request), user)

    def _own(self, request: _Request) -> tuple[Path, ...]:
        writes = request.get("containment", {}).get("writes", ())
        return (*map(Path, writes), *_folders_of_ensign(request))

    def _make_log(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        user = self.confinement.user
        if user is not None:
            os.chown(path, user.uid, user.gid)


@dataclass(slots=True)
class _NamedPaths:
    """Absolute paths in the processes of a request."""

    programs: list[Path] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    # Where processes begin, but of which nothing is shown for that.
    empty: list[Path] = field(default_factory=list)


def _named_paths(request: _Request, home: str, folder: Path | None = None) -> _NamedPaths:
    """Parts of the machine that the programs of a request need, as far as it says so.

    `folder` is where they begin that have no other working directory.
    """
    paths = _NamedPaths()

    def take(process: _Process) -> _Process:
        words = process["argv"]
        cwd = process.get("cwd") or (str(folder) if folder else None)
        if "{" not in words[0]:
            paths.programs += _program(words[0], cwd)
        texts = [*words[1:], *process.get("env", {}).values()]
        texts += [path for path in (process.get("stdin"),) if isinstance(path, str)]
        plain = (text for text in texts if "{" not in text)
        paths.read += paths_in(plain, {"HOME": home})
        if cwd is not None and "{" not in cwd:
            paths.read.append(Path(cwd))
            paths.empty.append(Path(cwd))
        return process

    _with_processes(request, take)
    for variant in request.get("variants", ()):
        files = variant.get("files")
        paths.copied += files["folders"] if files else ()
    begins = dict.fromkeys(paths.empty)
    paths.empty = [path for path in begins if not may_be_shown(path, home)]
    paths.read = [path for path in dict.fromkeys(paths.read) if may_be_shown(path, home)]
    return paths


def _program(name: str, cwd: str | None) -> Iterator[Path]:
    if "/" in name:
        yield Path(cwd or "/", name)


def may_be_shown(path: Path, home: str) -> bool:
    """No home folder, nothing above one, and nothing that the sandbox has of its own."""
    is_home = path.parent == Path("/home") or (home and Path(home).is_relative_to(path))
    anew = any(path.is_relative_to(folder) for folder in _MADE_ANEW)
    return len(path.parts) >= _FEWEST_PARTS and not is_home and not anew


def _folders_of_ensign(request: _Request) -> tuple[Path, ...]:
    """Folders that ensign made for `{tmp}` of commands that are run one after the other."""
    paths: list[Path] = []
    made = re.compile(rf"/[^\s'\"=:,]*/(?:{TEMPORARY_NAME.pattern})(?![^/\s'\"])")

    def take(process: _Process) -> _Process:
        texts = [*process["argv"], *process.get("env", {}).values()]
        files = (process.get("stdin"), process.get("stdout"), process.get("stderr"))
        texts += [file for file in files if isinstance(file, str)]
        paths.extend(Path(path) for text in texts for path in made.findall(text))
        return process

    _with_processes(request, take)
    return tuple(path for path in dict.fromkeys(paths) if _is_own(path))


def _is_own(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid in (os.geteuid(), NOBODY.uid) and not folder.is_symlink()
    except OSError:
        return False


def _with_processes(request: _Request, change: _Change) -> _Request:
    """The request with each of its processes changed. Drives have none, and stay."""
    if "process" in request and "variants" not in request:
        return {**request, "process": change(request["process"])}
    variants = request.get("variants", ())
    return {**request, "variants": [_variant(variant, change) for variant in variants]}


def _variant(variant: _Variant, change: _Change) -> _Variant:
    def steps(asked: Sequence[_Process]) -> list[_Process]:
        return [change(process) if process.get("argv") else process for process in asked]

    changed: _Variant = {
        **variant,
        "program": change(variant["program"]),
        "preload": steps(variant.get("preload", ())),
        "prepare": steps(variant.get("prepare", ())),
        "cleanup": steps(variant.get("cleanup", ())),
    }
    load = variant.get("load")
    process = None if load is None else load.get("process")
    if load is None or process is None:
        return changed
    return {**changed, "load": {**load, "process": change(process)}}


def _held_file() -> re.Pattern[str]:
    return re.compile(rf"/proc/{os.getpid()}/fd/(\d+)")


def _logs_of(request: _Request) -> tuple[int, ...]:
    """Files without a name that ensign holds open for programs to write to."""
    numbers: list[int] = []

    def take(process: _Process) -> _Process:
        numbers.extend(
            int(number) for word in process["argv"] for number in _held_file().findall(word)
        )
        return process

    _with_processes(request, take)
    return tuple(dict.fromkeys(numbers))


def _take_log(path: Path, descriptor: int) -> None:
    """Copies what was written; what is no plain file, or too much, is nothing."""
    with suppress(HostileFileError):
        os.pwrite(descriptor, read_foreign(path / "log", _MOST_LOG_BYTES), 0)


def _in_root(process: _Process, meter: str, cwd: str) -> _Process:
    """A process with a root directory finds programs, and begins, as one does there."""
    if process.get("root") is None:
        return process
    words = process["argv"]
    own = words[0] in (meter, f"{{{METER}}}")
    argv = [METER_INSIDE, *words[1:]] if own else words
    env = {**process["env"], "PATH": ROOT_PATH}
    return {**process, "argv": argv, "env": env, "cwd": process.get("cwd") or cwd}


def _roots_in(request: _Request) -> tuple[Path, ...]:
    """The root directories that processes of a request run in."""
    paths: list[Path] = []

    def take(process: _Process) -> _Process:
        root = process.get("root")
        if isinstance(root, str):
            paths.append(Path(root))
        return process

    _with_processes(request, take)
    return tuple(dict.fromkeys(paths))


class StudySurroundings:
    """`Surroundings` in what confinement works here, which is tried before the first run."""

    def __init__(
        self, probe: Callable[[], Confinement], env: Mapping[str, str], rules: ProgramRules
    ) -> None:
        self._probe = probe
        self._env = env
        self._rules = rules
        self._lock = threading.Lock()
        self._known: Confinement | None = None

    @contextmanager
    def placed(self, meter: Path, request: Json) -> Iterator[Placed]:
        """See `Surroundings.placed`."""
        with self._lock:
            self._known = self._known or self._probe()
        place: Surroundings = AsItIs()
        if self._known.works:
            place = Sandboxed(self._known, self._env, self._rules)
        with place.placed(meter, request) as placed:
            yield placed


def confined_commands(ports: Ports, asked: str = "--confine") -> Ports:
    """Ports whose commands run in a sandbox. InputError where none works here.

    `asked` is the option that is it.
    """
    confinement = probe_confinement(ports.processes(), ports.env, find_meter())
    if not confinement.works:
        remedy = f"; {confinement.remedy}" if confinement.remedy else ""
        raise InputError(f"{asked} is not possible: {confinement.reason}{remedy}")
    usual = SandboxSection()
    rules = ProgramRules(
        cwd=Path.cwd(),
        limits=tree_limits(usual),
        tmp_bytes=parse_size_bytes(usual.disk),
    )
    return ports.raced_in(Sandboxed(confinement, ports.env, rules), confinement.said)


def confined_ports(file: StudyFile, ports: Ports) -> Ports:
    """Ports whose races take place in the study's confinement, if it wants any and one works here.

    InputError where what is named in `sandbox` is not there.
    """
    sandbox, folder = file.study.sandbox, file.folder
    if not sandbox.confined or ports.commands is not None:
        return ports
    rules = ProgramRules(
        env=given_env(sandbox, ports.env),
        read=(*_whole(folder, ports), *sandbox_paths(sandbox.read, folder, "read")),
        write=sandbox_paths(sandbox.write, folder, "write"),
        hidden=(cache_folder(ports.env), folder / RESULTS),
        network=sandbox.network,
        limits=tree_limits(sandbox),
        tmp_bytes=parse_size_bytes(sandbox.disk),
    )
    probe = partial(_probed, ports)
    return ports.raced_in(StudySurroundings(probe, ports.env, rules))


def inherited_library_path(sandbox: SandboxSection, env: Mapping[str, str]) -> str:
    """Folders in which loaders look after those of what was built: the caller's, if given."""
    given = given_env(sandbox, env) if sandbox.confined else env
    return given.get("LD_LIBRARY_PATH", "")


def _probed(ports: Ports) -> Confinement:
    return probe_confinement(ports.processes(), ports.env, find_meter())


def _whole(folder: Path, ports: Ports) -> tuple[Path, ...]:
    """The study's folder, unless it is a home folder, or above one."""
    return (folder,) if may_be_shown(folder, ports.env.get("HOME", "")) else ()
