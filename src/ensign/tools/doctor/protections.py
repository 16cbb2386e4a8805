"""Protections that a program shows, that it lacks, and that cannot be told. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from ensign.proof.facts import Binary
from ensign.proof.identity import Identity
from ensign.proof.instructions import Instructions

_X86, _CANARY = "x86", "__stack_chk_fail"
_NO_FORTIFY = "FORTIFY (it imports no function that has a checked one)"
_STATIC = "canaries, FORTIFY (its C library is in it, and has its own)"


class Looked(Protocol):
    """Facts read of a program."""

    @property
    def binary(self) -> Binary:
        """Its protections."""
        ...

    @property
    def identity(self) -> Identity:
        """Identity of the program."""
        ...

    @property
    def instructions(self) -> Instructions | None:
        """Its code."""
        ...

    @property
    def by_rust(self) -> bool:
        """True if rustc made it."""
        ...


def hardening_of(look: Looked) -> str:
    """Protections: there, then not seen, then not to be told, then dangers."""
    identity = look.identity
    names = _judged(look)
    text = ", ".join(name for name, value in names.items() if value) or "none"
    lacking = [name.partition(" (")[0] for name, value in names.items() if value is False]
    text += f"; not seen: {', '.join(lacking)}" if lacking else ""
    untold = list(_untold(look))
    text += f"; cannot be told: {', '.join(untold)}" if untold else ""
    if identity.executable_stack:
        text += "; EXECUTABLE STACK"
    if identity.search:
        text += f"; {'RPATH' if identity.rpath else 'RUNPATH'} {':'.join(identity.search)}"
    return text + ("; TEXTREL" if identity.textrel else "")


def _judged(look: Looked) -> Mapping[str, bool | None]:
    """Protections by name; None for what does not concern it, or cannot be told."""
    hardening, identity = look.binary.hardening, look.identity
    probes = look.instructions is not None and look.instructions.probes > 0
    c_library_in_it = identity.static or identity.go is not None
    fortified = True if hardening.checked else False if hardening.unchecked else None
    no_c = c_library_in_it or look.by_rust
    return {
        "PIE": hardening.pie if identity.kind == "program" else None,
        "RELRO": hardening.relro,
        "BIND_NOW": None if identity.static else hardening.bind_now,
        "canaries": None if c_library_in_it else hardening.canary or _unless(identity),
        f"FORTIFY ({len(hardening.checked)} checked functions)": None if no_c else fortified,
        "CET": hardening.cet if identity.machine.startswith(_X86) else None,
        "stack clash probes": probes or None,
        "no executable stack": None if identity.executable_stack is not False else True,
    }


def _unless(identity: Identity) -> bool | None:
    """A C library calls its own function for that, which leaves no trace."""
    return None if _CANARY in identity.exports else False


def _untold(look: Looked) -> Iterator[str]:
    hardening, identity = look.binary.hardening, look.identity
    if identity.go is not None or look.by_rust:
        return
    if identity.static:
        yield _STATIC
    elif not hardening.checked and not hardening.unchecked:
        yield _NO_FORTIFY
    if _CANARY in identity.exports:
        yield "canaries (it defines what they call)"
    if identity.executable_stack is None:
        yield "whether its stack is executable (nothing in it says so)"
