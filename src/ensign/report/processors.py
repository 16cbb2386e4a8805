"""On which processors a program runs, by the instructions that it may use. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.instructions import FIRST_LEVEL, LEVELS
from ensign.model.shipment import Shipment

# By the compilers' tables of processors (`-march` of GCC 14 and LLVM 19).
_RUNS_ON = {
    FIRST_LEVEL: "every x86-64 processor",
    "x86-64-v2": (
        "Intel since Nehalem (2008) and Silvermont (Atom, 2013), AMD since Bulldozer (2011) and "
        "Jaguar (2013)"
    ),
    "x86-64-v3": (
        "Intel Core and Xeon since Haswell (2013) and Atom since Gracemont (2021), but not the "
        "Pentium and Celeron of those years; AMD since Excavator (2015), which is every Zen"
    ),
    "x86-64-v4": (
        "Intel Xeon since Skylake-SP (2017), Core X, and Core from Ice Lake to Rocket Lake, but "
        "not Core since Alder Lake (2021); AMD since Zen 4 (2022)"
    ),
}
_ELSEWHERE = (
    "Elsewhere it ends with an illegal instruction, perhaps late. A virtual machine has what its "
    "host lets it see. What the project itself builds for other processors, and chooses when it "
    "runs, is not counted."
)


def where_it_runs(shipment: Shipment) -> Iterator[str]:
    """Paragraphs: what it may use, which processors have that, and which hosts were looked at."""
    yield from _needs(shipment)
    if shipment.hosts:
        yield f"Processors that were looked at, which have all of it: {', '.join(shipment.hosts)}."
    yield from (f"{doubt[:1].upper()}{doubt[1:]}." for doubt in shipment.doubts)


def _needs(shipment: Shipment) -> Iterator[str]:
    used = shipment.instructions
    if used is None or used.unknown:
        more = "" if used is None else f" (the compiler names {', '.join(used.unknown)})"
        yield (
            f"Which instructions the program uses is not known{more}, so neither is where it runs. "
            "A target by its level (x86-64-v2, -v3, -v4) would say."
        )
        return
    level = used.level
    if level:
        yield f"It needs {level}: {_RUNS_ON[level]}."
    else:
        within = [name for name, sets in LEVELS.items() if sets <= used.sets]
        highest = within[-1] if within else FIRST_LEVEL
        beyond = sorted(used.sets - LEVELS.get(highest, frozenset()))
        yield (
            f"It may use {highest} and, beyond that, {', '.join(beyond)}: no level has these "
            "together, and there is no list of processors that do. 'ensign ship --host FILE' says "
            "whether a host has them."
        )
    if level != FIRST_LEVEL:
        yield _ELSEWHERE
