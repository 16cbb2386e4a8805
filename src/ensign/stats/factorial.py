"""Effects of the axes of a study, from the rounds of all its builds. Pure.

An effect is a contrast within each round: c[l] = Σ v[a]·g[a, l], with g the mean over workloads of
the log costs of variant a in round l, and weights v that sum to 0. One round is one observation, so
the interval is mean ± t·sd(c)/√n with n - 1 degrees of freedom (as `suite`; Box, Hunter and
Hunter, Statistics for Experimenters, 5: contrasts). Two intervals are never subtracted.

The design need not be balanced: the weights average over *matched* groups of builds, which differ
in the axes of the effect alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ensign.model.comparisons import AxisChange, Comparison, Effect, Factorial
from ensign.model.errors import InputError
from ensign.stats.holm import shown_after_holm
from ensign.stats.pair import PairNames, compare
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import SuiteRule

Floats = NDArray[np.float64]
Levels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """Builds that were raced: the value of each of the `axes`, in their order, and the variant.

    `references` has the value of each axis that its others are held against. Builds of the same
    values (of several profiles) count as one, the mean of theirs; two builds may be one variant.
    """

    axes: tuple[str, ...]
    references: Levels
    builds: tuple[tuple[Levels, str], ...]

    def cells(self) -> dict[Levels, tuple[str, ...]]:
        """The variants of each point of the axes."""
        cells: dict[Levels, tuple[str, ...]] = {}
        for levels, variant in self.builds:
            cells[levels] = (*cells.get(levels, ()), variant)
        return cells

    def changes(self) -> tuple[AxisChange, ...]:
        """Each value that occurs on an axis, against the axis' reference."""
        return tuple(
            AxisChange(axis, reference, value)
            for index, (axis, reference) in enumerate(zip(self.axes, self.references, strict=True))
            for value in dict.fromkeys(levels[index] for levels, _ in self.builds)
            if value != reference
        )


@dataclass(frozen=True, slots=True)
class _Group:
    """Matched cells with their signs; `rest` is the point that they have in common."""

    rest: Levels
    signed: tuple[tuple[Levels, int], ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """An effect before it is estimated."""

    changes: tuple[AxisChange, ...]
    groups: tuple[_Group, ...]
    given: tuple[tuple[str, str], ...] = ()


def factorial_reading(
    costs: RoundCosts, other: RoundCosts, design: Design, rule: SuiteRule
) -> Factorial:
    """Main effects, conditional effects and two-way interactions, as far as builds match.

    `other` are the same rounds by the other metric. InputError where a variant of the design is not
    among the costs.
    """
    reading = _Reading(design, _Rounds(costs), _Rounds(other), rule)
    changes = design.changes()
    pairs = [_Asked((change,), reading.groups((change,))) for change in changes]
    main = [asked for asked in pairs if asked.groups]
    squares = [
        _Asked(both, reading.groups(both))
        for both in combinations(changes, 2)
        if both[0].axis != both[1].axis
    ]
    return Factorial(
        reading.effects(main),
        reading.effects([condition for asked in main for condition in reading.conditions(asked)]),
        reading.effects([asked for asked in squares if asked.groups]),
    )


class _Rounds:
    """g[variant, round] by the variant's name."""

    def __init__(self, costs: RoundCosts) -> None:
        self.metric = costs.metric
        self._g: Mapping[str, Floats] = {
            variant: costs.with_twin(variant).mean(axis=0) for variant in costs.variants
        }

    def contrast(self, groups: Sequence[_Group], cells: Mapping[Levels, Sequence[str]]) -> Floats:
        """c[round]: the mean over the groups of the signed sum of their cells."""
        parts = [
            sign * np.mean([self._of(variant) for variant in cells[levels]], axis=0)
            for group in groups
            for levels, sign in group.signed
        ]
        return np.asarray(np.sum(parts, axis=0) / len(groups))

    def _of(self, variant: str) -> Floats:
        if variant not in self._g:
            raise InputError(f"variant '{variant}' is not among the variants: {', '.join(self._g)}")
        return self._g[variant]


@dataclass(frozen=True, slots=True)
class _Reading:
    design: Design
    costs: _Rounds
    other: _Rounds
    rule: SuiteRule

    def groups(self, changes: tuple[AxisChange, ...]) -> tuple[_Group, ...]:
        """The matched pairs of one change, or squares of two."""
        cells = self.design.cells()
        places = [self.design.axes.index(change.axis) for change in changes]
        groups = []
        for levels in cells:
            if any(levels[p] != c.old for p, c in zip(places, changes, strict=True)):
                continue
            signed = tuple(_corners(levels, tuple(zip(places, changes, strict=True))))
            if all(corner in cells for corner, _ in signed):
                groups.append(_Group(levels, signed))
        return tuple(groups)

    def conditions(self, asked: _Asked) -> Iterator[_Asked]:
        """The parts of a change's pairs: by one value of another axis, and each pair alone."""
        (change,) = asked.changes
        varied = [
            place
            for place, axis in enumerate(self.design.axes)
            if axis != change.axis and len({group.rest[place] for group in asked.groups}) > 1
        ]
        seen = {asked.groups}
        single = [tuple(varied)] if len(varied) > 1 else []
        for places in [*((place,) for place in varied), *single]:
            for values in dict.fromkeys(_at(group, places) for group in asked.groups):
                part = tuple(group for group in asked.groups if _at(group, places) == values)
                if part in seen:
                    continue
                seen.add(part)
                axes = (self.design.axes[place] for place in places)
                yield replace(asked, groups=part, given=tuple(zip(axes, values, strict=True)))

    def effects(self, family: Sequence[_Asked]) -> tuple[Effect, ...]:
        """The effects of a list, significant after Holm's adjustment within it."""
        cells = self.design.cells()
        contrasts = [self.costs.contrast(asked.groups, cells) for asked in family]
        others = [self.other.contrast(asked.groups, cells) for asked in family]
        significant = (
            shown_after_holm(
                np.array(contrasts),
                self.rule.level,
                self.rule.wider(np.shape(contrasts)[-1]),
                anytime=self.rule.anytime,
            )
            if contrasts
            else ()
        )
        return tuple(
            Effect(
                changes=asked.changes,
                given=asked.given,
                only=self._only(asked),
                groups=len(asked.groups),
                comparison=self._compared(asked, self.costs, contrast),
                other=self._compared(asked, self.other, beside),
                significant=hit,
            )
            for asked, contrast, beside, hit in zip(
                family, contrasts, others, significant, strict=True
            )
        )

    def _compared(self, asked: _Asked, rounds: _Rounds, contrast: Floats) -> Comparison:
        new = " and ".join(f"{change.axis} {change.new}" for change in asked.changes)
        old = " and ".join(f"{change.axis} {change.old}" for change in asked.changes)
        return compare(PairNames(new, old, rounds.metric), contrast.tolist(), self.rule.pair_rule)

    def _only(self, asked: _Asked) -> tuple[tuple[str, str], ...]:
        own = {change.axis for change in asked.changes} | {axis for axis, _ in asked.given}
        fixed = []
        for place, axis in enumerate(self.design.axes):
            everywhere = {levels[place] for levels, _ in self.design.builds}
            here = {group.rest[place] for group in asked.groups}
            if axis not in own and len(everywhere) > 1 and len(here) == 1:
                fixed.append((axis, here.pop()))
        return tuple(fixed)


def _corners(
    levels: Levels, changes: tuple[tuple[int, AxisChange], ...]
) -> Iterator[tuple[Levels, int]]:
    """The point with and without each change; the sign is + where an even number is missing."""
    if not changes:
        yield levels, 1
        return
    (place, change), *rest = changes
    for corner, sign in _corners(levels, tuple(rest)):
        yield corner, -sign
        yield (*corner[:place], change.new, *corner[place + 1 :]), sign


def _at(group: _Group, places: tuple[int, ...]) -> Levels:
    return tuple(group.rest[place] for place in places)
