"""How much of a program had a profile. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ProfileCoverage:
    """Of a program's `functions` so many were `profiled`, for the compiler (PGO) or for BOLT.

    None where that is not known: not every compiler says it.
    """

    used_by: Literal["PGO", "BOLT"]
    functions: int | None = None
    profiled: int | None = None

    @property
    def said(self) -> str:
        """As a sentence."""
        if self.functions is None or self.profiled is None:
            return f"{self.used_by}: share of functions with a profile is unknown"
        share = self.profiled / self.functions if self.functions else 0.0
        counts = f"{self.profiled} of {self.functions}"
        return f"{self.used_by}: {counts} functions profiled ({share:.0%})"
