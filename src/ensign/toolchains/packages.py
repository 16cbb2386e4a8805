"""Which package to install for what is missing: none that the system does not have. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection


def absent(package: str, known: Collection[str]) -> str:
    """What to say of a package that the system has not; empty where it has, or if unknown.

    `known` are the names of all its packages, none where these are not known.
    """
    if not known or package in known:
        return ""
    others = versions(package, known)
    instead = f"; there are {', '.join(others)}" if others else ""
    return f"no package of this system is called {package}{instead}"


def advice(package: str, known: Collection[str]) -> str:
    """What to do for a missing package, as the end of a message."""
    return absent(package, known) or f"run 'apt-get install {package}'"


def versions(package: str, known: Collection[str]) -> list[str]:
    """The package in all its versions, by number: `gcc-9`, `gcc-12`; those without are none."""
    stem, *ending = re.split(r"-\d+(?=-|$)", package, maxsplit=1)
    pattern = re.compile(rf"{re.escape(stem)}-(\d+){re.escape(ending[0] if ending else '')}")
    found = [(int(match[1]), name) for name in known if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def newest(package: str, known: Collection[str]) -> str:
    """The package in its newest version that is known; itself where none is."""
    return [package, *versions(package, known)][-1]
