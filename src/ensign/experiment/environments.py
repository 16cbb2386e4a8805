"""Root directories as environments: by name, what is in one, and one command raced in several."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from ensign.builders.environments import environments_of_study
from ensign.experiment.compare.options import Options
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache
from ensign.experiment.study_file import read_study
from ensign.host.cache import Cache
from ensign.host.files import file_sha256
from ensign.host.machine import read_machine
from ensign.host.processes import Processes
from ensign.host.regular_file import read_regular
from ensign.host.root_directory import RootDirectory, lies_in
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import ENVIRONMENTS
from ensign.model.findings import Finding
from ensign.model.study_environment import HOST, Environment
from ensign.model.validation import first_error
from ensign.proof.identity import read_identity
from ensign.sources.debian import parse_deb822
from ensign.sources.environments import EnvironmentPorts, obtain_environment

UNKNOWN = "unknown"
_STATUS = "/var/lib/dpkg/status"
# What the C library says of itself when it is run; its symbols may all be older.
_BANNER = re.compile(
    rb"GNU C Library [^\0\n]{0,200}release version (\d{1,3}\.\d{1,3}(?:\.\d{1,5})?)"
)
_MOST_BYTES = 64 << 20
_MUSL = re.compile(r"ld-musl-[\w.-]+\.so\.\d+")


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """Distribution and C library by name and version, and what they hold.

    `choices` are the functions of libc and libm
    of which one of several is chosen for the processor, `packages` versions by name.
    """

    distribution: str
    libc: str
    choices: dict[str, tuple[str, ...]]
    packages: dict[str, str]


def system_of(root: RootDirectory) -> SystemFiles:
    """Look at it; what it does not tell is `unknown`, or nothing."""
    places = {name: _library(root, name) for name in ("libc.so.6", "libm.so.6")}
    libraries = {name: read_identity(path) for name, path in places.items() if path is not None}
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', root.text("/etc/os-release"), re.MULTILINE)
    return SystemFiles(
        distribution=release[1] if release else UNKNOWN,
        libc=_libc(root, places["libc.so.6"]),
        choices={
            name: tuple(sorted(identity.ifuncs))
            for name, identity in libraries.items()
            if identity is not None
        },
        packages=dict(_packages(root)),
    )


def _folders(root: RootDirectory) -> Iterator[str]:
    for above in ("/lib64", "/usr/lib64", "/lib", "/usr/lib"):
        yield above
        yield from (f"{above}/{name}" for name in root.names_in(above) if "-linux-" in name)


def _library(root: RootDirectory, name: str) -> Path | None:
    for folder in _folders(root):
        place = root.place(f"{folder}/{name}")
        identity = read_identity(place) if place is not None and place.is_file() else None
        if identity is not None and identity.bits == 64:  # noqa: PLR2004
            return place
    return None


def _libc(root: RootDirectory, library: Path | None) -> str:
    if library is not None:
        with suppress(OSError):
            banner = _BANNER.search(read_regular(library, _MOST_BYTES, follow=False))
            return f"glibc {banner[1].decode()}" if banner else UNKNOWN
    if any(_MUSL.fullmatch(name) for name in root.names_in("/lib")):
        return "musl"
    return UNKNOWN


def _packages(root: RootDirectory) -> Iterator[tuple[str, str]]:
    for package in parse_deb822(root.text(_STATUS)):
        if "package" in package and package.get("status", "").endswith(" installed"):
            yield package["package"], package.get("version", "")


DEBIAN = "debian:"
FORMS = (
    f"{HOST}, debian:RELEASE (debian:bookworm:PACKAGE:… with packages), the path of a root "
    "directory or of a tar archive of one (with a slash), or a name of --study FILE"
)


@dataclass(frozen=True, slots=True)
class NamedEnvironments:
    """Finds root directories by name; `study` is the file whose [environments] may be named."""

    study: Path | None
    processes: Processes
    cache: Cache
    env: Mapping[str, str]

    def root(self, name: str) -> RootDirectory | None:
        """The root directory of that name; None for this machine.

        InputError where there is none of that name, NoEnvironment where it cannot be had here.
        """
        if name == HOST:
            return None
        if name.startswith(DEBIAN):
            suite, *packages = name.removeprefix(DEBIAN).split(":")
            return self._of(name, {"debian": suite, "packages": packages})
        if "/" in name:
            path = Path(name)
            if path.is_file():
                return self._of(name, {"archive": str(path), "sha256": file_sha256(path)})
            return self._of(name, {"directory": name})
        return self._of_study(name)

    def _of(self, name: str, said: Mapping[str, object]) -> RootDirectory:
        try:
            environment = Environment.model_validate(said)
        except ValidationError as error:
            raise InputError(f"environment '{name}': {first_error(error)}") from None
        ports = EnvironmentPorts(self.processes, self.cache, self.env, Path.cwd())
        return obtain_environment(name, environment, ports)

    def _of_study(self, name: str) -> RootDirectory:
        if self.study is None:
            raise InputError(f"there is no environment '{name}'; name {FORMS}")
        study = read_study(self.study).study
        if name not in study.environments:
            there = ", ".join([*study.environments, HOST])
            raise InputError(f"{self.study} has no environment '{name}'; there are {there}")
        effects = (self.processes, self.cache, self.env)
        return environments_of_study(study, self.study, name, effects)


_FEWEST = 2
OPTION = "--environments"


@contextmanager
def in_environments(
    said: str | None, study: Path | None, options: Options, ports: Ports
) -> Iterator[tuple[Options, tuple[Finding, ...]]]:
    """The options with the command once in each of `A,B,…`, and what these are.

    InputError where one is not there, cannot be had here, or does not have the command's program.
    """
    if said is None:
        if study is not None:
            raise InputError(f"--study names the file whose environments {OPTION} are; give that")
        yield options, ()
        return
    names = _names(said)
    _check(options)
    with open_cache(ports) as cache:
        environments = NamedEnvironments(study, ports.processes(), cache, ports.env)
        roots = [(name, environments.root(name)) for name in names]
        (command,) = options.commands
        for name, root in roots:
            _require_program(command, name, root, shell=bool(options.shell))
        yield (
            replace(
                options,
                commands=(command,) * len(names),
                names=names,
                roots=tuple("" if root is None else str(root.folder) for _, root in roots),
            ),
            (_told(command, roots),),
        )


def _names(said: str) -> tuple[str, ...]:
    names = tuple(word.strip() for word in said.split(","))
    if len(names) < _FEWEST or not all(names):
        raise InputError(f"{OPTION} {said!r} names no two environments: A,B, each {FORMS}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{OPTION} names '{name}' twice; the A/A twin shows that already")
    return names


def _check(options: Options) -> None:
    if len(options.commands) > 1:
        quoted = shlex.quote(" ".join(options.commands))
        raise InputError(f"{OPTION} races one command; if that is one, quote it: {quoted}")
    if options.names:
        raise InputError(f"--name is for commands; with {OPTION} these are named after them")


def _require_program(command: str, name: str, root: RootDirectory | None, *, shell: bool) -> None:
    """InputError where an environment does not have the program, before anything is run."""
    words = shlex.split(command)
    if shell or root is None or not words or "{" in words[0]:
        return
    program = words[0]
    if "/" not in program:
        if not root.which(program):
            raise InputError(f"environment '{name}' has no program '{program}'")
        return
    path = os.path.normpath(Path.cwd() / program)
    if lies_in(root.folder, path) and root.place(path) is None:
        top = f"/{Path(path).parts[1]}"
        raise InputError(
            f"environment '{name}' has no {path}, and {top} is its own there; copy the program to "
            "another place, such as your working directory, to race one file in all"
        )


def _told(command: str, roots: Sequence[tuple[str, RootDirectory | None]]) -> Finding:
    machine = RootDirectory(HOST, Path("/"), "")
    systems = [system_of(machine if root is None else root) for _, root in roots]
    parts = "; ".join(
        f"{name} is {system.distribution}, {system.libc}"
        for (name, _), system in zip(roots, systems, strict=True)
    )
    kernel = read_machine().system.kernel
    text = (
        f"{parts}. All run on this kernel, {kernel}, and processor; {_of_program(command, roots)}"
    )
    return ENVIRONMENTS.found(text)


def _of_program(command: str, roots: Sequence[tuple[str, RootDirectory | None]]) -> str:
    words = shlex.split(command)
    path = os.path.normpath(Path.cwd() / words[0]) if words and "/" in words[0] else ""
    own = [
        name
        for name, root in roots
        if root is not None and (not path or lies_in(root.folder, path))
    ]
    if not own:
        return f"{words[0]} is one file for all"
    return f"{words[0] if words else command} is {', '.join(own)}'s own: another build, perhaps"
