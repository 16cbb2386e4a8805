"""Sources of a variant that have other choices than the rest. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

# What a link says, a whole program has, or rustc alone knows, no source can have by itself.
OF_SOURCES = (
    "compiler",
    "optimization",
    "lto",
    "target",
    "pgo",
    "interposition",
    "plt",
    "floating_point",
    "aliasing",
    "alignment",
    "hardening",
    "revision",
    "flags",
)
_ALL_BUT, _OF = "all but ", "#"
_CHOICE = re.compile(r"([a-z_]+)=(\S*)")


@dataclass(frozen=True, slots=True)
class UnitChoices:
    """Axes and values of the sources that match a glob, or with `inverted` of all others.

    Globs are of paths below the source's folder. With `functions` these alone have them, of the one
    source that is named.
    """

    globs: tuple[str, ...]
    inverted: bool
    choices: tuple[tuple[str, str], ...]
    functions: tuple[str, ...] = ()

    def has(self, source: str) -> bool:
        """True if a source, by its path below the source's folder, has these choices."""
        return any(fnmatchcase(source, glob) for glob in self.globs) != self.inverted

    def others(self) -> UnitChoices:
        """All other sources, with no choice of their own."""
        return replace(self, inverted=not self.inverted, choices=())

    @property
    def by_axis(self) -> dict[str, str]:
        """Values by axis."""
        return dict(self.choices)

    def __str__(self) -> str:
        names = (_ALL_BUT if self.inverted else "") + " ".join(self.globs)
        names += "".join(f"{_OF}{name}" for name in self.functions)
        return f"{names}: {' '.join(f'{axis}={value}' for axis, value in self.choices)}"


def read_unit_choices(text: str) -> UnitChoices:
    """The choices in a text such as `src/a.c src/b*.c: optimization=-O3 flags=-fno-plt -g1`.

    `all but a.c: …` means all other sources, `a.c#f#g: …` two functions of one; `flags` come last.
    ValueError.
    """
    names, colon, rest = text.partition(": ")
    inverted = names.startswith(_ALL_BUT)
    globs, functions = names.removeprefix(_ALL_BUT).split(), list[str]()
    if not colon or not globs:
        raise ValueError(f"'{text}' is not written as 'SOURCE …: AXIS=VALUE …'")
    if any(_OF in glob for glob in globs):
        source, *functions = globs[0].split(_OF)
        if len(globs) > 1 or inverted or not can_be_named(source) or not all(functions):
            raise ValueError(f"'{names}' is not written as 'SOURCE#FUNCTION', of one source")
        globs = [source]
    before, has_flags, flags = rest.partition("flags=")
    choices = [_choice(word) for word in before.split()]
    if has_flags:
        choices.append(("flags", flags.strip()))
    if not choices:
        raise ValueError(f"'{text}' says no AXIS=VALUE after the sources")
    return UnitChoices(tuple(globs), inverted, tuple(choices), tuple(functions))


def can_be_named(source: str) -> bool:
    """True if a path is one below the source's folder, and a glob of itself alone."""
    return bool(source) and source[0] != "/" and not any(letter in source for letter in "*?[:# ")


def _choice(word: str) -> tuple[str, str]:
    match = _CHOICE.fullmatch(word)
    if match is None or match[1] not in OF_SOURCES:
        raise ValueError(
            f"'{word}' is not a choice of sources; there are {', '.join(OF_SOURCES[:-1])}, and "
            "flags, which come last"
        )
    return match[1], match[2]


def unit_choices(
    globs: Sequence[str],
    choices: Sequence[tuple[str, str]],
    *,
    inverted: bool = False,
    functions: Sequence[str] = (),
) -> str:
    """The text that `read_unit_choices` reads."""
    ordered = sorted(choices, key=lambda choice: OF_SOURCES.index(choice[0]))
    return str(UnitChoices(tuple(globs), inverted, tuple(ordered), tuple(functions)))
