"""Reading and writing quantities: `5ms`, `30s`, `0.5%`, `2GiB`. Pure."""

from __future__ import annotations

import math
import re

from ensign.model.errors import InputError

_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
_BYTES = {
    "b": 1,
    "": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_BITS = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
# In bytes, the kernel's token bucket takes 32 bits.
_MOST_BITS = 34 * 10**9
# Of what a person means; longer ones overflow.
_LONGEST = 40
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%]*)\s*")


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of `5ms`, `30s`, `2m`, `1.5h`; only 0 needs no unit. InputError otherwise."""
    value, unit = _split(text, "a time with its unit, such as 5ms, 30s or 2m")
    if value == 0 and not unit:
        return 0
    if unit not in _NS:
        raise InputError(f"'{text}' is not a time; write it with a unit, such as 5ms, 30s or 2m")
    return round(value * _NS[unit])


def parse_size_bytes(text: str) -> int:
    """Bytes of `500MB`, `2GiB` or a bare count. InputError otherwise."""
    value, unit = _split(text, "a size such as 500MB or 2GiB")
    if unit.lower() not in _BYTES:
        raise InputError(f"'{text}' is not a size; write it as 500MB or 2GiB")
    return round(value * _BYTES[unit.lower()])


def parse_rate_bits(text: str) -> int:
    """Bits per second of `100Mbit/s` or `1Gbit/s`. InputError otherwise."""
    value, unit = _split(text.removesuffix("/s"), "a rate such as 100Mbit/s or 1Gbit/s")
    if unit not in _BITS or not 0 < value * _BITS[unit] <= _MOST_BITS:
        raise InputError(f"'{text}' is not a rate such as 100Mbit/s or 1Gbit/s, at most 34Gbit/s")
    return round(value * _BITS[unit])


def parse_share(text: str) -> float:
    """0.005 for `0.5%` or `0.005`. InputError if it is not above 0 and below 1."""
    value, unit = _split(text, "a percentage such as 0.5%")
    if unit not in ("%", ""):
        raise InputError(f"'{text}' is not a percentage; write it as 0.5%")
    if not unit and value >= 1:
        raise InputError(f"'{text}' is not a percentage; write {text.strip()}%")
    share = value / 100 if unit == "%" else value
    if not 0 < share < 1:
        raise InputError(f"'{text}' must be above 0% and below 100%")
    return share


def _split(text: str, wanted: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise InputError(f"'{text[:_LONGEST]}' is not {wanted}")
    return float(match[1]), match[2]


def format_duration(ns: float) -> str:
    """`850 ms`, `12.3 s`, `4 min 05 s`: three figures at most, for people."""
    if ns < _NS["ms"]:
        return f"{ns / _NS['us']:.0f} µs"
    if ns < _NS["s"]:
        return f"{ns / _NS['ms']:.3g} ms"
    if ns < _NS["min"]:
        return f"{ns / _NS['s']:.3g} s"
    minutes, seconds = divmod(round(ns / _NS["s"]), 60)
    if ns < _NS["h"]:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def duration_option(ns: float) -> str:
    """`35s`, `4m`, `3h`: rounded up, as options take it."""
    seconds = ns / _NS["s"]
    if seconds <= 2 * 60:
        return f"{5 * math.ceil(seconds / 5)}s"
    if seconds <= 2 * 3600:
        return f"{math.ceil(seconds / 60)}m"
    return f"{math.ceil(seconds / 3600)}h"


def format_size(size_bytes: float) -> str:
    """`3.4 MiB`: binary units, for people."""
    for unit, bytes_each in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= bytes_each:
            return f"{size_bytes / bytes_each:.1f} {unit}"
    return f"{size_bytes:.0f} B"


def speedup(cost_ratio: float) -> float:
    """The speedup 1/r − 1 of a cost ratio r (method: stored are ratios, people read speedups)."""
    return 1 / cost_ratio - 1


def format_percent(share: float, digits: int = 1) -> str:
    """`+3.1 %`, `−0.4 %`, with a real minus sign and never `−0.0`."""
    rounded = round(share * 100, digits)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else "±"
    return f"{sign}{abs(rounded):.{digits}f} %"


def format_gain(share: float) -> str:
    """`+19 %`: a limit of a speedup, rounded up; `any` where there is none."""
    return f"+{max(math.ceil(100 * share), 1):,} %" if math.isfinite(share) else "any"


def pluralize(number: int, noun: str) -> str:
    """`1 build`, `3 builds`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
