"""Symbols of objects that hold an intermediate language alone: GCC's and LLVM's.

GCC writes its table for the linker's plugin into sections `.gnu.lto_.symtab.HASH`, as
lto-streamer-out.cc has it (`write_symbol`): name and comdat group, each up to a zero byte, kind (as
`ld_plugin_symbol_kind` of plugin-api.h) and visibility of a byte each, size (8) and slot (4).
Bitcode is read by the `llvm-nm` beside the compiler, which reads what its compiler writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.processes import Processes, ProcessRequest
from ensign.host.temporary import temporary_folder
from ensign.proof.bounded_elf import BoundedElf, data_of

_TABLE = ".gnu.lto_.symtab."
_FIXED_BYTES = 1 + 1 + 8 + 4
_UNDEFINED, _WEAK_UNDEFINED = 2, 3
_DEADLINE_NS = 20 * 10**9


@dataclass(frozen=True, slots=True)
class LtoSymbols:
    """Global symbols that an object defines, and those that it needs (not the weak ones)."""

    defines: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()


class UnreadError(Exception):
    """The symbols cannot be read; the text completes "unknown, because …"."""


def gcc_symbols(elf: BoundedElf) -> LtoSymbols:
    """Of an object of GCC's. ValueError where a table is cut off."""
    defines: set[str] = set()
    needs: set[str] = set()
    for section in elf.iter_sections():
        if section.name.startswith(_TABLE):
            for name, kind in _records(data_of(section)):
                if kind == _UNDEFINED:
                    needs.add(name)
                elif kind != _WEAK_UNDEFINED:
                    defines.add(name)
    return LtoSymbols(frozenset(defines), frozenset(needs - defines))


def _records(data: bytes) -> Iterator[tuple[str, int]]:
    at = 0
    while at < len(data):
        name_end = data.index(b"\0", at)
        fixed = data.index(b"\0", name_end + 1) + 1
        if fixed + _FIXED_BYTES > len(data):
            raise ValueError("a symbol table of LTO is cut off")
        yield data[at:name_end].decode(errors="replace"), data[fixed]
        at = fixed + _FIXED_BYTES


def bitcode_symbols(path: Path, compiler: str, processes: Processes) -> Mapping[str, LtoSymbols]:
    """Of an object, under an empty name, or of an archive's members by their names.

    `compiler` is the program that linked it. UnreadError where there is no llvm-nm beside it, or
    where that cannot read the file.
    """
    found = shutil.which(compiler)
    nm = None if found is None else Path(found).resolve().parent / "llvm-nm"
    if nm is None or not nm.is_file():
        raise UnreadError(f"the objects hold LLVM's bitcode, and there is no llvm-nm by {compiler}")
    with temporary_folder("nm") as scratch:
        table = scratch / "symbols"
        argv = (str(nm), "--format=posix", "--print-file-name", str(path))
        request = ProcessRequest(
            argv, {"LC_ALL": "C"}, scratch, stdout=table, deadline_ns=_DEADLINE_NS
        )
        outcome = processes.run(request)
        if not outcome.ok:
            raise UnreadError(f"{nm} {outcome.describe()} at {path.name}")
        return symbols_by_member(table.read_text(errors="replace"), str(path))


def symbols_by_member(text: str, path: str) -> Mapping[str, LtoSymbols]:
    """From lines of llvm-nm: `PATH[MEMBER]: NAME KIND …`, without brackets for an object."""
    defines: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith(path):
            continue
        where, _, symbol = line[len(path) :].partition(": ")
        name, _, rest = symbol.partition(" ")
        member, kind = where[1:-1], rest[:1]
        if kind == "U":
            needs.setdefault(member, set()).add(name)
        elif kind not in ("w", "v") and (kind.isupper() or kind == "u"):
            defines.setdefault(member, set()).add(name)
    return {
        member: LtoSymbols(
            frozenset(defines.get(member, ())),
            frozenset(needs.get(member, set()) - defines.get(member, set())),
        )
        for member in defines.keys() | needs.keys()
    }
