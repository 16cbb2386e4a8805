"""All that a program runs with, in its layout: where its loader finds what was built. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ensign.meter.requests import VariantFiles
from ensign.model.placeholders import program_values

# What the meter replaces by the variant's own copy.
_COPY = "{files}"
_PATH = "LD_LIBRARY_PATH"


@dataclass(frozen=True, slots=True)
class ProgramTree:
    """Folders laid over each other, in which `program` and the folders `libraries` lie.

    What `without` names is left out. `in_place`: the only folder itself is used, no copy of it.
    """

    folders: tuple[str, ...]
    program: str
    libraries: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    in_place: bool = False

    @property
    def root(self) -> str:
        """The folder that the variant sees."""
        return self.folders[0] if self.in_place else _COPY

    @property
    def values(self) -> Mapping[str, str]:
        """What placeholders stand for."""
        return {**program_values(f"{self.root}/{self.program}"), "files": self.root}

    @property
    def files(self) -> VariantFiles | None:
        """What the meter is to copy."""
        return None if self.in_place else VariantFiles(self.folders, self.without)

    def environment(self, env: Mapping[str, str], inherited: str) -> tuple[tuple[str, str], ...]:
        """`env` with the folders in which the loader looks first, before its own or inherited."""
        if not self.libraries:
            return tuple(env.items())
        own = [f"{self.root}/{each}".rstrip("/") for each in self.libraries]
        rest = env.get(_PATH, inherited)
        return tuple({**env, _PATH: ":".join([*own, *([rest] if rest else [])])}.items())
