"""Worth of the axes of a study, as rows and sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.model.comparisons import AxisChange, Comparison, Direction, Effect, Size
from ensign.model.results import Result
from ensign.model.units import pluralize
from ensign.model.variants import DEFAULTS
from ensign.report import words
from ensign.report.layouts import races_relinks
from ensign.report.view import Row, row_of
from ensign.report.words import between, clean, percent, plain_share

EXPLORED = "Read from the exploration. "
_SWITCHES = {"lto": "LTO", "pgo": "PGO", "bolt": "BOLT"}
_NAMES = {
    "optimization": "level",
    "interposition": "semantic interposition",
    "plt": "PLT",
    "floating_point": "floating point",
    "strip": "stripping",
    "codegen_units": "codegen units",
}
_WHOLE = {
    ("alignment", "functions"): "alignment of functions",
    ("alignment", "loops"): "alignment of functions and loops",
}
_ALIGNED = {
    "default": "with default alignment",
    "functions": "with functions aligned",
    "loops": "with functions and loops aligned",
}
_OFF = "off"


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One effect; `row` shows a direction only where it is significant after Holm's adjustment.

    `label` says what changes, or under which condition; `other` is the interval by the other
    metric.
    """

    label: str
    row: Row
    answer: str
    groups: int
    other: str


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change: its sentence, its row, and what it is worth under which condition."""

    change: AxisChange
    sentence: str
    row: EffectRow
    conditions: tuple[EffectRow, ...]


@dataclass(frozen=True, slots=True)
class Interplay:
    """Joint effect of two changes, beyond what each does alone."""

    sentence: str
    row: EffectRow


@dataclass(frozen=True, slots=True)
class EffectsView:
    """`other_metric` is what the intervals beside are of."""

    changes: tuple[ChangeView, ...]
    interplays: tuple[Interplay, ...]
    other_metric: str
    note: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every change, and the interactions that are shown."""
        clear = (
            one.sentence
            for one in self.interplays
            if one.row.row.direction is not Direction.UNCLEAR
        )
        return (*(change.sentence for change in self.changes), *clear)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The main effects, to be drawn."""
        return tuple(change.row.row for change in self.changes)


def effects_view(result: Result) -> EffectsView | None:
    """The factorial reading for people; None where no two builds differ in one axis alone."""
    factorial, margin = result.factorial, result.margin
    if not factorial.main:
        return None
    other = factorial.main[0].other
    return EffectsView(
        changes=tuple(_change(effect, result) for effect in factorial.main),
        interplays=tuple(
            Interplay(_together(effect, margin), _row(_both(effect), effect, margin))
            for effect in factorial.interactions
        ),
        other_metric="" if other is None else words.METRICS[other.metric],
        note=_note(result),
    )


def _change(effect: Effect, result: Result) -> ChangeView:
    (change,) = effect.changes
    margin = result.margin
    label = change_words(change)
    conditions = result.factorial.conditions_of(change)
    single = "" if races_relinks(result) else f", {words.ONE_BINARY}"
    over = f"over {_pairs(effect)}{single}"
    sentence = f"{_opening(label, change)} {worth(effect, margin)}, {over}."
    depends = _depends(change, conditions, result)
    return ChangeView(
        change,
        f"{sentence} {depends}".rstrip(),
        _row(label, effect, margin),
        tuple(
            _row(condition_words(condition.given), condition, margin) for condition in conditions
        ),
    )


def worth(effect: Effect, margin: float | None) -> str:
    """Sentence on an effect: `is worth +1.9 % (between 1.6 and 2.2 %)`, or `is unclear: …`.

    "Nothing" is said only where the whole interval lies within the margin.
    """
    comparison = shown(effect)
    span = words.span_of(comparison)
    if comparison.direction is Direction.UNCLEAR:
        if not span.is_finite:
            return "is unclear: too few rounds for an interval"
        if span.low == span.high:
            return "has no effect: the programs are the same"
        if comparison.size is Size.WITHIN and margin is not None:
            return f"is worth nothing beyond the margin of {plain_share(margin)}: {between(span)}"
        if effect.comparison.direction is not Direction.UNCLEAR:
            return f"is not claimed after Holm's adjustment, by its own interval {between(span)}"
        return f"is unclear: {between(span)}"
    amount = percent(span.point, span.digits)
    small = ""
    if comparison.size is Size.WITHIN and margin is not None:
        small = f", less than the margin of {plain_share(margin)}"
    return f"is worth {amount}{small} ({words.interval_cell(comparison)})"


def shown(effect: Effect) -> Comparison:
    """The comparison of an effect, its direction unclear where it is not significant."""
    if effect.significant:
        return effect.comparison
    return replace(effect.comparison, direction=Direction.UNCLEAR)


def _depends(change: AxisChange, conditions: tuple[Effect, ...], result: Result) -> str:
    """Worth at each value of an axis that it is shown to interact with."""
    axes = dict.fromkeys(
        other.axis
        for effect in result.factorial.interactions
        if effect.significant and change in effect.changes
        for other in effect.changes
        if other != change
    )
    parts = [
        f"{condition_words(condition.given)} {_briefly(condition, result.margin)}"
        for axis in axes
        for condition in conditions
        if [name for name, _ in condition.given] == [axis]
    ]
    return f"It depends: {'; '.join(parts)}." if parts else ""


def _briefly(effect: Effect, margin: float | None) -> str:
    comparison = shown(effect)
    span = words.span_of(comparison)
    cell = words.interval_cell(comparison)
    if comparison.direction is not Direction.UNCLEAR:
        return f"{percent(span.point, span.digits)} ({cell})"
    if comparison.size is Size.WITHIN and margin is not None:
        return f"nothing beyond {plain_share(margin)} ({cell})"
    if effect.comparison.direction is not Direction.UNCLEAR:
        return f"not claimed after Holm's adjustment ({cell})"
    return f"unclear ({cell})"


def _together(effect: Effect, margin: float | None) -> str:
    both = _opening(_both(effect), effect.changes[0])
    comparison = shown(effect)
    span = words.span_of(comparison)
    over = f"over {pluralize(effect.groups, 'matched square')}"
    if comparison.direction is not Direction.UNCLEAR:
        more = "more" if comparison.direction is Direction.FASTER else "less"
        amount = percent(abs(span.point), span.digits).removeprefix("+")
        cell = words.interval_cell(comparison)
        return f"{both} together give {amount} {more} than each alone adds up to ({cell}), {over}."
    if comparison.size is Size.WITHIN and margin is not None:
        limit = plain_share(margin)
        return f"{both} do not change each other's worth by more than {limit}, {over}."
    return f"Whether {_both(effect)} change each other's worth is unclear, {over}."


def _both(effect: Effect) -> str:
    return " and ".join(change_words(change) for change in effect.changes)


def _row(label: str, effect: Effect, margin: float | None) -> EffectRow:
    comparison = shown(effect)
    row = replace(row_of(comparison, margin, twin=False), label=label)
    nothing = comparison.direction is Direction.UNCLEAR and comparison.size is Size.WITHIN
    return EffectRow(
        label=label,
        row=row,
        answer=f"nothing: {row.statement}" if nothing else row.statement,
        groups=effect.groups,
        other="" if effect.other is None else words.interval_cell(effect.other),
    )


def _pairs(effect: Effect) -> str:
    count = pluralize(effect.groups, "matched pair")
    where = restriction_words(effect.only)
    return f"{count}, {'all ' if effect.groups > 1 else ''}{where}" if where else count


def _note(result: Result) -> str:
    level = plain_share(result.level)
    text = (
        f"{EXPLORED if result.confirmation else ''}"
        "An effect is the mean over matched pairs: builds that differ in that one thing. It is "
        "computed within each round, so that what a round's builds share cancels; n counts what "
        f"it counts above. Each interval covers {level} by itself. Something is called faster or "
        "slower only if it is after Holm's adjustment over its list (the effects; those under a "
        f"condition; those of two together): in {level} of studies a list has no wrong name."
    )
    if not races_relinks(result):
        text += (
            " Without relinks of every build, an effect over few pairs may be that of where its "
            "code lies in memory."
        )
    if result.margin is None:
        return f"{text} Without a margin nothing is called “nothing”."
    return (
        f"{text} “Nothing” means that the whole interval lies within the margin of "
        f"{plain_share(result.margin)}, “unclear” that neither is shown."
    )


def _opening(text: str, change: AxisChange) -> str:
    """A label as the first words of a sentence; names keep their letters."""
    is_name = change.axis in ("compiler", "optimization")
    return text if is_name else text[:1].upper() + text[1:]


def change_words(change: AxisChange) -> str:
    """`LTO`, `no PGO`, `-O3 instead of -O2`, `hardening canary`, `target native`."""
    axis, old, new = change.axis, change.old, change.new
    if axis in _SWITCHES and _OFF in (old, new):
        return f"no {_switched(axis, old)}" if new == _OFF else _switched(axis, new)
    if axis in ("compiler", "optimization"):
        return clean(f"{new} instead of {old}")
    if axis == "dependencies" and new == "flags":
        return "giving the flags to the dependencies"
    if axis in _SWITCHES:
        return f"{_switched(axis, new)} instead of {_switched(axis, old)}"
    text = _said(axis, new)
    return text if old == DEFAULTS[axis] else f"{text} instead of {clean(old) or 'none'}"


def condition_words(conditions: tuple[tuple[str, str], ...]) -> str:
    """`with gcc-12, at -O3, without LTO`."""
    return ", ".join(_condition(axis, value) for axis, value in conditions)


def restriction_words(only: tuple[tuple[str, str], ...]) -> str:
    """As `condition_words`, without what nobody asked for; empty where nothing is left."""
    asked = tuple((axis, value) for axis, value in only if value != DEFAULTS[axis])
    return condition_words(asked)


def _condition(axis: str, value: str) -> str:
    if axis in _SWITCHES:
        return f"without {_SWITCHES[axis]}" if value == _OFF else f"with {_switched(axis, value)}"
    if axis == "compiler":
        return f"with {clean(value)}"
    if axis == "optimization":
        return f"at {clean(value)}"
    if axis == "dependencies":
        return "with flags for the dependencies" if value == "flags" else "with plain dependencies"
    if axis == "alignment":
        return _ALIGNED[value]
    return _said(axis, value)


def _switched(axis: str, value: str) -> str:
    plain = axis != "lto" or value == "full"
    return _SWITCHES[axis] if plain else f"{clean(value)} {_SWITCHES[axis]}"


def _said(axis: str, value: str) -> str:
    return _WHOLE.get((axis, value)) or f"{_name(axis)} {clean(value) or 'none'}"


def _name(axis: str) -> str:
    return _NAMES.get(axis, axis)
