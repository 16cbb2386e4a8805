"""What a Python interpreter was configured and compiled with, by its own `_sysconfigdata`."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ensign.host.regular_file import read_text
from ensign.model.errors import InputError

_NAMED = re.compile(r"(?:lib)?python(\d+\.\d+)[a-z]*(?:\.so[.\d]*)?")
_ASSIGNED = "build_time_vars = "
_COMPILED = ("PY_CFLAGS", "PY_CFLAGS_NODIST", "CFLAGS_NODIST")
_LINKED = ("PY_LDFLAGS", "PY_LDFLAGS_NODIST", "LDFLAGS_NODIST")
# What can change the code; not warnings, paths and the like.
_OF_CODE = re.compile(r"-(?:O|f(?!file-prefix-map|debug|macro-prefix)|m|D_FORTIFY|Wl,-B|DNDEBUG)")
_OPTION = re.compile(r"--(?:with|without|enable|disable)-[^/]+")


def python_options(interpreter: Path) -> Mapping[str, frozenset[str]]:
    """Options by what they are of; empty where it is no interpreter that tells them.

    The file is read, not run: https://docs.python.org/3/library/sysconfig.html has its variables.
    """
    told = _variables(interpreter)
    words = {
        "configured": filter(_OPTION.fullmatch, _words(told.get("CONFIG_ARGS", ""))),
        "compiled": _flags(told, _COMPILED),
        "linked": _flags(told, _LINKED),
    }
    return {what: frozenset(word) for what, word in words.items()} if told else {}


def _words(quoted: str) -> list[str]:
    try:
        return shlex.split(quoted)
    except ValueError:
        return []


def _variables(interpreter: Path) -> dict[str, str]:
    named = _NAMED.fullmatch(interpreter.name)
    if named is None:
        return {}
    version = f"python{named[1]}"
    for folder in interpreter.parents[:2]:
        for place in (folder / version, folder / "lib" / version):
            for file in sorted(place.glob("_sysconfigdata_*.py")):
                if settings := _read(file):
                    return settings
    return {}


def _read(file: Path) -> dict[str, str]:
    try:
        _, _, text = read_text(file).partition(_ASSIGNED)
        told = ast.literal_eval(text.strip())
    except (InputError, OSError, ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    return {str(name): value for name, value in told.items() if isinstance(value, str)}


def _flags(told: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    words = (word for name in names for word in told.get(name, "").split())
    return [word for word in words if _OF_CODE.match(word)]
