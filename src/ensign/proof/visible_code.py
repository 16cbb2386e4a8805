"""Facts of a file's build that show in the file, in comparable words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.elf import read_binary
from ensign.proof.evidence import some
from ensign.proof.facts import Binary, Unit, UnitKind
from ensign.proof.fast_math import links_fast_math
from ensign.proof.identity import Identity, read_identity
from ensign.proof.instructions import Instructions, read_instructions
from ensign.proof.python_build import python_options
from ensign.proof.symbol_tables import symbols_of
from ensign.proof.unoptimized import Unoptimized, read_unoptimized

_ENOUGH_FUNCTIONS = 5
# Of pieces of a large program a few instructions may be missed.
_ENOUGH_WIDE = 20
_OTHER_SIZE = 0.1
_TRACES_OF_LTO = (".lto_priv.", ".llvm.")
_THERE = ("without", "with")
_NOT_COMPILED = (UnitKind.LTRANS, UnitKind.ASSEMBLER)


@dataclass(frozen=True, slots=True)
class VisibleBuild:
    """`words` by what they are about; what cannot be told is not there.

    `units` are those that the debug information has, by the name of the source; `python` are the
    options of an interpreter of that language.
    """

    words: Mapping[str, str]
    protections: frozenset[str]
    code_bytes: int
    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    python: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])


def read_visible(path: Path) -> VisibleBuild | None:
    """Look at one file; None where it is no program or library, or damaged."""
    identity, binary = read_identity(path), read_binary(path)
    if identity is None or binary is None:
        return None
    code, instructions = read_unoptimized(path), read_instructions(path)
    words = dict(_words(binary, code, instructions))
    words |= {"traces of LTO": _THERE[_lto(path)]} if identity.has_symbols else {}
    words["fast-math start-up code"] = _THERE[links_fast_math(path)]
    units = {unit.name: unit for unit in binary.units if unit.kind not in _NOT_COMPILED}
    protections, python = _protections(identity, binary), python_options(path)
    return VisibleBuild(words, protections, identity.code_bytes, units, python)


def _words(
    binary: Binary, code: Unoptimized | None, instructions: Instructions | None
) -> Iterator[tuple[str, str]]:
    if code is not None and code:
        yield "code", "unoptimized (-O0)" if code.whole else "unoptimized (-O0) in parts"
    elif code is not None and code.functions >= _ENOUGH_FUNCTIONS:
        yield "code", "optimized"
    if instructions is not None and instructions.read:
        wide = instructions.wide
        if wide >= _ENOUGH_WIDE or not instructions.partial:
            bits = 512 if instructions.widest else 256
            yield "widest registers", f"{bits} bits" if wide else "at most 128 bits"
        elif not wide:
            yield "widest registers", "at most 128 bits"
    yield "functions called through the PLT", str(binary.plt_imports + len(binary.own_plt))
    yield "functions that FORTIFY checks (_chk)", str(_checked(binary))


def _checked(binary: Binary) -> int:
    return len([name for name in binary.hardening.checked if name != "__stack_chk"])


def _protections(identity: Identity, binary: Binary) -> frozenset[str]:
    hardening = binary.hardening
    named = {
        "PIE": hardening.pie and not binary.shared_library,
        "RELRO": hardening.relro,
        "BIND_NOW": hardening.bind_now and not identity.static,
        "canaries": hardening.canary,
        "CET": hardening.cet,
    }
    return frozenset(name for name, there in named.items() if there)


def _lto(path: Path) -> bool:
    try:
        with elf_of(path) as elf:
            return any(
                trace in symbol.name
                for symbol in symbols_of(elf, ".symtab")
                for trace in _TRACES_OF_LTO
            )
    except DamagedFile:
        return False


def differences(first: VisibleBuild, other: VisibleBuild) -> Iterator[str]:
    """Differences, the other one's word first."""
    for about, word in other.words.items():
        before = first.words.get(about)
        if before is not None and before != word:
            yield f"{word} {about}" if word in _THERE else f"{about} {word} against {before}"
    yield from _compiled_otherwise(first.units, other.units)
    for what, there in first.python.items():
        here = other.python.get(what, there)
        if here != there:
            yield f"Python {what} {with_and_without(here - there, there - here)}"
    more, less = other.protections - first.protections, first.protections - other.protections
    if more or less:
        yield f"protections {with_and_without(more, less)}"
    low, high = sorted((first.code_bytes, other.code_bytes))
    if high - low > _OTHER_SIZE * high:
        yield f"{other.code_bytes:,} against {first.code_bytes:,} bytes of code"


def _compiled_otherwise(first: Mapping[str, Unit], other: Mapping[str, Unit]) -> Iterator[str]:
    """Compilers and flags that differ, with the sources of which that is so.

    Where both have other sources it is told if all pairs of them differ in the same.
    """
    common = first.keys() & other.keys()
    if not common:
        kinds = [{(u.compiler, u.flags): u for u in side.values()} for side in (first, other)]
        changes = {_change(a, b) for a in kinds[0].values() for b in kinds[1].values()}
        yield from (
            f"all sources compiled {each}" for each in changes if each and len(changes) == 1
        )
    changed: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(common):
        if change := _change(first[name], other[name]):
            changed[change].append(name)
    for change, names in changed.items():
        every = len(names) == len(common) > 1
        yield f"{'all sources' if every else some(names)} compiled {change}"


def _change(before: Unit, after: Unit) -> str:
    compiler = f"by {after.compiler}, not {before.compiler}"
    flags = frozenset(before.flags or ()), frozenset(after.flags or ())
    is_known = before.flags is not None and after.flags is not None
    parts = (
        compiler if after.compiler != before.compiler else "",
        with_and_without(flags[1] - flags[0], flags[0] - flags[1]) if is_known else "",
    )
    return ", ".join(filter(None, parts))


def with_and_without(more: frozenset[str], less: frozenset[str]) -> str:
    """As 'with A, B, without C'."""
    parts = (("with", more), ("without", less))
    return ", ".join(f"{word} {', '.join(sorted(names))}" for word, names in parts if names)
