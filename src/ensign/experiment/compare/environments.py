"""`compare --environments`: one command, once in each of several root directories."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.experiment.compare.options import Options
from ensign.experiment.environment.named import FORMS, NamedEnvironments
from ensign.experiment.environment.system import system_of
from ensign.experiment.ports import Ports
from ensign.host.cache import Cache, cache_folder
from ensign.host.machine import read_machine
from ensign.host.root_directory import RootDirectory, lies_in
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import ENVIRONMENTS
from ensign.model.findings import Finding
from ensign.model.study_environment import HOST

_FEWEST = 2
OPTION = "--environments"


@dataclass(frozen=True, slots=True)
class InRoots:
    """The options with the command once in each environment; `findings` say what these are."""

    options: Options
    findings: tuple[Finding, ...] = ()


@contextmanager
def in_environments(
    said: str | None, study: Path | None, options: Options, ports: Ports
) -> Iterator[InRoots]:
    """The environments `A,B,…`, for as long as they are needed.

    InputError where one is not there, cannot be had here, or does not have the command's program.
    """
    if said is None:
        if study is not None:
            raise InputError(f"--study names the file whose environments {OPTION} are; give that")
        yield InRoots(options)
        return
    names = _names(said)
    _check(options)
    with Cache(cache_folder(ports.env), clock=ports.clock) as cache:
        found = NamedEnvironments(study, ports.processes(), cache, ports.env)
        roots = [(name, found.root(name)) for name in names]
        (command,) = options.commands
        for name, root in roots:
            _require_program(command, name, root, shell=bool(options.shell))
        yield InRoots(
            replace(
                options,
                commands=(command,) * len(names),
                names=names,
                roots=tuple("" if root is None else str(root.folder) for _, root in roots),
            ),
            (_told(command, roots),),
        )


def _names(said: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in said.split(","))
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
    each = "; ".join(
        f"{name} is {system.distribution}, {system.libc}"
        for (name, _), system in zip(roots, systems, strict=True)
    )
    kernel = read_machine().system.kernel
    text = f"{each}. All run on this kernel, {kernel}, and processor; {_of_program(command, roots)}"
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
