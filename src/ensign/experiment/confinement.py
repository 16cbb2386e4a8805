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
from typing import cast

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
from ensign.model.study_build import SandboxSection
from ensign.model.units import parse_size_bytes

WORK = "/tmp/work"  # noqa: S108  # of the sandbox alone
_TMP = "{tmp}"
_MOST_LOG_BYTES = 2**28
_LOCALE = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+|TZ")
_Change = Callable[[Json], Json]
_FEWEST_PARTS = 3  # of a path: what lies in the root is no one study's
_COUNTS_APART = (5, 14)  # the Linux since which each user namespace has its own count
_OF_THE_METER = 16
_FILES = ("stdin", "stdout", "stderr")
_MADE_ANEW = ("/proc", "/dev", "/sys")


@dataclass(frozen=True, slots=True)
class ProgramRules:
    """What holds for programs in a sandbox.

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
        with temporary_folder("work") as folder:
            folder.chmod(0o711)
            self._hand_over(request)
            logs = _logs_of(request)
            for number in logs:
                self._make_log(folder / f"log-{number}")
            asked = self._contained(request, meter)
            argv = self.confinement.argv(self._shown(meter, request, folder), as_user=False)
            try:
                yield Placed(asked, argv, self._env_of_meter())
            finally:
                for number in logs:
                    _take_log(folder / f"log-{number}", number)

    def _shown(self, meter: Path, request: Json, folder: Path) -> ConfinementRequest:
        home = self.env.get("HOME", "")
        rules, named = self.rules, named_paths(request, home, self.rules.cwd)
        contained = cast("Mapping[str, Sequence[str]]", request.get("containment", {}))
        write = (*rules.write, *self._own(request))
        read = (meter, *rules.read, *named.read, *map(Path, contained.get("reads", ())))
        return ConfinementRequest(
            path=self.env.get("PATH", os.defpath),
            home=home,
            programs=tuple(
                each for each in named.programs if not any(map(each.is_relative_to, write))
            ),
            read=tuple(each for each in read if not any(map(each.is_relative_to, write))),
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
            inner_roots=roots_in(request),
            meter=meter,
        )

    def _cwd(self, named: NamedPaths, home: str) -> str:
        """Where programs begin that have no other working directory."""
        cwd = self.rules.cwd
        return str(cwd) if cwd is not None and cwd in (*named.read, Path(home)) else "/"

    def _contained(self, request: Json, meter: Path) -> Json:
        user = self.confinement.user
        asked = cast("Json", request.get("containment", {}))
        contained = {
            **asked,
            "user": None if user is None else {"uid": user.uid, "gid": user.gid},
            "tmp_bytes": self.rules.tmp_bytes,
            "marks": False,
        }
        own = self._own_count(len(cast("Sequence[Json]", request.get("variants", ()))))
        changed = with_processes(request, partial(self._process, own=own))
        home = self.env.get("HOME", "")
        cwd = self._cwd(named_paths(request, home, self.rules.cwd), home)
        changed = with_processes(changed, partial(_in_root, meter=str(meter), cwd=cwd))
        return {**changed, "scratch": WORK, "containment": contained}

    def _own_count(self, variants: int) -> int | None:
        """How many processes all of a run may have together, where the kernel counts those alone.

        It does where they have a user namespace of their own. Elsewhere this would count all of the
        user's.
        """
        most = self.rules.limits.tree_processes
        release = re.match(r"(\d+)\.(\d+)", os.uname().release)
        counts = release is not None and (int(release[1]), int(release[2])) >= _COUNTS_APART
        if most is None or self.confinement.root or not counts:
            return None
        return most * max(1, variants) + _OF_THE_METER

    def _process(self, process: Json, own: int | None) -> Json:
        env = cast("Mapping[str, str]", process.get("env", {}))
        limits = cast("Json", process.get("limits", {}))
        held = {
            "tree_processes": self.rules.limits.tree_processes,
            "tree_memory_bytes": self.rules.limits.tree_memory_bytes,
            "processes": own,
        }
        words = cast("Sequence[str]", process["argv"])
        return {
            **process,
            "argv": [_held_file().sub(rf"{WORK}/log-\1/log", word) for word in words],
            "env": {**self._env_of_program(), **env},
            "clear_env": True,
            "limits": {**{key: most for key, most in held.items() if most is not None}, **limits},
        }

    def _env_of_program(self) -> Mapping[str, str]:
        return {**self._locale(), "HOME": _TMP, "TMPDIR": _TMP, **self.rules.env}

    def _env_of_meter(self) -> Mapping[str, str]:
        # Programs of the same user can read it.
        return {**self._locale(), "TMPDIR": WORK}

    def _locale(self) -> Mapping[str, str]:
        usual = {name: text for name, text in self.env.items() if _LOCALE.fullmatch(name)}
        return {"PATH": self.env.get("PATH", os.defpath), **usual}

    def _hand_over(self, request: Json) -> None:
        """What was made for the programs of this run to write to becomes theirs."""
        user = self.confinement.user
        if user is not None:
            hand_over(self._own(request), user)

    def _own(self, request: Json) -> tuple[Path, ...]:
        contained = cast("Mapping[str, Sequence[str]]", request.get("containment", {}))
        return (*map(Path, contained.get("writes", ())), *_folders_of_ensign(request))

    def _make_log(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        user = self.confinement.user
        if user is not None:
            os.chown(path, user.uid, user.gid)


@dataclass(slots=True)
class NamedPaths:
    """Absolute paths in the processes of a request."""

    programs: list[Path] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    # Where processes begin, but of which nothing is shown for that.
    empty: list[Path] = field(default_factory=list)


def named_paths(request: Json, home: str, folder: Path | None = None) -> NamedPaths:
    """What the programs of a request need of the machine, as far as it says so.

    `folder` is where they begin that have no other working directory.
    """
    found = NamedPaths()

    def take(process: Json) -> Json:
        words = cast("Sequence[str]", process["argv"])
        cwd = cast("str | None", process.get("cwd")) or (str(folder) if folder else None)
        if "{" not in words[0]:
            found.programs += _program(words[0], cwd)
        texts = [*words[1:], *cast("Mapping[str, str]", process.get("env", {})).values()]
        texts += [each for each in (process.get("stdin"),) if isinstance(each, str)]
        plain = (text for text in texts if "{" not in text)
        found.read += paths_in(plain, {"HOME": home})
        if cwd is not None and "{" not in cwd:
            found.read.append(Path(cwd))
            found.empty.append(Path(cwd))
        return process

    with_processes(request, take)
    for variant in cast("Sequence[Json]", request.get("variants", ())):
        files = cast("Mapping[str, Sequence[str]] | None", variant.get("files"))
        found.copied += files["folders"] if files else ()
    begins = dict.fromkeys(found.empty)
    found.empty = [each for each in begins if not may_be_shown(each, home)]
    found.read = [each for each in dict.fromkeys(found.read) if may_be_shown(each, home)]
    return found


def _program(name: str, cwd: str | None) -> Iterator[Path]:
    if "/" in name:
        yield Path(cwd or "/", name)


def may_be_shown(path: Path, home: str) -> bool:
    """No home folder, nothing above one, and nothing that the sandbox has of its own."""
    is_home = path.parent == Path("/home") or (home and Path(home).is_relative_to(path))
    anew = any(path.is_relative_to(each) for each in _MADE_ANEW)
    return len(path.parts) >= _FEWEST_PARTS and not is_home and not anew


def _folders_of_ensign(request: Json) -> tuple[Path, ...]:
    """Folders that ensign made for `{tmp}` of commands that are run one after the other."""
    found: list[Path] = []
    made = re.compile(rf"/[^\s'\"=:,]*/(?:{TEMPORARY_NAME.pattern})(?![^/\s'\"])")

    def take(process: Json) -> Json:
        texts = [*cast("Sequence[str]", process["argv"])]
        texts += cast("Mapping[str, str]", process.get("env", {})).values()
        texts += [each for key in _FILES if isinstance(each := process.get(key), str)]
        found.extend(Path(each) for text in texts for each in made.findall(text))
        return process

    with_processes(request, take)
    return tuple(each for each in dict.fromkeys(found) if _is_own(each))


def _is_own(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid in (os.geteuid(), NOBODY.uid) and not folder.is_symlink()
    except OSError:
        return False


def with_processes(request: Json, change: _Change) -> Json:
    """The request with each of its processes changed. Drives have none, and stay."""
    if "process" in request and "variants" not in request:
        return {**request, "process": change(cast("Json", request["process"]))}
    variants = cast("Sequence[Json]", request.get("variants", ()))
    return {**request, "variants": [_variant(each, change) for each in variants]}


def _variant(variant: Json, change: _Change) -> Json:
    changed = {**variant, "program": change(cast("Json", variant["program"]))}
    for key in ("preload", "prepare", "cleanup"):
        steps = cast("Sequence[Json]", variant.get(key, ()))
        changed[key] = [change(each) if each.get("argv") else each for each in steps]
    load = cast("Json | None", variant.get("load"))
    if load is not None and load.get("process") is not None:
        changed["load"] = {**load, "process": change(cast("Json", load["process"]))}
    return changed


def _held_file() -> re.Pattern[str]:
    return re.compile(rf"/proc/{os.getpid()}/fd/(\d+)")


def _logs_of(request: Json) -> tuple[int, ...]:
    """Files without a name that ensign holds open for programs to write to."""
    found: list[int] = []

    def take(process: Json) -> Json:
        words = cast("Sequence[str]", process["argv"])
        found.extend(int(each) for word in words for each in _held_file().findall(word))
        return process

    with_processes(request, take)
    return tuple(dict.fromkeys(found))


def _take_log(path: Path, descriptor: int) -> None:
    """Copies what was written; what is no plain file, or too much, is nothing."""
    with suppress(HostileFileError):
        os.pwrite(descriptor, read_foreign(path / "log", _MOST_LOG_BYTES), 0)


def _in_root(process: Json, meter: str, cwd: str) -> Json:
    """A process with a root directory finds programs, and begins, as one does there."""
    if process.get("root") is None:
        return process
    env = {**cast("Mapping[str, str]", process["env"]), "PATH": ROOT_PATH}
    words = cast("Sequence[str]", process["argv"])
    argv = [METER_INSIDE, *words[1:]] if words[0] == meter else words
    return {**process, "argv": argv, "env": env, "cwd": process.get("cwd") or cwd}


def roots_in(request: Json) -> tuple[Path, ...]:
    """The root directories that processes of a request run in."""
    found: list[Path] = []

    def take(process: Json) -> Json:
        root = process.get("root")
        if isinstance(root, str):
            found.append(Path(root))
        return process

    with_processes(request, take)
    return tuple(dict.fromkeys(found))


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
    """Where loaders look after the folders of what was built: the caller's, if it is given."""
    given = given_env(sandbox, env) if sandbox.confined else env
    return given.get("LD_LIBRARY_PATH", "")


def _probed(ports: Ports) -> Confinement:
    return probe_confinement(ports.processes(), ports.env, find_meter())


def _whole(folder: Path, ports: Ports) -> tuple[Path, ...]:
    """The study's folder, unless it is a home folder, or above one."""
    return (folder,) if may_be_shown(folder, ports.env.get("HOME", "")) else ()
