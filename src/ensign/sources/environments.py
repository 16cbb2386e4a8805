"""Obtaining the root directory of an environment: made, unpacked, or a directory as it is.

A release of Debian is made by mmdebstrap from the mirror that apt uses
here, which checks signatures. What came of it is in the cache under the hash of its packages.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.cache import Cache, key_of
from ensign.host.disk_watch import DiskLimit
from ensign.host.files import file_sha256, is_folder, tree_sha256
from ensign.host.processes import Processes, ProcessRequest
from ensign.host.root_directory import RootDirectory, can_be_entered
from ensign.model.errors import InputError
from ensign.model.study_environment import Environment
from ensign.model.units import parse_size_bytes
from ensign.sources.apt import parse_deb822
from ensign.sources.archive import check_sha256
from ensign.sources.archive_stream import UnpackLimits
from ensign.sources.debian import system_stanzas
from ensign.sources.environment_pins import RootPin, drift, read_pin, write_pin
from ensign.sources.unpack import unpack

_KIND = "environment"
_ROOT = "root"
_DEADLINE_NS = 3600 * 10**9
_LIST = "var/lib/ensign-packages"
_UPDATE = "run again with --update-lock if that is intended"
# Of each package that is installed its paragraph in the archive's index, which has its hash.
_LISTING = (
    'mkdir -p "$1/var/lib"; '
    "dpkg-query --admindir=\"$1/var/lib/dpkg\" -W -f '${Package}:${Architecture}=${Version}\\n' | "
    "sed 's/:all=/=/' | "
    'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" xargs apt-cache show --no-all-versions '
    f'> "$1/{_LIST}"'
)


class NoEnvironment(InputError):
    """It cannot be had here; what does not need it can."""


@dataclass(frozen=True, slots=True)
class EnvironmentPorts:
    """The effects of obtaining one: `env` is the caller's, `lock` the lock file, if there is one.

    Without `makes` only what is at hand is given; without `pins` nothing is written to the lock
    file, which holds all the same.
    """

    processes: Processes
    cache: Cache
    env: Mapping[str, str]
    folder: Path
    lock: Path | None = None
    update_lock: bool = False
    makes: bool = True
    pins: bool = True


def obtain_environment(
    name: str, environment: Environment, ports: EnvironmentPorts
) -> RootDirectory:
    """Give the root directory that the study names, pinned by its lock file.

    NoEnvironment where it cannot be had here (or is not at hand, and must not be made), InputError
    where it is not what the study or the lock file says.
    """
    match environment.kind:
        case "directory":
            return _directory(name, ports.folder / str(environment.directory))
        case "archive":
            return _archive(name, environment, ports)
    return _debian(name, environment, ports)


def _directory(name: str, folder: Path) -> RootDirectory:
    if not is_folder(folder):
        raise NoEnvironment(f"the root directory {folder} of environment '{name}' is not there")
    if folder.resolve() == Path("/"):
        raise InputError(f"environment '{name}': / is this machine; that is called 'host'")
    if not can_be_entered(folder):
        raise InputError(f"{folder} is no root directory: it has neither /usr/bin nor /bin")
    return RootDirectory(name, folder.resolve(), tree_sha256(folder.resolve()))


def _archive(name: str, environment: Environment, ports: EnvironmentPorts) -> RootDirectory:
    sha256, file = str(environment.sha256), ports.folder / str(environment.archive)
    entry = ports.cache.get(_KIND, sha256)
    if entry is None:
        if not file.is_file():
            raise NoEnvironment(f"the archive {file} of environment '{name}' is not there")
        check_sha256(file, sha256, str(file))
        limits = UnpackLimits(size_bytes=parse_size_bytes(environment.limit))

        def fill(folder: Path) -> Mapping[str, object]:
            unpack(file, folder / _ROOT, 0, str(file), limits, is_root=True)
            return {"label": f"environment {name}"}

        entry = ports.cache.make(_KIND, sha256, fill)
    root = entry.folder / _ROOT
    if not can_be_entered(root):
        raise InputError(f"{file} holds no root directory: it has neither /usr/bin nor /bin")
    return RootDirectory(name, root, sha256)


def _debian(name: str, environment: Environment, ports: EnvironmentPorts) -> RootDirectory:
    request: dict[str, object] = {
        "debian": environment.debian,
        "packages": sorted(set(environment.packages)),
    }
    pin = None
    if ports.lock is not None and not ports.update_lock:
        pin = read_pin(ports.lock, name)
    if pin is not None and pin.request != request:
        raise InputError(f"[environments.{name}] is not what {ports.lock} pins; {_UPDATE}")
    question = key_of([_KIND, request, os.uname().machine])
    key = _key(request, pin.packages) if pin is not None else ""
    if pin is None and not (ports.update_lock and ports.makes):
        key = ports.cache.recall(question) or ""
    entry = ports.cache.get(_KIND, key) if key else None
    if entry is None:
        if not ports.makes:
            raise NoEnvironment(f"the environment '{name}' is made at the first run")
        with ports.cache.temporary() as work:
            archive, packages = _made(name, environment, ports, work)
            if pin is not None and (said := drift(pin.packages, packages)):
                raise InputError(
                    f"the archive of {environment.debian} is not what {ports.lock} pins any more: "
                    f"{said}; {_UPDATE}"
                )
            key = _key(request, packages)
            limits = UnpackLimits(size_bytes=parse_size_bytes(environment.limit))

            def fill(folder: Path) -> Mapping[str, object]:
                unpack(archive, folder / _ROOT, 0, f"environment {name}", limits, is_root=True)
                facts = {"packages": packages, "archive_sha256": file_sha256(archive)}
                return {"label": f"environment {environment.debian}", **facts}

            entry = ports.cache.get(_KIND, key) or ports.cache.make(_KIND, key, fill)
        ports.cache.remember(question, key)
    if ports.lock is not None and ports.makes and ports.pins:
        found = entry.facts["packages"]
        write_pin(ports.lock, name, RootPin(request, found if isinstance(found, dict) else {}))
    return RootDirectory(name, entry.folder / _ROOT, key)


def _key(request: Mapping[str, object], packages: Mapping[str, str]) -> str:
    return key_of([request, sorted(packages.items()), os.uname().machine])


def _made(
    name: str, environment: Environment, ports: EnvironmentPorts, work: Path
) -> tuple[Path, dict[str, str]]:
    """The archive of a root directory, and its packages."""
    program = shutil.which("mmdebstrap", path=ports.env.get("PATH"))
    if program is None:
        raise NoEnvironment(
            f"the environment '{name}' needs mmdebstrap; apt-get install mmdebstrap"
        )
    mirror, keyring = _mirror(name)
    archive = work / "root.tar"
    command = (
        program,
        "--quiet",
        "--variant=apt",
        f"--include={','.join(['ca-certificates', *environment.packages])}",
        "--skip=output/dev",
        f"--customize-hook={_LISTING}",
        f"--customize-hook=copy-out /{_LIST} {shlex.quote(str(work))}",
        f'--customize-hook=rm "$1/{_LIST}"',
        *((f"--keyring={keyring}",) if keyring else ()),
        str(environment.debian),
        str(archive),
        mirror,
    )
    outcome = ports.processes.run(
        ProcessRequest(
            command,
            {**ports.env, "LC_ALL": "C", "TMPDIR": str(work), "SOURCE_DATE_EPOCH": "946684800"},
            work,
            deadline_ns=_DEADLINE_NS,
            disk=DiskLimit((work,), 2 * parse_size_bytes(environment.limit), 0),
        )
    )
    if not outcome.ok or not archive.is_file():
        lines = [line for line in outcome.tail.splitlines() if line.startswith("E:")]
        said = (lines or outcome.tail.strip().splitlines() or [outcome.describe()])[0]
        raise NoEnvironment(f"the environment '{name}' could not be made: mmdebstrap: {said}")
    listed = parse_deb822((work / Path(_LIST).name).read_text(errors="replace"))
    packages = {
        each["package"]: f"{each.get('version', '?')} {each.get('sha256', '')}".strip()
        for each in listed
        if "package" in each
    }
    return archive, packages


def _mirror(name: str) -> tuple[str, str]:
    """The address of the mirror of Debian that apt uses here, and its keyring."""
    for stanza in system_stanzas():
        if (
            "deb" not in stanza.get("types", "").split()
            or "main" not in stanza.get("components", "").split()
        ):
            continue
        for uri in stanza.get("uris", "").split():
            if uri.rstrip("/").endswith("/debian"):
                return uri, stanza.get("signed-by", "")
    raise NoEnvironment(
        f"the environment '{name}' needs a mirror of Debian, and apt has none configured here; "
        "give a 'directory' or an 'archive' instead"
    )
