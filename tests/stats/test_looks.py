from __future__ import annotations

import math
from itertools import islice

import pytest

from ensign.model.errors import InputError
from ensign.stats.looks import (
    critical_value,
    is_look,
    looks,
    looks_up_to,
    mixture_bound,
    next_look,
)


def test_looks_double_every_second_step_without_end() -> None:
    assert list(islice(looks(), 12)) == [5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224]
    assert list(islice(looks(10), 4)) == [10, 14, 20, 28]
    assert looks_up_to(39) == (5, 7, 10, 14, 20, 28)
    assert looks_up_to(4) == ()


@pytest.mark.parametrize(
    ("executions", "first", "expected"),
    [(0, 5, 5), (5, 5, 7), (6, 5, 7), (40, 5, 56), (3, 10, 10), (10, 10, 14), (10**6, 5, 1310720)],
)
def test_next_look(executions: int, first: int, expected: int) -> None:
    assert next_look(executions, first) == expected


def test_is_look_only_at_looks() -> None:
    assert [n for n in range(60) if is_look(n)] == [5, 7, 10, 14, 20, 28, 40, 56]
    assert [n for n in range(30) if is_look(n, 10)] == [10, 14, 20, 28]


def test_other_first_looks_are_refused() -> None:
    with pytest.raises(InputError, match="5 or 10 executions, not after 6"):
        next_look(0, 6)


# The check values of the method.
CHECK = [4.79, 3.65, 3.27, 3.11, 3.03, 3.01, 3.01, 3.02, 3.05, 3.08]


@pytest.mark.parametrize(
    ("executions", "expected"), list(zip(looks_up_to(112), CHECK, strict=True))
)
def test_critical_values(executions: int, expected: float) -> None:
    assert round(critical_value(executions, mixture_bound(0.95)), 2) == expected


def test_critical_value_is_infinite_where_the_mixture_says_nothing() -> None:
    assert [math.isinf(critical_value(n, 9)) for n in range(6)] == [True] * 4 + [False] * 2
    assert math.isinf(critical_value(5, 35.2)) is False
    assert math.isinf(critical_value(4, 35.2)) is True


def test_critical_value_grows_with_the_bound_and_stays_finite_for_long_races() -> None:
    for n in (5, 40, 10**6):
        values = [critical_value(n, bound) for bound in (4.6, 9, 16.1, 35.2)]
        assert values == sorted(values)
    # For large n the boundary is sqrt(ln(kappa b^2)).
    n = 10**8
    assert critical_value(n, 9) == pytest.approx(math.sqrt(math.log((n + 1) * 81)), rel=1e-6)


@pytest.mark.parametrize(
    ("level", "first", "bound"),
    [(0.9, 5, 4.6), (0.95, 5, 9), (0.975, 5, 16.1), (0.99, 5, 35.2), (0.95, 10, 6.6)],
)
def test_bounds_of_the_levels(level: float, first: int, bound: float) -> None:
    assert mixture_bound(level, first) == bound


def test_a_level_computed_from_alpha_is_found() -> None:
    assert mixture_bound(1 - 0.1 / 2) == 9


def test_unknown_levels_name_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"level 0\.8 .* levels are 0\.9, 0\.95, 0\.975, 0\.99"):
        mixture_bound(0.8)
