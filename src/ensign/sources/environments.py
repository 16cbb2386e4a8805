"""Obtaining the root directory of an environment: made, unpacked, or a directory as it is.

A release of Debian is made as `debian_roots` says. What came of it is in the cache under the hash
of its packages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ensign.host.cache import Cache, key_of
from ensign.host.files import file_sha256, is_folder, tree_sha256, write_atomically
from ensign.host.processes import Processes
from ensign.host.regular_file import read_json
from ensign.host.root_directory import RootDirectory, can_be_entered
from ensign.model.errors import InputError
from ensign.model.study_environment import Environment
from ensign.model.units import parse_size_bytes
from ensign.sources.archive import check_sha256
from ensign.sources.archive_stream import UnpackLimits
from ensign.sources.debian_roots import (
    Maker,
    NoEnvironment,
    NotMadeYet,
    made_root,
    require_programs,
)
from ensign.sources.unpack import unpack

_KEY = "environments"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RootPin:
    """One environment: what was asked for, and its packages: name, then version and SHA-256."""

    request: Mapping[str, object]
    packages: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """As it stands in the lock file."""
        return {"request": dict(self.request), "packages": dict(sorted(self.packages.items()))}


def environments_in(content: Any) -> Mapping[str, object]:
    """The part of a lock file. ValueError where it is damaged."""
    pins = content.get(_KEY, {}) if isinstance(content, dict) else {}
    if not isinstance(pins, dict):
        raise ValueError("environments are a table")  # noqa: TRY004  # damage is one kind
    for table in pins.values():
        _pin(table)
    return pins


def read_pins(path: Path) -> Mapping[str, object]:
    """Pins of a lock file; nothing without one. InputError where it is damaged."""
    try:
        return environments_in(read_json(path.read_text()))
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):
        raise InputError(f"{path} is not a lock file; remove it, and it is written anew") from None


def read_pin(path: Path, name: str) -> RootPin | None:
    """Pin of one environment in a lock file; None where nothing. InputError."""
    pin = read_pins(path).get(name)
    return None if pin is None else _pin(pin)


def write_pin(path: Path, name: str, pin: RootPin) -> None:
    """Put it into the lock file, beside what is there; nothing is written where it is the same."""
    try:
        content = read_json(path.read_text())
    except FileNotFoundError:
        content = {"schema": 1}
    pins = dict(read_pins(path))
    if pins.get(name) == pin.as_json():
        return
    content[_KEY] = {**pins, name: pin.as_json()}
    write_atomically(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def drift(pinned: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Differences of packages from those that are pinned, in a line; empty where none."""
    lines = list(_drift(pinned, found))
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return ", ".join(lines[:_SHOWN]) + more


def _drift(pinned: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*pinned, *found}):
        before, after = pinned.get(name, ""), found.get(name, "")
        if before == after:
            continue
        versions = (before.partition(" ")[0], after.partition(" ")[0])
        if not before:
            yield f"{name} {versions[1]} is new"
        elif not after:
            yield f"{name} {versions[0]} is gone"
        elif versions[0] == versions[1]:
            yield f"{name} {versions[0]} has other bytes"
        else:
            yield f"{name} was {versions[0]}, is {versions[1]}"


def _pin(content: Any) -> RootPin:
    if not isinstance(content, dict):
        raise ValueError("an environment is a table")  # noqa: TRY004  # damage is one kind
    request, packages = content.get("request"), content.get("packages")
    if not isinstance(request, dict) or not isinstance(packages, dict):
        raise ValueError("an environment has a request and packages")  # noqa: TRY004
    if not all(isinstance(package, str) for package in packages.values()):
        raise ValueError("a package has a version and a hash")
    return RootPin(request, packages)


_KIND = "environment"
_ROOT = "root"
_UPDATE = "run again with --update-lock if that is intended"


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

    NoEnvironment where it cannot be had here (NotMadeYet where it is not at hand, and must not be
    made), InputError where it is not what the study or the lock file says.
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
            require_programs(name, Maker(ports.processes, ports.env))
            raise NotMadeYet(f"the environment '{name}' is made at the first run")
        with ports.cache.temporary() as work:
            archive, packages = made_root(
                name, environment, Maker(ports.processes, ports.env), work
            )
            if pin is not None and (difference := drift(pin.packages, packages)):
                raise InputError(
                    f"the archive of {environment.debian} is not what {ports.lock} pins any more: "
                    f"{difference}; {_UPDATE}. A snapshot of that archive has the pinned ones: it "
                    "may be apt's mirror, or give an 'archive' that was made then"
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
        lines = entry.facts["packages"]
        write_pin(ports.lock, name, RootPin(request, lines if isinstance(lines, dict) else {}))
    return RootDirectory(name, entry.folder / _ROOT, key)


def _key(request: Mapping[str, object], packages: Mapping[str, str]) -> str:
    return key_of([request, sorted(packages.items()), os.uname().machine])
