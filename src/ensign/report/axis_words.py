"""Axes, their values and changes of them, as people say them."""

from __future__ import annotations

from ensign.model.effects import AxisChange
from ensign.model.variants import DEFAULTS
from ensign.report.words import clean

_SWITCHES = {"lto": "LTO", "pgo": "PGO", "bolt": "BOLT"}
_NAMES = {
    "optimization": "level",
    "interposition": "semantic interposition",
    "plt": "PLT",
    "floating_point": "floating point",
    "strip": "stripping",
    "codegen_units": "codegen units",
}
_WHOLE = {
    ("alignment", "functions"): "alignment of functions",
    ("alignment", "loops"): "alignment of functions and loops",
}
_ALIGNED = {
    "default": "with default alignment",
    "functions": "with functions aligned",
    "loops": "with functions and loops aligned",
}
_OFF = "off"


def change_words(change: AxisChange) -> str:
    """`LTO`, `no PGO`, `-O3 instead of -O2`, `hardening canary`, `target native`."""
    axis, old, new = change.axis, change.old, change.new
    if axis in _SWITCHES and _OFF in (old, new):
        return f"no {_switched(axis, old)}" if new == _OFF else _switched(axis, new)
    if axis in ("compiler", "optimization"):
        return clean(f"{new} instead of {old}")
    if axis == "dependencies" and new == "flags":
        return "giving the flags to the dependencies"
    if axis in _SWITCHES:
        return f"{_switched(axis, new)} instead of {_switched(axis, old)}"
    said = _said(axis, new)
    return said if old == DEFAULTS[axis] else f"{said} instead of {clean(old) or 'none'}"


def condition_words(conditions: tuple[tuple[str, str], ...]) -> str:
    """`with gcc-12, at -O3, without LTO`."""
    return ", ".join(_condition(axis, value) for axis, value in conditions)


def restriction_words(only: tuple[tuple[str, str], ...]) -> str:
    """As `condition_words`, without what nobody asked for; empty where nothing is left."""
    asked = tuple((axis, value) for axis, value in only if value != DEFAULTS[axis])
    return condition_words(asked)


def _condition(axis: str, value: str) -> str:
    if axis in _SWITCHES:
        return f"without {_SWITCHES[axis]}" if value == _OFF else f"with {_switched(axis, value)}"
    if axis == "compiler":
        return f"with {clean(value)}"
    if axis == "optimization":
        return f"at {clean(value)}"
    if axis == "dependencies":
        return "with flags for the dependencies" if value == "flags" else "with plain dependencies"
    if axis == "alignment":
        return _ALIGNED[value]
    return _said(axis, value)


def _switched(axis: str, value: str) -> str:
    plain = axis != "lto" or value == "full"
    return _SWITCHES[axis] if plain else f"{clean(value)} {_SWITCHES[axis]}"


def _said(axis: str, value: str) -> str:
    return _WHOLE.get((axis, value)) or f"{_name(axis)} {clean(value) or 'none'}"


def _name(axis: str) -> str:
    return _NAMES.get(axis, axis)
