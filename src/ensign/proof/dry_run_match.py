"""Whether what was built agrees with what a dry run of make prints. Pure.

Make may have been given other variables than a dry run has, so that its commands are evidence of
a file only where the file's own units bear them out.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from ensign.proof.evidence import BuildEvidence, Compiled, own_units
from ensign.proof.flags import effects

# What compilers record as they were told, with what no flag means.
_RECORDED = {"O": "-O0", "lto": "off", "profile-use": "off", "profile-generate": "off"}
# In this order: clang++ holds g++.
_FAMILIES = {"clang": "Clang", "gcc": "GCC", "g++": "GCC"}


def borne_out(seen: BuildEvidence) -> bool:
    """Whether units of the artifact say that the calls made them, and none contradicts."""
    told = [unit for unit in own_units(seen) if _own_flags(unit) is not None]
    return any(unit.call for unit in told) and contradicted(seen) is None


def contradicted(seen: BuildEvidence) -> str | None:
    """A source, and how its unit differs from its call; None where no unit does."""
    for unit in own_units(seen):
        said = _difference(unit)
        if said is not None:
            return f"{PurePosixPath(unit.source).name} {said}"
    return None


def _difference(unit: Compiled) -> str | None:
    if unit.unit is None or unit.call is None:
        return None
    family = _family(unit.call.program)
    if not unit.unit.compiler.startswith(family):
        return f"is by {unit.unit.compiler}, not by {PurePosixPath(unit.call.program).name}"
    flags = _own_flags(unit)
    if flags is None:
        return None
    has, would = effects(flags), effects(unit.asked)
    for subject, nothing in _RECORDED.items():
        was, now = has.get(subject, nothing), would.get(subject, nothing)
        if was != now:
            name = "" if subject == "O" else f"{subject} "
            return f"has {name}{was}, not {name}{now}"
    return None


def _own_flags(unit: Compiled) -> tuple[str, ...] | None:
    return None if unit.unit is None else unit.unit.flags


def _family(program: str) -> str:
    name = PurePosixPath(program).name
    return next((family for word, family in _FAMILIES.items() if word in name), "")
