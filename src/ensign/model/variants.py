"""A variant: one way to build the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """A point of the axes. `name` is unique in its study and safe as a file name."""

    name: str
    compiler: str
    optimization: str
    lto: str
    flags: str = ""

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """Axis and value, in the order of the axes."""
        pairs = (
            ("compiler", self.compiler),
            ("optimization", self.optimization),
            ("lto", self.lto),
            ("flags", self.flags),
        )
        return tuple(pair for pair in pairs if pair != ("flags", ""))
