"""A Rust variant as a change of the project: its release profile, and Cargo's configuration. Pure.

What a profile has a word for goes into Cargo.toml, the rest as rustflags into .cargo/config.toml.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Mapping

from ensign.model.errors import InputError
from ensign.toolchains.rust import release_profile, rustflags
from ensign.toolchains.table import Flags

MANIFEST = "Cargo.toml"
CONFIGURATION = ".cargo/config.toml"
_SECTION = "[profile.release]"
_HEADER = re.compile(r"^[ \t]*\[\s*profile\s*\.\s*release\s*\][ \t]*(?:#.*)?$", re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*\[", re.MULTILINE)
_KEY = r"""^[ \t]*["']?{}["']?[ \t]*=[^\n#]*?(?=[ \t]*(?:#|$))"""
# What Cargo takes where a release profile says nothing.
_DEFAULTS: Mapping[str, object] = {"opt-level": 3, "lto": False, "panic": "unwind"}
_ELSE = "write a [ship] table with the edits"


def workspace_manifest(folder: str, texts: Mapping[str, str]) -> str:
    """The manifest whose profiles Cargo reads for the package in `folder`, of those in `texts`.

    InputError where there is none.
    """
    own = posixpath.normpath(posixpath.join(folder, MANIFEST))
    if own not in texts:
        raise InputError(f"the source has no {own}")
    named = _read(own, texts[own]).get("package")
    above = named.get("workspace") if isinstance(named, dict) else None
    if isinstance(above, str):
        root = posixpath.normpath(posixpath.join(folder, above, MANIFEST))
        return root if root in texts else own
    for place in manifests_of(folder):
        if place in texts and "workspace" in _read(place, texts[place]):
            return place
    return own


def manifests_of(folder: str) -> tuple[str, ...]:
    """Where manifests of the package and of its workspace may be, the nearest first."""
    parts = [part for part in posixpath.normpath(folder).split("/") if part != "."]
    return tuple("/".join([*parts[:count], MANIFEST]) for count in range(len(parts), -1, -1))


def with_profile(name: str, text: str, flags: Flags) -> str:
    """The manifest with the variant's profile: what Cargo does already is not written.

    InputError where the profile is not a section of its own, so that it cannot be edited.
    """
    there = _profile(name, text)
    wanted = release_profile(flags)
    known = {**_DEFAULTS, **there}
    changes = {key: value for key, value in wanted.items() if not _same(known.get(key), value)}
    if not changes:
        return text
    found = _HEADER.search(text)
    if found is None:
        if there:
            raise InputError(f"{name} has its release profile in another form; {_ELSE}")
        lines = "".join(f"{key} = {_toml(value)}\n" for key, value in changes.items())
        edited = f"{text.rstrip()}\n\n{_SECTION}\n{lines}".lstrip("\n")
    else:
        following = _NEXT.search(text, found.end())
        end = len(text) if following is None else following.start()
        body = _with_keys(text[found.end() : end], changes)
        edited = f"{text[: found.end()]}{body}{text[end:]}"
    if any(not _same(_profile(name, edited).get(key), each) for key, each in changes.items()):
        raise InputError(f"the release profile of {name} cannot be edited; {_ELSE}")
    return edited


def with_rustflags(text: str, host: str, flags: Flags) -> str:
    """Cargo's configuration with the flags that no profile has; `host` is the target triple.

    InputError where the project has flags for that target already.
    """
    words = rustflags(flags)
    if not words:
        return text
    read = _read(CONFIGURATION, text)
    target = read.get("target")
    if isinstance(target, dict) and host in target:
        raise InputError(f"{CONFIGURATION} has a section for {host} already; {_ELSE}")
    listed = ", ".join(map(_toml, words))
    edited = f"{text.rstrip()}\n\n[target.{host}]\nrustflags = [{listed}]\n".lstrip("\n")
    _read(CONFIGURATION, edited)
    return edited


def _with_keys(body: str, changes: Mapping[str, object]) -> str:
    missing: list[str] = []
    for key, value in changes.items():
        spelled = f"{key} = {_toml(value)}"
        line = re.search(_KEY.format(re.escape(key)), body, re.MULTILINE)
        if line is not None:
            body = f"{body[: line.start()]}{spelled}{body[line.end() :]}"
        else:
            missing.append(f"{spelled}\n")
    return f"\n{''.join(missing)}{body.removeprefix(chr(10))}" if missing else body


def _profile(name: str, text: str) -> Mapping[str, object]:
    profile = _read(name, text).get("profile")
    release = profile.get("release") if isinstance(profile, dict) else None
    return release if isinstance(release, dict) else {}


def _read(name: str, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} cannot be read: {str(error)[:200]}") from None


def _same(there: object, wanted: object) -> bool:
    """`lto = true` is fat, and levels are numbers or texts."""
    names = {"True": "fat", "False": "false", "0": "0"}
    was, now = (names.get(str(each), str(each)) for each in (there, wanted))
    return there is not None and was == now


def _toml(value: object) -> str:
    return json.dumps(value)
