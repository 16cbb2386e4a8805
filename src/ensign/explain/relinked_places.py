"""Functions of programs as they were linked first, and by these the lines of their relinks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ensign.meter.client import find_meter
from ensign.meter.questions import Place, located
from ensign.proof.sampled_code import read_code_map


class LinkedFunction(NamedTuple):
    """A function of a program: where it begins in the file, its symbol, and what lies there."""

    offset: int
    symbol: str
    place: Place


def linked_functions(programs: Iterable[Path]) -> Mapping[Path, tuple[LinkedFunction, ...]]:
    """Those of each program; of a file that is none, none. InternalError without an answer."""
    starts = {program: _starts(program) for program in programs}
    places = _located({program: sorted(symbols) for program, symbols in starts.items()})
    return {
        program: tuple(
            LinkedFunction(offset, symbol, place)
            for offset, symbol in symbols.items()
            if (place := places.get((program, offset))) is not None
        )
        for program, symbols in starts.items()
    }


def with_lines(
    places: Mapping[Path, Sequence[Place]], linked: Mapping[Path, Path]
) -> Mapping[Path, Sequence[Place]]:
    """Places of files, with what debug information says of them.

    `linked` is the program that has it, by the relink that has none. A function of another size, or
    of a name that several have, stays as it is. InternalError where the meter does not answer.
    """
    lacking = [
        path
        for path in places.keys() & linked.keys()
        if not any(place.inlined for place in places[path])
    ]
    functions = linked_functions({linked[path] for path in lacking})
    single = {program: _of_one_name(own) for program, own in functions.items()}
    offsets = {
        path: [_offset(place, single[linked[path]]) for place in places[path]] for path in lacking
    }
    asked: defaultdict[Path, set[int]] = defaultdict(set)
    for path, own in offsets.items():
        asked[linked[path]].update(offset for offset in own if offset is not None)
    known = _located({program: sorted(own) for program, own in asked.items()})
    told = {
        path: [
            place if offset is None else _told(place, known.get((linked[path], offset)))
            for place, offset in zip(places[path], own, strict=True)
        ]
        for path, own in offsets.items()
    }
    return {**places, **told}


def _starts(program: Path) -> dict[int, str]:
    """Symbols of functions by the offsets at which they begin."""
    code = read_code_map(program)
    if code is None:
        return {}
    places = zip(map(code.offset_of, code.starts), code.names, strict=True)
    return {offset: name for offset, name in places if offset}


def _located(asked: Mapping[Path, Sequence[int]]) -> Mapping[tuple[Path, int], Place]:
    """What lies at the offsets in each file; nothing where a file is no program."""
    answers = located(find_meter(), asked) if asked else {}
    return {
        (path, offset): place
        for path, places in answers.items()
        for offset, place in zip(asked[path], places, strict=False)
    }


def _of_one_name(functions: Sequence[LinkedFunction]) -> Mapping[str, LinkedFunction]:
    """Functions by name, as far as only one has it."""
    named = Counter(place.place.function for place in functions)
    return {place.place.function: place for place in functions if named[place.place.function] == 1}


def _offset(place: Place, functions: Mapping[str, LinkedFunction]) -> int | None:
    """Where the same instruction lies in the program; None where that is not known."""
    function = functions.get(place.function) if place.function else None
    if function is None or place.within is None or function.place.size != place.size:
        return None
    return function.offset + place.within


def _told(place: Place, linked: Place | None) -> Place:
    if linked is None:
        return place
    return place._replace(
        inlined=linked.inlined, file=linked.file, line=linked.line, unit=linked.unit
    )
