"""Flags as a compiler takes them: of those that contradict each other the last one counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_CODE = re.compile(r"-(O|f|m)")
_OPTIMIZATION = re.compile(r"-O([0-9]|s|g|z|fast)?")
_DEFINE = re.compile(r"-([DU])([A-Za-z_]\w*)(?:=(.*))?")
_POSITION = {"-fPIE": "PIE", "-fpie": "pie", "-fPIC": "PIC", "-fpic": "pic"}
_NO_POSITION = ("-fno-pie", "-fno-PIE", "-fno-pic", "-fno-PIC")
_PROTECTOR = re.compile(r"-f(no-)?stack-protector(-\w+)?")
_EQUALS = {
    "-fcf-protection": "-fcf-protection=full",
    "-ftree-vectorise": "-ftree-vectorize",
    "-O": "-O1",
}
# What of a value is a path of the build, not a choice.
_PATHS = ("profile-use", "profile-generate", "profile-instr-use", "profile-dir", "auto-profile")
# Written by the compiler itself, or of no consequence for the code.
_SILENT = re.compile(r"-f(diagnostics|message|color|record|debug-prefix|file-prefix|macro-prefix)")

Effects = Mapping[str, str]


def effects(words: Iterable[str]) -> dict[str, str]:
    """Choices of the flags that decide code: subject to value, by the last flag of each subject.

    Subjects are `O`, `g`, `lto`, `D:NAME`, and the names of `-f` and `-m` flags. A value is what
    makes two flags equal: `-flto=auto` and `-flto` are the same, as GCC records the latter.
    """
    values: dict[str, str] = {}
    for word in words:
        pair = effect(word)
        if pair is not None:
            values[pair[0]] = pair[1]
    return values


def effect(flag: str) -> tuple[str, str] | None:  # noqa: PLR0911  # one answer for each kind
    """Subject and value of one flag; None if it does not decide code."""
    flag = _EQUALS.get(flag, flag)
    if _OPTIMIZATION.fullmatch(flag):
        return "O", flag
    define = _DEFINE.fullmatch(flag)
    if define:
        return f"D:{define[2]}", (define[3] or "1") if define[1] == "D" else "undefined"
    if flag.startswith("-g"):
        return _debug(flag)
    if not _CODE.match(flag) or _SILENT.match(flag):
        return None
    if flag.startswith(("-flto", "-fno-lto")) and not flag.startswith("-flto-"):
        return "lto", _lto(flag)
    if flag in _POSITION or flag in _NO_POSITION:
        return "position independence", _POSITION.get(flag, "none")
    if _PROTECTOR.fullmatch(flag):
        return "stack-protector", flag
    return _named(flag)


def _named(flag: str) -> tuple[str, str] | None:
    name, equals, value = flag[2:].partition("=")
    if flag.startswith("-f") and name.startswith("no-"):
        return name[3:], "off"
    if flag.startswith("-f") and name in _PATHS:
        return name, "on"
    if flag.startswith("-m") and name in ("arch", "tune", "cpu"):
        return name, value
    return name, value if equals else "on"


def _lto(flag: str) -> str:
    if flag == "-fno-lto":
        return "off"
    return "thin" if flag == "-flto=thin" else "full"


def _debug(flag: str) -> tuple[str, str] | None:
    if flag.startswith(("-grecord", "-gno-", "-gsplit", "-gz", "-gcc", "-gcolumn", "-gstrict")):
        return None
    return "g", "off" if flag == "-g0" else "on"


def lto_of(words: Iterable[str] | None) -> bool:
    """True if these flags ask for LTO."""
    return effects(words or ()).get("lto", "off") != "off"


def linker_of(words: Iterable[str]) -> str:
    """The linker that these flags name last; empty where they leave it to the compiler."""
    named = [word.partition("=")[2] for word in words if word.startswith("-fuse-ld=")]
    return named[-1] if named else ""


def level_of(words: Iterable[str] | None) -> str:
    """The optimization level that counts; empty where none is given."""
    return effects(words or ()).get("O", "")
