"""Protections, alignment, calls through the PLT, BOLT: what the artifact's bytes show. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.finding_kinds.proof import (
    ALIGNMENT_WITHOUT_EFFECT,
    BOLT_NOT_APPLIED,
    BOLT_NOT_ASKED,
    HARDENING_LEFT,
    HARDENING_MISSING,
    PLT_CALLS,
    PLT_CALLS_LEFT,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Request, own_units
from ensign.toolchains.alignment import FUNCTION_BYTES

_SOME = 5
# By chance it is a quarter; BOLT aligns half without being told, and all if it is.
_MOST_OF = 0.75


def binary_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """All that is judged by the artifact's bytes alone."""
    if seen.request is not None:
        yield from _hardening(seen, seen.request)
        yield from _alignment(seen, seen.request)
    yield from _plt(seen)
    if seen.request is not None:
        yield from _bolt(seen, seen.request)


def _hardening(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    lacks = list(_lacking(seen, request))
    if lacks:
        preset = request.variant.hardening
        text = f"hardening '{preset}' was asked for, but the artifact lacks {', '.join(lacks)}"
        yield seen.finding(HARDENING_MISSING, text)
    left = list(_left(seen, request))
    if left:
        preset = request.variant.hardening
        text = f"hardening '{preset}' was asked for, but the artifact has {', '.join(left)}"
        yield seen.finding(HARDENING_LEFT, text)


def _left(seen: BuildEvidence, request: Request) -> Iterator[str]:
    """Protections that were to be left out."""
    found, link = seen.proof.binary.hardening, request.flags.link
    if "-no-pie" in link and found.pie and not seen.proof.binary.shared_library:
        yield "position independence (PIE)"
    if "-Wl,-z,norelro" in link and found.relro:
        yield "RELRO"
    if "-Wl,-z,lazy" in link and found.bind_now:
        yield "BIND_NOW"


def _lacking(seen: BuildEvidence, request: Request) -> Iterator[str]:
    found = seen.proof.binary.hardening
    link = request.flags.link
    if "-pie" in link and not found.pie and not seen.proof.binary.shared_library:
        yield "position independence (PIE)"
    if "-Wl,-z,relro" in link and not found.relro:
        yield "RELRO (no GNU_RELRO segment)"
    if "-Wl,-z,now" in link and not found.bind_now:
        yield "BIND_NOW (no such flag in the dynamic section)"
    if "-Wl,-z,noexecstack" in link and found.executable_stack:
        yield "a stack that cannot be executed"
    fortify = [f for f in request.flags.compile if f.startswith("-D_FORTIFY_SOURCE=")]
    asked = fortify and fortify[-1] != "-D_FORTIFY_SOURCE=0"
    # Where calls were recorded, the definition itself is judged.
    if asked and not seen.calls and found.unchecked and not found.checked:
        yield f"FORTIFY (it imports {', '.join(found.unchecked[:_SOME])} and no checked version)"


def _alignment(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    """One aligned section is a trace; that nothing is aligned shows that flags had no effect."""
    if request.variant.alignment == "default" or (seen.file and not own_units(seen)):
        return
    places, bolted = seen.proof.binary.places, seen.proof.binary.bolted
    if not bolted and 0 < places.strictest < FUNCTION_BYTES:
        text = (
            f"functions aligned to {FUNCTION_BYTES} bytes were asked for, but no section of its "
            f"code is aligned to more than {places.strictest}"
        )
        yield seen.finding(ALIGNMENT_WITHOUT_EFFECT, text)
    if bolted and places.aligned < _MOST_OF * places.functions:
        text = (
            f"functions aligned to {FUNCTION_BYTES} bytes were asked for, but only "
            f"{places.aligned} of {places.functions} that BOLT moved are"
        )
        yield seen.finding(ALIGNMENT_WITHOUT_EFFECT, text)


def _plt(seen: BuildEvidence) -> Iterator[Finding]:
    binary = seen.proof.binary
    if not binary.shared_library or not binary.own_plt:
        return
    names = ", ".join(binary.own_plt[:_SOME])
    asked = seen.request is not None and "off" in (
        seen.request.variant.interposition,
        seen.request.variant.plt,
    )
    text = (
        f"the library calls {len(binary.own_plt)} of its own functions through the PLT ({names}): "
        "they can be interposed; -fno-semantic-interposition or -Wl,-Bsymbolic-functions, or "
        "hidden visibility, makes these calls direct"
    )
    yield seen.finding(PLT_CALLS_LEFT if asked else PLT_CALLS, text)


def _bolt(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    bolted = seen.proof.binary.bolted
    if request.variant.bolt != "off" and not bolted:
        text = "BOLT was asked for, but there is neither .note.bolt_info nor .bolt.org.text"
        yield seen.finding(BOLT_NOT_APPLIED, text)
    if request.variant.bolt == "off" and bolted:
        text = "BOLT was not asked for, but the artifact was rewritten by it"
        yield seen.finding(BOLT_NOT_ASKED, text)
