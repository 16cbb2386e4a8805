"""What a file is that is neither program nor library nor parts of one, in a line for people."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from ensign.host.regular_file import read_regular
from ensign.model.quoting import quoted, shortened
from ensign.proof.elf_kinds import FileKind, kind_of

_HEAD_BYTES, _LONGEST_NAME = 4096, 100
_ELF = b"\x7fELF"
_OTHERS = {
    b"MZ": "a program of Windows",
    b"\xcf\xfa\xed\xfe": "a program of macOS",
    b"\xca\xfe\xba\xbe": "a class of Java or a program of macOS",
    b"\0asm": "a module of WebAssembly",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "compressed by gzip",
    b"\xfd7zXZ\0": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}
_NAMES = "name a program, a library, a folder or a study file"


def said_of(path: Path) -> str:
    """One line that says what it is, and what to name instead."""
    name = quoted(str(path))
    head = read_regular(path, _HEAD_BYTES)
    if head.startswith(b"#!"):
        return f"{name} is a script, {_run_by(head)}"
    if head.startswith(_ELF):
        return f"{name} {_of_elf(path)}"
    other = next((what for magic, what in _OTHERS.items() if head.startswith(magic)), "")
    if other:
        return f"{name} is {other}, which is not read; {_NAMES}"
    what = "a text" if b"\0" not in head and _is_text(head) else "no ELF file"
    return f"{name} is {what}; {_NAMES}"


def _of_elf(path: Path) -> str:
    found = kind_of(path)
    if found.kind is FileKind.CORE:
        of = f" of {quoted(found.detail)}" if found.detail else ""
        return f"is a core dump{of}, memory of a program that ended; name that program"
    if found.kind is FileKind.DEBUG:
        return (
            "holds the debug information of another file and none of its code; name that file, "
            "with which it is read"
        )
    if found.kind is FileKind.DAMAGED:
        return f"is an ELF file that is cut off or damaged: {found.detail}"
    return f"is an ELF file of another kind; {_NAMES}"


def _run_by(head: bytes) -> str:
    line = head[2:].partition(b"\n")[0].decode(errors="replace").strip()
    words = line.split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words:
        return f"and names no program that runs it; {_NAMES}"
    program = shortened(words[0], _LONGEST_NAME)
    found = program if "/" in program else shutil.which(program)
    if found is None:
        return f"which {quoted(program)} runs; that is not here"
    return f"which {quoted(found)} runs: ensign doctor {shlex.quote(found)}"


def _is_text(head: bytes) -> bool:
    try:
        head[:-4].decode()
    except UnicodeDecodeError:
        return False
    return True
