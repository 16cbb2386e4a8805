"""All rules in their order, and what was seen in sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, own_units, shown
from ensign.proof.facts import Unit, UnitKind
from ensign.proof.flags import level_of
from ensign.proof.rules_binary import binary_findings
from ensign.proof.rules_flags import flag_findings, with_own_flags
from ensign.proof.rules_link import link_findings
from ensign.proof.rules_log import log_findings
from ensign.proof.rules_origin import origin_findings, origin_lines
from ensign.proof.rules_profile import uses_profile
from ensign.proof.rules_rust import is_of_rust, rust_findings, rust_lines
from ensign.proof.rules_units import unit_findings
from ensign.toolchains.alignment import FUNCTION_BYTES
from ensign.toolchains.profiling import bolt_count

_NO_DEBUG = "flags: unknown, because there is no debug information (add -g)"
_NO_FLAGS = "record no flags (Clang: add -grecord-command-line)"


def judge(seen: BuildEvidence) -> tuple[Finding, ...]:
    """All findings. What cannot be known is no finding, but is said by `describe`."""
    if is_of_rust(seen):
        return (
            *origin_findings(seen),
            *rust_findings(seen),
            *binary_findings(seen),
            *log_findings(seen),
        )
    return (
        *origin_findings(seen),
        *flag_findings(seen),
        *unit_findings(seen),
        *(() if _by_rustc(seen) else link_findings(seen)),
        *binary_findings(seen),
        *log_findings(seen),
    )


def _by_rustc(seen: BuildEvidence) -> bool:
    """Whether rustc wrote the link line, which names each crate, used or not."""
    binary = seen.proof.binary
    named = (*binary.comments, *(unit.compiler for unit in binary.units))
    return any(text.startswith("rustc") for text in named)


def describe(seen: BuildEvidence) -> tuple[str, ...]:
    """Say in sentences what was seen, and what is unknown, because of what."""
    return tuple(_lines(seen))


def describe_units(seen: BuildEvidence) -> tuple[str, ...]:
    """Of a file that is loaded with the program: how its units were compiled."""
    compiled = [unit for unit in seen.proof.binary.units if unit.kind is not UnitKind.LTRANS]
    lines = tuple(_units(compiled))[:1] if compiled else (_NO_DEBUG,)
    return tuple(f"{seen.file}: {line}" for line in (*lines, *_declared(seen)))


def _lines(seen: BuildEvidence) -> Iterator[str]:
    binary = seen.proof.binary
    compiled = [unit for unit in binary.units if unit.kind is not UnitKind.LTRANS]
    ltrans = [unit for unit in binary.units if unit.kind is UnitKind.LTRANS]
    if is_of_rust(seen):
        yield from rust_lines(seen)
    else:
        yield from _units(compiled) if compiled else (_NO_DEBUG,)
    yield from _declared(seen)
    yield from _profiled_units(seen)
    if ltrans:
        yield f"generated at the link: {_levels(ltrans)}"
    objects = seen.proof.objects
    if objects.count:
        yield f"{objects.lto} of {objects.count} object files are for LTO"
    if binary.read:
        yield f"protections: {_protections(seen)}"
    if binary.shared_library:
        yield (
            f"calls through the PLT: {len(binary.own_plt)} functions of its own, "
            f"{binary.plt_imports} of others"
        )
    yield from _places(seen)
    yield from origin_lines(seen)
    link = seen.proof.link
    yield (
        f"link order: unknown, because {link.unknown}"
        if link.unknown
        else f"link order judged by {link.by}"
    )
    count = bolt_count(seen.log)
    if count is not None:
        yield f"BOLT: {count.profiled} of {count.functions} functions have a profile"
    elif binary.bolted:
        yield "BOLT: applied; its share of functions is unknown, because no log says it"
    yield from binary.comments


def _places(seen: BuildEvidence) -> Iterator[str]:
    """Where functions begin, of variants that align them."""
    places = seen.proof.binary.places
    asked = seen.request is not None and seen.request.variant.alignment != "default"
    if asked and places.functions:
        whose = "that BOLT moved" if seen.proof.binary.bolted else "(some came compiled)"
        yield (
            f"functions aligned to {FUNCTION_BYTES} bytes: "
            f"{places.aligned} of {places.functions} {whose}"
        )


def _declared(seen: BuildEvidence) -> Iterator[str]:
    own = with_own_flags(seen, own_units(seen))
    if own:
        levels = sorted({level_of(unit.words) or "no -O" for unit in own})
        names = shown([unit.source for unit in own])
        said = f"{names} ({', '.join(levels)})"
        yield f"compiled with flags of its own, as the study declares: {said}"


def _profiled_units(seen: BuildEvidence) -> Iterator[str]:
    """Of how many units the compiler was given a profile, where it was of any."""
    units = [unit for unit in own_units(seen) if unit.words is not None]
    using = uses_profile(units)
    if using:
        yield f"compiled with a profile: {len(using)} of {len(units)} compile units"


def _units(units: list[Unit]) -> Iterator[str]:
    recorded = [unit for unit in units if unit.flags is not None]
    assembler = sum(unit.kind is UnitKind.ASSEMBLER for unit in units)
    silent = len(units) - len(recorded) - assembler
    if recorded:
        yield f"compile units by level: {_levels(recorded)}"
    if silent:
        yield f"flags: unknown for {silent} compile units, because they {_NO_FLAGS}"
    compilers = Counter(unit.compiler for unit in units if unit.kind is not UnitKind.ASSEMBLER)
    yield "compilers: " + ", ".join(f"{name} {count}" for name, count in sorted(compilers.items()))


def _levels(units: list[Unit]) -> str:
    levels = Counter(level_of(unit.flags) or "no -O" for unit in units)
    return ", ".join(f"{level} {count}" for level, count in sorted(levels.items()))


def _protections(seen: BuildEvidence) -> str:
    found = seen.proof.binary.hardening
    names = {
        "PIE": found.pie,
        "RELRO": found.relro,
        "BIND_NOW": found.bind_now,
        "canaries": found.canary,
        "FORTIFY": bool(found.checked),
        "CET": found.cet,
    }
    there = [name for name, is_there in names.items() if is_there]
    lacking = [name for name, is_there in names.items() if not is_there]
    return f"{', '.join(there) or 'none'}; not seen: {', '.join(lacking) or 'none'}"
