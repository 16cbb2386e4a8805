"""Which functions the CPU time of two variants goes to, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """CPU time of a function in the baseline and in a variant (ns per operation).

    `difference` is what it adds to the variant's cost, as a share of the baseline's whole cost,
    from `low` to `high`. `file` is the library that has it; empty for the program itself.
    `symbols` are what it is called in the one and in the other, where that is not its name;
    `facts` say how its code differs.
    """

    name: str
    file: str
    before_ns: float
    after_ns: float
    difference: float
    low: float
    high: float
    symbols: tuple[str, str] = ("", "")
    facts: tuple[str, ...] = ()

    @property
    def excludes_zero(self) -> bool:
        """True if its own interval says that it differs."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class FunctionCosts:
    """All of the CPU time of a variant and of the baseline on a workload, by function.

    Rows add up to the `total`; those that differ most come first. `by_symbol` has functions as the
    linker knows them, `by_source` as they are written, inlined or not; that is empty where there
    is no debug information. `samples` are those of the baseline (and its twin) and of the variant.
    `unknown` is why there are no rows.
    """

    variant: str
    workload: str
    level: float
    samples: tuple[int, int] = (0, 0)
    total: FunctionCost | None = None
    by_symbol: tuple[FunctionCost, ...] = ()
    by_source: tuple[FunctionCost, ...] = ()
    unknown: str = ""
