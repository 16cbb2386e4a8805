"""Axes × exclude and include rules → variants, the baseline first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from ensign.model.errors import InputError
from ensign.model.study import Axes, Choice, Study
from ensign.model.study_problems import Problem, Where, nearest
from ensign.model.variants import Variant
from ensign.variants.naming import named

AXES = ("compiler", "optimization", "lto", "flags")
_SHOWN = 5


def expand(study: Study) -> tuple[Variant, ...]:
    """All variants of a study: the baseline, the product in the file's order, what was included.

    InputError, with the first of `expansion_problems`, where the rules make no sense.
    """
    for problem in expansion_problems(study):
        raise InputError(problem.text)
    variants = _all(study)
    baseline = matching(variants, study.baseline)[0]
    return (baseline, *(variant for variant in variants if variant is not baseline))


def expansion_problems(study: Study) -> tuple[Problem, ...]:
    """What is wrong with `exclude`, `include` and `baseline`, each with its place."""
    return (*_exclude_problems(study), *_include_problems(study), *_baseline_problems(study))


def matching(variants: Sequence[Variant], choice: Choice) -> tuple[Variant, ...]:
    """The variants that have every value that the choice names."""
    return tuple(variant for variant in variants if _matches(variant, choice))


def same_choices(one: Variant, other: Variant) -> bool:
    """Whether two variants are the same point of the axes, whatever they are called."""
    return one.choices == other.choices


def _all(study: Study) -> tuple[Variant, ...]:
    kept = [
        variant
        for variant in _product(study.axes)
        if not any(_matches(variant, rule) for rule in study.exclude)
    ]
    return named((*kept, *(_included(rule, study.axes) for rule in study.include)))


def _product(axes: Axes) -> Iterator[Variant]:
    for compiler, optimization, lto, flags in product(*(getattr(axes, axis) for axis in AXES)):
        yield Variant("", compiler, optimization, lto, flags)


def _included(rule: Choice, axes: Axes) -> Variant:
    chosen = {axis: getattr(rule, axis) for axis in AXES}
    values = {axis: getattr(axes, axis)[0] if v is None else v for axis, v in chosen.items()}
    return Variant("", **values)


def _matches(variant: Variant, rule: Choice) -> bool:
    return all(getattr(rule, axis) in (None, getattr(variant, axis)) for axis in AXES)


def _exclude_problems(study: Study) -> Iterator[Problem]:
    everything = tuple(_product(study.axes))
    for index, rule in enumerate(study.exclude):
        where = ("exclude", index)
        if not rule.model_fields_set:
            yield Problem(where, "[[exclude]] names no axis: it would leave nothing")
        elif not matching(everything, rule):
            yield from _no_match(rule, everything, where, "[[exclude]] matches no variant")
    left = [v for v in everything if not any(_matches(v, rule) for rule in study.exclude)]
    if not left and not study.include and all(rule.model_fields_set for rule in study.exclude):
        yield Problem(("exclude",), "the [[exclude]] rules leave no variant")


def _include_problems(study: Study) -> Iterator[Problem]:
    variants = list(_all(study))
    first = len(variants) - len(study.include)
    for index, variant in enumerate(variants[first:]):
        if any(same_choices(variant, other) for other in variants[: first + index]):
            text = f"[[include]] adds {_choices_text(variant)}, which is a variant already"
            yield Problem(("include", index), text)


def _baseline_problems(study: Study) -> Iterator[Problem]:
    variants = _all(study)
    found = matching(variants, study.baseline)
    if not found:
        text = "[baseline] matches no variant"
        yield from _no_match(study.baseline, variants, ("baseline",), text)
    elif len(found) > 1 and len(set(found)) > 1:
        names = ", ".join(variant.name for variant in found[:_SHOWN])
        more = ", …" if len(found) > _SHOWN else ""
        open_axes = [
            axis for axis in AXES if len({getattr(variant, axis) for variant in found}) > 1
        ]
        wanted = " and ".join(f"'{axis}'" for axis in open_axes)
        text = f"[baseline] matches {len(found)} variants ({names}{more}); say its {wanted}"
        yield Problem(("baseline",), text)


def _no_match(
    rule: Choice, variants: Sequence[Variant], where: Where, text: str
) -> Iterator[Problem]:
    """Name the value that no variant has, where there is one; else the combination is missing."""
    alone = True
    for axis in AXES:
        value = getattr(rule, axis)
        have = list(dict.fromkeys(getattr(variant, axis) for variant in variants))
        if value is None or value in have:
            continue
        near = nearest(value, have)
        hint = f"nearest is '{near}'" if near else "there is: " + ", ".join(map(repr, have))
        alone = False
        yield Problem((*where, axis), f"{text}: '{axis}' is never '{value}'; {hint}")
    if alone:
        yield Problem(where, f"{text}: no variant has all of its values")


def _choices_text(variant: Variant) -> str:
    return " ".join(value for axis, value in variant.choices if (axis, value) != ("lto", "off"))
