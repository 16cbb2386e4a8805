"""Rules on the bytes of a program or a library: protections, alignment, BOLT, code. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.finding_kinds.proof import (
    ALIGNMENT_WITHOUT_EFFECT,
    BOLT_NOT_APPLIED,
    BOLT_NOT_ASKED,
    FAST_MATH_START,
    HARDENING_LEFT,
    HARDENING_MISSING,
    LOOKS_UNOPTIMIZED,
    NOT_INTERPOSABLE,
    PLT_CALLS,
    PLT_CALLS_LEFT,
)
from ensign.model.findings import Finding
from ensign.proof.comparison import grouped
from ensign.proof.evidence import BuildEvidence, Compiled, Request, own_units, some
from ensign.proof.fast_math import FLUSHED
from ensign.proof.flags import effects, level_of
from ensign.proof.rust_calls import linked_crates
from ensign.proof.unoptimized import Unoptimized
from ensign.toolchains.alignment import FUNCTION_BYTES

_SOME = 5
_TWO = 2
_INTERPOSITION = "semantic-interposition"
# By chance it is a quarter; BOLT aligns half without being told, and all if it is.
_MOST_OF = 0.75
_NOT_OPTIMIZED = ("", "-O0")
# A flag of the link; the protection that it decides, and how; what the artifact "lacks" or "has"
# where that is otherwise.
_PROTECTIONS = (
    ("-pie", "pie", True, "lacks", "position independence (PIE)"),
    ("-Wl,-z,relro", "relro", True, "lacks", "RELRO (no GNU_RELRO segment)"),
    ("-Wl,-z,now", "bind_now", True, "lacks", "BIND_NOW (no such flag in the dynamic section)"),
    ("-Wl,-z,noexecstack", "executable_stack", False, "lacks", "a stack that cannot be executed"),
    ("-no-pie", "pie", False, "has", "position independence (PIE)"),
    ("-Wl,-z,norelro", "relro", False, "has", "RELRO"),
    ("-Wl,-z,lazy", "bind_now", False, "has", "BIND_NOW"),
)


def artifact_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Findings of the bytes on protections, alignment, calls through the PLT, and BOLT."""
    request = seen.request
    if request is not None:
        wrong = grouped(_wrong_protections(seen, request))
        asked = f"hardening '{request.variant.hardening}' was asked for, but the artifact"
        for verb, kind in (("lacks", HARDENING_MISSING), ("has", HARDENING_LEFT)):
            if verb in wrong:
                yield seen.finding(kind, f"{asked} {verb} {', '.join(wrong[verb])}")
        yield from _alignment(seen, request)
    yield from _plt(seen)
    yield from _not_interposable(seen)
    bolted = seen.proof.binary.bolted
    if request is not None and request.variant.bolt != "off" and not bolted:
        text = "BOLT was asked for, but there is neither .note.bolt_info nor .bolt.org.text"
        yield seen.finding(BOLT_NOT_APPLIED, text)
    if request is not None and request.variant.bolt == "off" and bolted:
        text = "BOLT was not asked for, but the artifact was rewritten by it"
        yield seen.finding(BOLT_NOT_ASKED, text)


def _wrong_protections(seen: BuildEvidence, request: Request) -> Iterator[tuple[str, str]]:
    hardening = seen.proof.binary.hardening
    for flag, name, wanted, verb, text in _PROTECTIONS:
        of_programs = name == "pie" and seen.proof.binary.shared_library
        if flag in request.flags.link and getattr(hardening, name) != wanted and not of_programs:
            yield verb, text
    fortify = [f for f in request.flags.compile if f.startswith("-D_FORTIFY_SOURCE=")]
    asked = fortify and fortify[-1] != "-D_FORTIFY_SOURCE=0"
    # Where calls were recorded, the definition itself is judged.
    if asked and not seen.calls and hardening.unchecked and not hardening.checked:
        unchecked = ", ".join(hardening.unchecked[:_SOME])
        yield "lacks", f"FORTIFY (it imports {unchecked} and no checked version)"


def _alignment(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    """One aligned section is a trace; that nothing is aligned shows that flags had no effect."""
    if request.variant.alignment == "default" or (seen.file and not own_units(seen)):
        return
    places, bolted = seen.proof.binary.places, seen.proof.binary.bolted
    asked = f"functions aligned to {FUNCTION_BYTES} bytes were asked for, but"
    if not bolted and 0 < places.strictest < FUNCTION_BYTES:
        text = f"{asked} no section of its code is aligned to more than {places.strictest}"
        yield seen.finding(ALIGNMENT_WITHOUT_EFFECT, text)
    if bolted and places.aligned < _MOST_OF * places.functions:
        text = f"{asked} only {places.aligned} of {places.functions} that BOLT moved are"
        yield seen.finding(ALIGNMENT_WITHOUT_EFFECT, text)


def _plt(seen: BuildEvidence) -> Iterator[Finding]:
    binary = seen.proof.binary
    if not binary.shared_library or not binary.own_plt:
        return
    variant = None if seen.request is None else seen.request.variant
    asked = variant is not None and "off" in (variant.interposition, variant.plt)
    text = (
        f"the library calls {len(binary.own_plt)} of its own functions through the PLT "
        f"({', '.join(binary.own_plt[:_SOME])}): "
        "they can be interposed; -Wl,-Bsymbolic-functions or hidden visibility makes these calls "
        "direct, -fno-semantic-interposition those within one source (with LTO: nearly all)"
    )
    yield seen.finding(PLT_CALLS_LEFT if asked else PLT_CALLS, text)


def _not_interposable(seen: BuildEvidence) -> Iterator[Finding]:
    """Of a library that exports one function, no call can pass over another."""
    exported = seen.proof.binary.exported_functions
    if not seen.proof.binary.shared_library or exported < _TWO:
        return
    if whys := [*_direct_calls(seen)]:
        text = (
            f"{' and '.join(whys)}: calls among the {exported} functions that the library exports "
            "may be direct or inlined, so they pass over one that LD_PRELOAD or the program puts "
            "in place of the library's own"
        )
        yield seen.finding(NOT_INTERPOSABLE, text)


def _direct_calls(seen: BuildEvidence) -> Iterator[str]:
    """Flags that let a library call its exported functions directly."""
    units = [unit for unit in own_units(seen) if unit.words is not None]
    off = [unit for unit in units if _interposes_nothing(unit)]
    if off:
        how_many = "" if len(off) == len(units) else f"{len(off)} of {len(units)} units are "
        plain = any(f"-fno-{_INTERPOSITION}" in (unit.words or ()) for unit in off)
        flag = f"-fno-{_INTERPOSITION}" if plain else f"-Ofast (it has -fno-{_INTERPOSITION})"
        yield f"{how_many}compiled with {flag}"
    if seen.link is not None and any("-Bsymbolic" in word for word in seen.link.ran):
        yield "linked with -Bsymbolic"


def _interposes_nothing(compiled: Compiled) -> bool:
    by_gcc = compiled.unit is not None and compiled.unit.compiler.startswith("GCC")
    chosen = effects(compiled.words or ())
    implied = "off" if by_gcc and chosen.get("O") == "-Ofast" else "on"
    return chosen.get(_INTERPOSITION, implied) == "off"


def code_findings(seen: BuildEvidence, look: Unoptimized | None) -> Iterator[Finding]:
    """That code looks unoptimized, unless known flags say the same, or the contrary of all."""
    if not look or linked_crates(seen):
        return
    levels = {level_of(unit.words) or "" for unit in own_units(seen) if unit.words is not None}
    if not levels & {*_NOT_OPTIMIZED} and not (levels and look.whole):
        yield seen.finding(LOOKS_UNOPTIMIZED, _unoptimized(look))


def _unoptimized(look: Unoptimized) -> str:
    of = f"{look.unoptimized} of the {look.functions} functions that can be told"
    of += " in the pieces read" if look.partial else ""
    names = f" ({some(look.names)})" if look.names and not look.whole else ""
    what = "looks unoptimized" if look.whole else "parts look unoptimized"
    share = look.slots / max(look.instructions, 1)
    text = (
        f"{what} (-O0): {of}{names} keep their variables on the stack: {100 * share:.0f} % of "
        f"their instructions load or store one there, {look.reloads} of these what a register "
        f"still holds; {look.framed} have a frame pointer"
    )
    return text if look.vectors else f"{text}, none vector code"


def start_up_findings(seen: BuildEvidence, *, links_fast_math: bool) -> Iterator[Finding]:
    """Effects of the file on a process that loads it."""
    if links_fast_math:
        text = f"links fast-math start-up code (crtfastmath.o): {FLUSHED}"
        library = seen.proof.binary.shared_library
        yield seen.finding(FAST_MATH_START, text + (", also in programs that load it" * library))
