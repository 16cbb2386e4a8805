"""Shares of a difference, on simulated races whose causes are known, drift included."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ensign.stats.cause_shares import Shares, cause_shares, depends, part_effect

LEVEL = 0.95


def cells(
    rng: np.random.Generator, effects: dict[frozenset[int], float], parts: int, columns: int
) -> dict[frozenset[int], np.ndarray]:
    """Log costs of all mixtures: own layouts, own noise, and a drift that all share."""
    drift = np.cumsum(rng.normal(0, 0.01, columns))
    return {
        on: drift
        + sum((v for term, v in effects.items() if term <= on), 0.0)
        + rng.normal(0, 0.02, columns)
        for choice in product((False, True), repeat=parts)
        for on in [frozenset(n for n, taken in enumerate(choice) if taken)]
    }


def shares(found: dict[frozenset[int], np.ndarray], parts: int) -> Shares:
    every = frozenset(range(parts))
    base = found[frozenset()]
    ends = (np.zeros_like(base), found[every] - base)
    of = [
        part_effect(ends, found[frozenset((n,))] - base, found[every - {n}] - base)
        for n in range(parts)
    ]
    told = cause_shares(ends[1], [each for each in of if each is not None], LEVEL)
    assert told is not None
    return told


def test_pairs_of_parts_are_shared_half_and_half() -> None:
    one, two, both = frozenset((0,)), frozenset((1,)), frozenset((0, 1))
    found = {frozenset(): 0.0, one: 0.10, two: 0.02, both: 0.20}
    columns = {on: np.full(3, value) for on, value in found.items()}
    told = shares(columns, 2)
    assert [part.mean for part in told.parts] == pytest.approx([0.14, 0.06])
    assert told.rest.mean == pytest.approx(0.0)
    assert [part.share for part in told.parts] == pytest.approx([0.7, 0.3])


def depending(found: dict[frozenset[int], np.ndarray], parts: int) -> tuple[bool, ...]:
    every = frozenset(range(parts))
    base = found[frozenset()]
    pairs = [(found[frozenset((n,))] - base, found[every - {n}] - base) for n in range(parts)]
    return depends((np.zeros_like(base), found[every] - base), pairs, LEVEL)


def test_what_depends_on_others_is_shown_and_what_does_not_is_not() -> None:
    rng = np.random.default_rng(31)
    one, two = frozenset((0,)), frozenset((1,))
    apart = {one: 0.06, two: 0.03}
    false = sum(any(depending(cells(rng, apart, 4, 12), 4)) for _ in range(400))
    assert false <= 0.06 * 400
    either = [depending(cells(rng, apart | {one | two: -0.06}, 3, 12), 3) for _ in range(200)]
    assert sum(told[0] and told[1] for told in either) >= 0.7 * 200
    assert sum(told[2] for told in either) <= 0.06 * 200


def test_without_both_ends_nothing_depends() -> None:
    ends = (np.zeros(5), np.full(5, 0.1))
    noise = np.linspace(-0.001, 0.001, 5)
    pairs = [(None, ends[0]), (ends[1] + noise, None), (ends[1] + noise, ends[1] - noise)]
    assert depends(ends, pairs, LEVEL) == (False, False, True)


def test_three_parts_at_once_are_left_over() -> None:
    every = frozenset((0, 1, 2))
    columns = {
        frozenset(on): np.full(3, 0.1 if frozenset(on) == every else 0.0)
        for on in [(), (0,), (1,), (2,), (1, 2), (0, 2), (0, 1), (0, 1, 2)]
    }
    told = shares(columns, 3)
    assert told.total.mean == pytest.approx(0.1)
    assert sum(part.mean for part in told.parts) + told.rest.mean == pytest.approx(0.1)


def test_one_end_tells_where_the_other_is_missing() -> None:
    ends = (np.zeros(2), np.array([0.2, 0.4]))
    assert part_effect(ends, np.array([0.1, 0.1]), None) == pytest.approx([0.1, 0.1])
    assert part_effect(ends, None, np.array([0.1, 0.1])) == pytest.approx([0.1, 0.3])
    assert part_effect(ends, None, None) is None
    assert cause_shares(np.array([0.1]), [], LEVEL) is None


def test_without_causes_hardly_any_is_proven() -> None:
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        told = shares(cells(rng, {}, 4, 12), 4)
        wrong += told.total.p <= 1 - LEVEL and any(part.p <= 1 - LEVEL for part in told.parts)
    assert wrong <= 0.05 * 400


def test_decoys_beside_a_cause_are_rarely_proven() -> None:
    rng = np.random.default_rng(8)
    wrong = found = 0
    for _ in range(400):
        told = shares(cells(rng, {frozenset((0,)): 0.06}, 4, 12), 4)
        wrong += any(part.p <= 1 - LEVEL for part in told.parts[1:])
        found += told.parts[0].p <= 1 - LEVEL
    assert wrong <= 0.06 * 400
    assert found >= 0.95 * 400


@pytest.mark.parametrize("columns", [6, 12, 24])
def test_intervals_hold_the_true_shares(columns: int) -> None:
    rng = np.random.default_rng(columns)
    effects = {frozenset((0,)): 0.06, frozenset((1,)): 0.03, frozenset((0, 1)): 0.02}
    true = {0: 0.07, 1: 0.04, 2: 0.0}
    held = shared = 0
    for _ in range(1000):
        told = shares(cells(rng, effects, 3, columns), 3)
        for n, part in enumerate(told.parts):
            held += part.low <= true[n] <= part.high
            shared += part.share_low <= true[n] / 0.11 <= part.share_high
    assert held >= 0.93 * 3000
    assert shared >= 0.92 * 3000
