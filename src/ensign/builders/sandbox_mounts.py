"""Parts of the machine that builds and checks of a study may see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ensign.builders.request import BuildPorts, BuildRequest
from ensign.host.cache import key_of
from ensign.host.confined_view import ConfinementRequest, is_someones_home
from ensign.host.confinement_probe import Confinement, probe_confinement, unconfined
from ensign.host.foreign_files import UnprivilegedUser
from ensign.host.processes import ProcessLimits
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_build import SandboxSection
from ensign.model.units import parse_size_bytes
from ensign.toolchains.find import Toolchain

_SHARE = 0.9
_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """Nine tenths of the usable memory, so that the machine goes on; 0 where nothing is known."""
    return int(min(_limits(root), default=0) * _SHARE)


def _limits(root: Path) -> Iterator[int]:
    with suppress(OSError):
        total = _TOTAL.search((root / "proc/meminfo").read_text(encoding="ascii"))
        if total is not None:
            yield int(total[1]) * 1024
    groups = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _limits_of(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_of(groups / "memory", path, "memory.limit_in_bytes")


def _limits_of(hierarchy: Path, path: str, name: str) -> Iterator[int]:
    """Limits of a group and of all around it."""
    group = hierarchy / path.strip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(hierarchy):
            return
        with suppress(OSError, ValueError):
            yield int((folder / name).read_text(encoding="ascii"))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


_PATH = re.compile(r"(?:^|[=:,;\s'\"]|-[ILBl])(/[^\s:,;='\"]+)")
# Where programs keep what opens other machines; named in a command it is not shown all the same.
_CREDENTIALS = frozenset(
    (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials",
     ".password-store", ".pki", "keyrings", "credentials", "credentials.toml", "gcloud")
)  # fmt: skip
RESULTS = ".ensign"
_OFFLINE = "builds have no network: fetch what is needed beforehand, or set sandbox.network = true"
_WAYS_OUT = {
    "Read-only file system": "builds may write to their own tree, HOME and TMPDIR alone; "
    "sandbox.write = [...] names more",
    "Temporary failure in name resolution": _OFFLINE,
    "Could not resolve host": _OFFLINE,
    "Network is unreachable": _OFFLINE,
}


def confinement_of(request: BuildRequest, ports: BuildPorts) -> Confinement:
    """Confinement of the programs of a study: what works here, if the study wants any."""
    if not request.study.sandbox.confined:
        return unconfined("the study, or an option, asked for that")
    return probe_confinement(ports.processes, ports.env, ports.meter)


def shown_to_builds(
    request: BuildRequest,
    ports: BuildPorts,
    toolchains: Mapping[str, Toolchain],
    user: UnprivilegedUser | None,
) -> ConfinementRequest:
    """The machine as builds see it, without their trees; `user` is who they run as.

    InputError where a path of the study is missing, or is not theirs to change.
    """
    sandbox, folder = request.study.sandbox, request.path.absolute().parent
    programs = {program for toolchain in toolchains.values() for program in _programs(toolchain)}
    meter = () if ports.meter is None else (ports.meter,)
    return ConfinementRequest(
        path=ports.env.get("PATH", ""),
        home=ports.env.get("HOME", ""),
        programs=tuple(sorted(programs)),
        read=(
            *meter,
            *paths_in(_words(request.study), ports.env),
            *sandbox_paths(sandbox.read, folder, "read"),
        ),
        write=writable(sandbox, folder, user),
        hidden=(ports.cache.folder, folder / RESULTS),
        network=sandbox.network,
    )


def is_shown_whole(folder: Path, env: Mapping[str, str]) -> bool:
    """True if all of a study's folder may be seen: nobody's home is."""
    return not is_someones_home(folder, env.get("HOME", ""))


def shown_to_checks(study: Study, folder: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Further folders that checks see: the study's, and what its workloads name."""
    words = [word for workload in study.workloads for word in (workload.command or [])]
    words += [text for workload in study.workloads for text in workload.env.values()]
    words += [workload.stdin for workload in study.workloads if workload.stdin is not None]
    if study.check is not None:
        words += [word for argv in study.check.commands for word in argv]
    whole = (folder,) if is_shown_whole(folder, env) else ()
    inside = (folder / word for word in words if word and not PurePosixPath(word).is_absolute())
    may_be = (path for path in inside if _may_be_shown(path, env) and _is_there(path))
    return (*whole, *paths_in(words, env), *may_be)


def way_out(said: str, confinement: Confinement) -> str:
    """Key of the study that would permit what a command complained of; empty for others."""
    if not confinement.works:
        return ""
    return next((f"\n{text}" for sign, text in _WAYS_OUT.items() if sign in said), "")


def given_env(sandbox: SandboxSection, env: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that the study's programs get."""
    return {name: env[name] for name in sandbox.env if name in env}


def tree_limits(sandbox: SandboxSection) -> ProcessLimits:
    """Limits of each command, with all that it starts."""
    memory_bytes = (
        usable_memory_bytes() if sandbox.memory is None else parse_size_bytes(sandbox.memory)
    )
    return ProcessLimits(tree_processes=sandbox.processes, tree_memory_bytes=memory_bytes or None)


def sandbox_key(sandbox: SandboxSection, env: Mapping[str, str]) -> str:
    """A hash of what may decide the result of a command; empty where all is as usual."""
    usual = SandboxSection()
    decisive = (sandbox.read, sandbox.write, sandbox.network, sandbox.env)
    if decisive == (usual.read, usual.write, usual.network, usual.env):
        return ""
    return key_of([*decisive, sorted(given_env(sandbox, env).items())])


def paths_in(words: Iterable[str], env: Mapping[str, str]) -> tuple[Path, ...]:
    """The absolute paths in words of commands; never a home folder, nor credentials."""
    paths = (Path(place) for word in words for place in _PATH.findall(word))
    return tuple(path for path in dict.fromkeys(paths) if _may_be_shown(path, env))


def _may_be_shown(path: Path, env: Mapping[str, str]) -> bool:
    """Neither as it is written nor where its links lead it is a home folder or credentials."""
    return not any(
        is_someones_home(Path(place), env.get("HOME", ""))
        or _CREDENTIALS.intersection(Path(place).parts)
        for place in (os.path.normpath(path), os.path.realpath(path))
    )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a word that is too long for a name
        return False


def _words(study: Study) -> Iterator[str]:
    build = study.build
    for argv in (*build.clean, *build.dependencies, *build.commands, *build.tool_commands):
        yield from argv
    yield from build.env.values()
    yield from (*build.rewrite.compile, *build.rewrite.link)
    if study.ship is not None:
        yield from (word for argv in study.ship.commands for word in argv)


def _programs(toolchain: Toolchain) -> Iterator[Path]:
    tools = (
        toolchain.cc,
        toolchain.cxx,
        toolchain.ar,
        toolchain.ranlib,
        toolchain.nm,
        toolchain.cargo,
    )
    profilers = toolchain.profilers
    used = (profilers.profdata, profilers.gcov_dump, profilers.bolt, profilers.merge_fdata)
    for tool in (*tools, toolchain.ld, *used, profilers.perf):
        if tool:
            yield Path(tool)
    for linker in toolchain.linkers:
        if linker.folder:
            yield Path(linker.folder) / f"ld.{linker.name}"


def writable(
    sandbox: SandboxSection, folder: Path, user: UnprivilegedUser | None
) -> tuple[Path, ...]:
    """Files that programs of a study may change. InputError where they could not."""
    paths = sandbox_paths(sandbox.write, folder, "write")
    for name, path in zip(sandbox.write, paths, strict=True):
        if user is not None and not user.may(path.stat(), 0o2):
            raise InputError(
                f"sandbox.write names '{name}', which programs of the study may not change: "
                f"started by root they run as user {user.uid}; chown {user.uid} {path}"
            )
    return paths


def sandbox_paths(names: Iterable[str], folder: Path, key: str) -> tuple[Path, ...]:
    """The paths of one key of the section. InputError where one is not there."""
    paths = tuple(folder / name for name in names)
    for name, path in zip(names, paths, strict=True):
        if not _is_there(path):
            raise InputError(f"sandbox.{key} names '{name}', but {path} is not there")
    return paths
