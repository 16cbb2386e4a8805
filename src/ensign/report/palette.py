"""Colours of the HTML report: blue against orange, told apart by colour-blind people.

Charts are drawn in the light colours. The page replaces each by a variable, through selectors on
the drawn `fill` and `stroke`, so that the same drawing follows the reader's light or dark mode.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """One role: the CSS variable's name, its value in light and in dark mode."""

    name: str
    light: str
    dark: str


INK = Colour("ink", "#1b2026", "#e7eaed")
MUTED = Colour("muted", "#59636e", "#a0aab4")
GRID = Colour("grid", "#dde2e7", "#353c44")
MARGIN = Colour("margin", "#eceff2", "#262c33")
FASTER = Colour("faster", "#0b5fa5", "#74b8f0")
SLOWER = Colour("slower", "#b3500b", "#f2a561")
UNCLEAR = Colour("unclear", "#66707b", "#98a3ae")
PAPER = Colour("paper", "#fdfdfc", "#15191e")

BANDS = (
    Colour("band-0", "#dc8a35", "#d98236"),
    Colour("band-1", "#cdd3d9", "#4b535c"),
    Colour("band-2", "#c4dcf1", "#234865"),
    Colour("band-3", "#86b9e2", "#33719f"),
    Colour("band-4", "#3a7fbc", "#69b0e3"),
    Colour("band-5", "#10477f", "#bfe2fb"),
)
# Text on the bands; values differ in the last digit only so that each can be selected.
BAND_TEXTS = (
    Colour("band-text-0", "#1b2020", "#101418"),
    Colour("band-text-1", "#1b2021", "#f1f4f6"),
    Colour("band-text-2", "#1b2022", "#f1f4f7"),
    Colour("band-text-3", "#1b2023", "#f1f4f8"),
    Colour("band-text-4", "#fefef4", "#101419"),
    Colour("band-text-5", "#fefef5", "#10141a"),
)
# Cells of the heat map, from much slower to much faster; unclear ones have the page's own colour.
HEAT = (
    Colour("heat-0", "#b3500c", "#f2a560"),
    Colour("heat-1", "#dc8a36", "#b56a26"),
    Colour("heat-2", "#f6d9b8", "#573a1e"),
    Colour("heat-3", "#d9e8f6", "#213f58"),
    Colour("heat-4", "#86b9e3", "#33719e"),
    Colour("heat-5", "#3a7fbd", "#69b0e4"),
    Colour("heat-6", "#10477e", "#bfe2fa"),
)
HEAT_TEXTS = (
    Colour("heat-text-0", "#fefef6", "#10141b"),
    Colour("heat-text-1", "#1b2024", "#fefef6"),
    Colour("heat-text-2", "#1b2025", "#f1f4f9"),
    Colour("heat-text-3", "#1b2027", "#f1f4fa"),
    Colour("heat-text-4", "#1b2028", "#f1f4fb"),
    Colour("heat-text-5", "#fefef7", "#10141c"),
    Colour("heat-text-6", "#fefef8", "#10141d"),
)
ALL = (
    INK,
    MUTED,
    GRID,
    MARGIN,
    FASTER,
    SLOWER,
    UNCLEAR,
    PAPER,
    *BANDS,
    *BAND_TEXTS,
    *HEAT,
    *HEAT_TEXTS,
)


def variables(*, dark: bool) -> str:
    """CSS declarations of every colour for one mode."""
    return "".join(f"--{one.name}:{one.dark if dark else one.light};" for one in ALL)


def chart_rules() -> str:
    """CSS that lets a drawn colour follow its variable."""
    return "\n".join(
        f'.chart [{paint}="{one.light}"]{{{paint}:var(--{one.name})}}'
        for one in ALL
        for paint in ("fill", "stroke")
    )
