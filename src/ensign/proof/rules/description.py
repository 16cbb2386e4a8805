"""Observations of a build, in sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ensign.proof.evidence import BuildEvidence, own_units, shown
from ensign.proof.facts import Unit, UnitKind
from ensign.proof.flags import level_of
from ensign.proof.rules.origin import origin_lines
from ensign.proof.rules.profile import uses_profile
from ensign.proof.rules.rust import is_of_rust, rust_lines
from ensign.toolchains.alignment import FUNCTION_BYTES
from ensign.toolchains.profiling import bolt_count

_NO_DEBUG = "flags: unknown, because there is no debug information (add -g)"
_NO_FLAGS = "record no flags (Clang: add -grecord-command-line)"


def describe(seen: BuildEvidence) -> tuple[str, ...]:
    """Say in sentences what was seen, and what is unknown, because of what."""
    compiled, ltrans = _units(seen)
    lines = [*rust_lines(seen)] if is_of_rust(seen) else [*_compiled(compiled)]
    lines += _declared(seen)
    lines += _profiled(seen)
    if ltrans:
        lines.append(f"generated at the link: {_levels(ltrans)}")
    lines += _artifact(seen)
    lines += origin_lines(seen)
    link = seen.proof.link
    lines.append(
        f"link order: unknown, because {link.unknown}"
        if link.unknown
        else f"link order judged by {link.by}"
    )
    count = bolt_count(seen.log)
    if count is not None:
        lines.append(f"BOLT: {count.profiled} of {count.functions} functions have a profile")
    elif seen.proof.binary.bolted:
        lines.append("BOLT: applied; its share of functions is unknown, because no log says it")
    return (*lines, *seen.proof.binary.comments)


def describe_units(seen: BuildEvidence) -> tuple[str, ...]:
    """Sentence on a file loaded with the program: how its units were compiled."""
    lines = (*_compiled(_units(seen)[0]),)[:1]
    return tuple(f"{seen.file}: {line}" for line in (*lines, *_declared(seen)))


def _units(seen: BuildEvidence) -> tuple[list[Unit], list[Unit]]:
    """Those of compilations, and those that the link generated."""
    units = seen.proof.binary.units
    compiled = [unit for unit in units if unit.kind is not UnitKind.LTRANS]
    return compiled, [unit for unit in units if unit.kind is UnitKind.LTRANS]


def _compiled(units: Sequence[Unit]) -> Iterator[str]:
    if not units:
        yield _NO_DEBUG
        return
    recorded = [unit for unit in units if unit.flags is not None]
    assembler = sum(unit.kind is UnitKind.ASSEMBLER for unit in units)
    silent = len(units) - len(recorded) - assembler
    if recorded:
        yield f"compile units by level: {_levels(recorded)}"
    if silent:
        yield f"flags: unknown for {silent} compile units, because they {_NO_FLAGS}"
    compilers = (unit.compiler for unit in units if unit.kind is not UnitKind.ASSEMBLER)
    yield f"compilers: {_counted(compilers)}"


def _levels(units: Sequence[Unit]) -> str:
    return _counted(level_of(unit.flags) or "no -O" for unit in units)


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(Counter(names).items()))


def _declared(seen: BuildEvidence) -> Iterator[str]:
    own = [unit for unit in own_units(seen) if seen.has_own_flags(unit.source)]
    if own:
        levels = ", ".join(sorted({level_of(unit.words) or "no -O" for unit in own}))
        names = shown([unit.source for unit in own])
        yield f"compiled with flags of its own, as the study declares: {names} ({levels})"


def _profiled(seen: BuildEvidence) -> Iterator[str]:
    """Sentence on how many units the compiler was given a profile, where it was of any."""
    units = [unit for unit in own_units(seen) if unit.words is not None]
    using = uses_profile(units)
    if using:
        yield f"compiled with a profile: {len(using)} of {len(units)} compile units"


def _artifact(seen: BuildEvidence) -> Iterator[str]:
    binary, objects = seen.proof.binary, seen.proof.objects
    if objects.count:
        yield f"{objects.lto} of {objects.count} object files are for LTO"
    if binary.read:
        yield f"protections: {_protections(seen)}"
    if binary.shared_library:
        yield (
            f"calls through the PLT: {len(binary.own_plt)} functions of its own, "
            f"{binary.plt_imports} of others"
        )
    asked = seen.request is not None and seen.request.variant.alignment != "default"
    if asked and binary.places.functions:
        whose = "that BOLT moved" if binary.bolted else "(some came compiled)"
        yield (
            f"functions aligned to {FUNCTION_BYTES} bytes: "
            f"{binary.places.aligned} of {binary.places.functions} {whose}"
        )


def _protections(seen: BuildEvidence) -> str:
    hardening = seen.proof.binary.hardening
    names = {
        "PIE": hardening.pie,
        "RELRO": hardening.relro,
        "BIND_NOW": hardening.bind_now,
        "canaries": hardening.canary,
        "FORTIFY": bool(hardening.checked),
        "CET": hardening.cet,
    }
    there = [name for name, is_there in names.items() if is_there]
    lacking = [name for name, is_there in names.items() if not is_there]
    return f"{', '.join(there) or 'none'}; not seen: {', '.join(lacking) or 'none'}"
