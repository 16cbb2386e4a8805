"""What a lock file pins of environments: packages by version and hash, roots by their hash."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ensign.host.files import write_atomically
from ensign.host.json_text import read_json
from ensign.model.errors import InputError

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
    found = content.get(_KEY, {}) if isinstance(content, dict) else {}
    if not isinstance(found, dict):
        raise ValueError("environments are a table")  # noqa: TRY004  # damage is one kind
    for each in found.values():
        _pin(each)
    return found


def read_pins(path: Path) -> Mapping[str, object]:
    """What a lock file pins; nothing without one. InputError where it is damaged."""
    try:
        return environments_in(read_json(path.read_text()))
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):
        raise InputError(f"{path} is not a lock file; remove it, and it is written anew") from None


def read_pin(path: Path, name: str) -> RootPin | None:
    """What a lock file pins of one environment; None where nothing. InputError."""
    found = read_pins(path).get(name)
    return None if found is None else _pin(found)


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
    """How packages differ from those that are pinned, in a line; empty where they do not."""
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
    if not all(isinstance(each, str) for each in packages.values()):
        raise ValueError("a package has a version and a hash")
    return RootPin(request, packages)
