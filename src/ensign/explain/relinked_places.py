"""Lines and inlined functions in relinks, by the program as it was linked first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ensign.meter.client import find_meter
from ensign.meter.questions import Place, located
from ensign.proof.sampled_code import read_code_map


class _Start(NamedTuple):
    offset: int
    size_bytes: int | None


def with_lines(
    places: Mapping[Path, Sequence[Place]], linked: Mapping[Path, Path]
) -> Mapping[Path, Sequence[Place]]:
    """Places of files, with what debug information says of them.

    `linked` is the program that has it, by the relink that has none. A function of another size, or
    of a name that several have, stays as it is. InternalError where the meter does not answer.
    """
    lacking = {
        path: linked[path]
        for path in places.keys() & linked.keys()
        if not any(place.inlined for place in places[path])
    }
    starts = {program: _starts(program) for program in set(lacking.values())}
    asked: defaultdict[Path, set[int]] = defaultdict(set)
    for path, program in lacking.items():
        found = (_offset(place, starts[program]) for place in places[path])
        asked[program].update(offset for offset in found if offset is not None)
    ordered = {program: sorted(offsets) for program, offsets in asked.items() if offsets}
    answers = located(find_meter(), ordered) if ordered else {}
    known = {
        (program, offset): place
        for program, told in answers.items()
        for offset, place in zip(ordered[program], told, strict=False)  # none of no program
    }
    return {
        path: own
        if path not in lacking
        else [
            _told(place, known.get((program, _offset(place, starts[program]) or 0)))
            for program in [lacking[path]]
            for place in own
        ]
        for path, own in places.items()
    }


def _starts(program: Path) -> dict[str, _Start]:
    """Functions by name, as far as only one has it."""
    code = read_code_map(program)
    places = () if code is None else map(code.offset_of, code.starts)
    offsets = sorted({offset for offset in places if offset})
    answers = located(find_meter(), {program: offsets}) if offsets else {}
    told = list(zip(offsets, answers.get(program, ()), strict=False))
    named = Counter(place.function for _, place in told)
    return {
        place.function: _Start(offset, place.size)
        for offset, place in told
        if place.function and named[place.function] == 1
    }


def _offset(place: Place, starts: Mapping[str, _Start]) -> int | None:
    """Where the same instruction lies in the program; None where that is not known."""
    start = starts.get(place.function)
    if start is None or place.within is None or start.size_bytes != place.size:
        return None
    return start.offset + place.within


def _told(place: Place, linked: Place | None) -> Place:
    if linked is None:
        return place
    return place._replace(
        inlined=linked.inlined, file=linked.file, line=linked.line, unit=linked.unit
    )
