"""Whether a program's output is the baseline's, with numbers up to a tolerance. Pure."""

from __future__ import annotations

import math
import re
from itertools import zip_longest

from ensign.model.quoting import quoted

_NUMBER = re.compile(
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?\b(?:nan|inf(?:inity)?)\b)", re.IGNORECASE
)
_LONGEST_LINE = 80
# NUL, and bytes that are no UTF-8.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")


def difference(
    expected: str, actual: str, tolerance: float = 0.0, whose: str = "the baseline"
) -> str:
    """The first line in which two outputs differ, in words; empty where they are the same.

    With a tolerance above 0, numbers may differ by that share of the larger one; all other text,
    blanks too, must be equal. So 0 differs from every other number, and NaN equals NaN. Of bytes
    that are no text the first that differs is told, counted from 1.
    """
    if expected == actual:
        return ""
    if not tolerance and (_NO_TEXT.search(expected) or _NO_TEXT.search(actual)):
        return _first_byte(_bytes(expected), _bytes(actual), whose)
    differs = _first_line(expected, actual, tolerance, whose)
    return differs or ("" if tolerance else "the ends of its lines differ")


def _first_line(expected: str, actual: str, tolerance: float, whose: str) -> str:
    lines = zip_longest(expected.splitlines(), actual.splitlines())
    for number, (wanted, given) in enumerate(lines, start=1):
        if wanted is None:
            return f"line {number}: {_shown(given)} where {whose} ends"
        if given is None:
            return f"it ends before line {number}: {_shown(wanted)}"
        if not _alike(wanted, given, tolerance):
            return f"line {number}: {_shown(given)} instead of {_shown(wanted)}"
    return ""


def _first_byte(wanted: bytes, given: bytes, whose: str) -> str:
    alike = zip(wanted, given, strict=False)
    place = next((at for at, (one, other) in enumerate(alike) if one != other), None)
    if place is not None:
        return f"byte {place + 1}: {given[place]:#04x} instead of {wanted[place]:#04x}"
    return f"{len(given)} bytes where {whose} has {len(wanted)}"


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _alike(wanted: str, given: str, tolerance: float) -> bool:
    if wanted == given:
        return True
    if not tolerance:
        return False
    # Splitting at the numbers leaves text at even places, numbers at odd ones.
    parts, others = _NUMBER.split(wanted), _NUMBER.split(given)
    return len(parts) == len(others) and all(
        part == other or (place % 2 == 1 and _close(float(part), float(other), tolerance))
        for place, (part, other) in enumerate(zip(parts, others, strict=True))
    )


def _close(one: float, other: float, tolerance: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=tolerance)


def _shown(line: str) -> str:
    return quoted(line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…")
