"""Axes × exclude and include rules → variants, the baseline first. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import PurePosixPath

from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_axes import Axes, Choice
from ensign.model.study_problems import Problem, Where, nearest, suggestion
from ensign.model.variants import AXES, OWN_COMPILER, Variant, trained

_SHOWN = 5
_MOST = 1000
_UNSAFE = re.compile(r"[^A-Za-z0-9._+]+")
_LONGEST_SLUG = 28
_HASH_DIGITS = 6
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COMMIT_DIGITS = 12


def expand(study: Study) -> tuple[Variant, ...]:
    """All variants of a study: the baseline, the product in the file's order, what was included.

    Where several profiles are asked for, a variant that needs one is there once for each.

    InputError, with the first of `expansion_problems`, where the rules make no sense.
    """
    for problem in expansion_problems(study):
        raise InputError(problem.text)
    variants = _all(study)
    baseline = _baselines(study, variants)[0]
    ordered = (baseline, *(variant for variant in variants if variant is not baseline))
    profiles = 1 if study.training is None else study.training.profiles
    return tuple(expanded for variant in ordered for expanded in _per_profile(variant, profiles))


def _per_profile(variant: Variant, profiles: int) -> Iterator[Variant]:
    if profiles == 1 or not trained(variant):
        yield variant
        return
    for index in range(1, profiles + 1):
        yield replace(variant, name=f"{variant.name}-p{index}", profile=index)


def expansion_problems(study: Study) -> tuple[Problem, ...]:
    """Problems of `exclude`, `include` and `baseline`, each with its place."""
    if study.axes.combine == "list" and not study.include:
        text = "'combine' is 'list', and there is no [[include]]: nothing would be built"
        return (Problem(("axes", "combine"), text),)
    count = _product_size(study.axes)
    if study.axes.combine == "product" and count > _MOST:
        text = f"the axes have {count} combinations, more than {_MOST}; see 'combine'"
        return (Problem(("axes",), text),)
    return (
        *_exclude_problems(study),
        *_include_problems(study),
        *_baseline_problems(study),
        *_explain_problems(study),
    )


def _explain_problems(study: Study) -> Iterator[Problem]:
    if study.explain is None:
        return
    known = [variant.name for variant in _all(study)]
    for name in study.explain.variants:
        if name not in known:
            near = suggestion(name, known)
            yield Problem(("explain",), f"[explain] names '{name}', which is no variant{near}")


def matching(variants: Sequence[Variant], choice: Choice) -> tuple[Variant, ...]:
    """The variants that have every value that the choice names."""
    return tuple(variant for variant in variants if _matches(variant, choice))


def _baselines(study: Study, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """One at a time starts from the baseline, whose open axes have their first values."""
    if study.axes.combine != "one-at-a-time":
        return matching(variants, study.baseline)
    start = _included(study.baseline, study.axes)
    return tuple(variant for variant in variants if same_choices(variant, start))


def same_choices(one: Variant, other: Variant) -> bool:
    """True if two variants are the same point of the axes, whatever they are called."""
    return one.choices == other.choices


def _all(study: Study) -> tuple[Variant, ...]:
    kept = [
        variant
        for variant in points(study)
        if not any(_matches(variant, rule) for rule in study.exclude)
    ]
    return named((*kept, *(_included(rule, study.axes) for rule in study.include)))


def points(study: Study) -> tuple[Variant, ...]:
    """The points of the axes that `combine` asks for, before any rule."""
    match study.axes.combine:
        case "list":
            return ()
        case "one-at-a-time":
            return tuple(_one_at_a_time(study.axes, _included(study.baseline, study.axes)))
        case _:
            return tuple(_product(study.axes))


def _one_at_a_time(axes: Axes, start: Variant) -> Iterator[Variant]:
    """The start, and every point that differs from it on one axis."""
    yield start
    for axis in AXES:
        for value in getattr(axes, axis):
            if value != getattr(start, axis):
                yield replace(start, **{axis: value})


def _product_size(axes: Axes) -> int:
    return math.prod(len(getattr(axes, axis)) for axis in AXES)


def _product(axes: Axes) -> Iterator[Variant]:
    for values in product(*(getattr(axes, axis) for axis in AXES)):
        yield Variant("", *values)


def _included(rule: Choice, axes: Axes) -> Variant:
    chosen = {axis: getattr(rule, axis) for axis in AXES}
    values = {axis: getattr(axes, axis)[0] if v is None else v for axis, v in chosen.items()}
    return Variant("", **values)


def _matches(variant: Variant, rule: Choice) -> bool:
    return all(getattr(rule, axis) in (None, getattr(variant, axis)) for axis in AXES)


def _exclude_problems(study: Study) -> Iterator[Problem]:
    everything = points(study)
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
    baselines = _baselines(study, variants)
    if not baselines:
        text = "[baseline] matches no variant"
        yield from _no_match(study.baseline, variants, ("baseline",), text)
    elif len(baselines) > 1 and len(set(baselines)) > 1:
        names = ", ".join(variant.name for variant in baselines[:_SHOWN])
        more = ", …" if len(baselines) > _SHOWN else ""
        open_axes = [
            axis for axis in AXES if len({getattr(variant, axis) for variant in baselines}) > 1
        ]
        wanted = " and ".join(f"'{axis}'" for axis in open_axes)
        text = f"[baseline] matches {len(baselines)} variants ({names}{more}); say its {wanted}"
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


def named(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants with names made from their choices; those that would share one get a hash."""
    plain = [plain_name(variant) for variant in variants]
    times = Counter(plain)
    return tuple(
        replace(variant, name=name if times[name] == 1 else f"{name}-{_hash(_identity(variant))}")
        for variant, name in zip(variants, plain, strict=True)
    )


def plain_name(variant: Variant) -> str:
    """`gcc-12-O2`, `clang-19-O3-lto`, `gcc-12-O2-march-native`; long flags are cut and hashed."""
    parts: list[str] = []
    if not variant.by_project:
        parts += [_slug(PurePosixPath(variant.compiler).name), _slug(variant.optimization)]
    if variant.lto != "off":
        parts.append("lto" if variant.lto == "full" else f"lto-{_slug(variant.lto)}")
    parts += [
        _short(axis, value)
        for axis, value in variant.choices
        if axis not in ("compiler", "optimization", "lto", "flags", "revision")
    ]
    if variant.revision:
        parts.append(_revision_slug(variant.revision))
    if variant.flags:
        parts.append(_cut_slug(variant.flags))
    return "-".join(parts) or OWN_COMPILER


def _short(axis: str, value: str) -> str:
    """`pgo`, `no-plt`, `fp-fast`, `hard-debian`: the axis where the value alone says too little."""
    if axis in ("pgo", "bolt", "strip"):
        return axis
    if axis in ("interposition", "plt"):
        return f"no-{axis}"
    if axis == "dependencies":
        return "deps"
    if axis == "training":
        return f"trained-{_cut_slug(value)}"
    if axis == "units":
        return _cut_slug(value)  # a group may name hundreds of sources
    prefix = {
        "floating_point": "fp-",
        "aliasing": "alias-",
        "alignment": "align-",
        "hardening": "hard-",
        "codegen_units": "cgu",
        "panic": "panic-",
    }.get(axis, "")
    return _slug(f"{prefix}{value}")


def _revision_slug(revision: str) -> str:
    """A branch or tag; of a full commit its first digits, as git shows them."""
    return revision[:_COMMIT_DIGITS] if _COMMIT.fullmatch(revision) else _cut_slug(revision)


def _cut_slug(text: str) -> str:
    slug = _slug(text)
    if len(slug) <= _LONGEST_SLUG:
        return slug or _hash(text)
    return f"{slug[:_LONGEST_SLUG].rstrip('-')}-{_hash(text)}"


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")


def _identity(variant: Variant) -> str:
    return "\0".join(value for _, value in variant.choices)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
