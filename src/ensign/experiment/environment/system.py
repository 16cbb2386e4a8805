"""What a root directory is, by its files alone: distribution, C library, packages. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.host.regular_file import read_regular
from ensign.host.root_directory import RootDirectory
from ensign.proof.identity import read_identity
from ensign.sources.apt import parse_deb822

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
            name: tuple(sorted(each.ifuncs)) for name, each in libraries.items() if each is not None
        },
        packages=dict(_packages(root)),
    )


def _folders(root: RootDirectory) -> Iterator[str]:
    for above in ("/lib64", "/usr/lib64", "/lib", "/usr/lib"):
        yield above
        yield from (f"{above}/{each}" for each in root.names_in(above) if "-linux-" in each)


def _library(root: RootDirectory, name: str) -> Path | None:
    for folder in _folders(root):
        place = root.place(f"{folder}/{name}")
        found = read_identity(place) if place is not None and place.is_file() else None
        if found is not None and found.bits == 64:  # noqa: PLR2004
            return place
    return None


def _libc(root: RootDirectory, library: Path | None) -> str:
    if library is not None:
        with suppress(OSError):
            said = _BANNER.search(read_regular(library, _MOST_BYTES, follow=False))
            return f"glibc {said[1].decode()}" if said else UNKNOWN
    if any(_MUSL.fullmatch(each) for each in root.names_in("/lib")):
        return "musl"
    return UNKNOWN


def _packages(root: RootDirectory) -> Iterator[tuple[str, str]]:
    for each in parse_deb822(root.text(_STATUS)):
        if "package" in each and each.get("status", "").endswith(" installed"):
            yield each["package"], each.get("version", "")
