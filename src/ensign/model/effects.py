"""What a factorial study says of its axes: effects, conditional effects, and interactions."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.comparisons import Comparison


@dataclass(frozen=True, slots=True)
class AxisChange:
    """The value `new` of an axis instead of `old`."""

    axis: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Effect:
    """One change: what it is worth. Two changes of different axes: their interaction.

    `comparison` is over all workloads; its ratio is that of costs, geometric mean over `groups`
    matched groups of builds: pairs that differ in the change alone, or squares of two changes. The
    ratio of an interaction is what both changes do together over the product of what each does
    alone. `given` are the values of other axes that the groups were chosen by; `only` are those
    that all groups share although the study varies them. `significant` says whether a direction is
    shown after Holm's adjustment within the list that the effect belongs to. `other` is by the
    other metric.
    """

    changes: tuple[AxisChange, ...]
    given: tuple[tuple[str, str], ...]
    only: tuple[tuple[str, str], ...]
    groups: int
    comparison: Comparison
    other: Comparison | None
    significant: bool


@dataclass(frozen=True, slots=True)
class Factorial:
    """Three lists of effects, each adjusted by itself.

    `main` averages over all matched pairs of a change, `conditional` over those of one value of
    another axis, down to single pairs; `interactions` compare the two halves of matched squares.
    """

    main: tuple[Effect, ...]
    conditional: tuple[Effect, ...]
    interactions: tuple[Effect, ...]

    def conditions_of(self, change: AxisChange) -> tuple[Effect, ...]:
        """The conditional effects of a change."""
        return tuple(each for each in self.conditional if each.changes == (change,))


NO_EFFECTS = Factorial((), (), ())
