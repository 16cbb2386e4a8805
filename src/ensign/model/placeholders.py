"""Placeholders in commands: `{name}` is replaced, `{{name}}` stands for the text `{name}`. Pure.

Other braces mean nothing here, so that JSON, Lua or awk programs can be written as they are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

TOOLCHAIN = ("cc", "cxx", "ar", "ranlib", "nm", "ld", "jobs")
# Words of the environment by which Cargo gets a variant's flags, as many as there are.
CARGO_SETTINGS = "cargo_settings"
RUST = ("cargo", "rust_target", CARGO_SETTINGS)
FLAGS = ("cflags", "ldflags", "allocator")
DEPENDENCY_FLAGS = ("dependency_cflags", "dependency_ldflags")
SHIPPED = ("opt", "lto", "link_only", "cflags_list", "ldflags_list", "link_only_list")
PROGRAM = ("artifact", "artifact_dir")
PLACES = ("port", "tmp", "variant", "files")
# The meter itself: in commands that ensign makes, not in those of studies.
METER = "meter"
RESERVED = frozenset(
    (
        *(*TOOLCHAIN, *RUST, *FLAGS, *DEPENDENCY_FLAGS, *PLACES, *PROGRAM),
        *("requests", "input", "address", METER),
    )
)

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./{}-]+")
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z][A-Za-z0-9_.+-]*)\}\}|\{([A-Za-z][A-Za-z0-9_.+-]*)\}")


def names_in(text: str) -> tuple[str, ...]:
    """The names of the placeholders of a text, in order, with repetitions."""
    return tuple(match[2] for match in _PLACEHOLDER.finditer(text) if match[2] is not None)


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each `{name}` that has a value replaced; those without one stay."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] is not None:
            return f"{{{match[1]}}}"
        return values.get(match[2], match[0])

    return _PLACEHOLDER.sub(replacement, text)


def fill_some(text: str, values: Mapping[str, str]) -> str:
    """As `fill`, for a text that is filled again later: `{{name}}` stays as it is."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[2], match[0]), text)


def fill_all(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """`fill` on each text of a command."""
    return tuple(fill(text, values) for text in texts)


def program_values(artifact: str) -> dict[str, str]:
    """Values of the placeholders of a variant's program; `artifact` is its path."""
    return {"artifact": artifact, "artifact_dir": str(PurePosixPath(artifact).parent)}


def shown(argv: Iterable[str]) -> str:
    """An argument list as one would type it; placeholders are left as they are."""
    return " ".join(
        argument if _PLAIN.fullmatch(argument) else shlex.quote(argument) for argument in argv
    )
