"""Questions after the causes of a difference: as studies, and their answers. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ensign.experiment.study_file import StudyFile, without_tables
from ensign.explain.causes import (
    OF_FLAGS,
    OTHER_FLAGS,
    OTHERS,
    Cause,
    can_mix_functions,
    can_split_training,
    choice_causes,
    flag_causes,
    flag_start,
    function_causes,
    source_causes,
    training_causes,
    with_flags_of,
)
from ensign.model.comparisons import Direction
from ensign.model.results import Causes, FunctionCost, Result
from ensign.model.study_axes import Axes, Choice
from ensign.model.study_explain import By, Explain, ToggledCause
from ensign.model.study_race import Race
from ensign.model.unit_choices import can_be_named
from ensign.model.variants import AXES, DEFAULTS, Variant
from ensign.toolchains.single_flags import SingleFlag
from ensign.variants.expand import expand, plain_name, same_choices

_MOST_SINGLE, _GROUPS = 8, 6
_MOST_SOURCES, _RELINKS = 3, 24
_MOST = 0.5
_MOST_TRAINED = 4
_IN_C = re.compile(r"[A-Za-z_]\w*")
_PROFILES = ("pgo", "bolt")
_COARSE = ("compiler", "lto", "hardening", "units", "bolt")
_LEAST_SHARE = 0.05  # of the difference, for a source to be tried by itself


@dataclass(frozen=True, slots=True)
class Question:
    """Parts of the difference between two variants, to be told apart by a race.

    Causes are added to `start`, where that is not the first variant itself, or to nothing.
    """

    a: Variant
    b: Variant
    by: By
    causes: tuple[Cause[Variant], ...]
    start: Variant | None = None
    only_removed: bool = False

    def asked_of(self, file: StudyFile, budget: str) -> StudyFile:
        """The study that answers it: both variants and all between them, on relinks as ever."""
        toggles = (toggle for c in self.causes for toggle in (c.added, c.removed))
        points = [self.start or self.a, self.b, *toggles]
        title = f"Why {self.b.name} differs from {self.a.name}, by {self.by}"
        derived = derived_study(file, ("why", title), (self.a, points), file.sampled_race(budget))
        start, variant, *names = (self._name_of(derived.variants, point) for point in points)
        pairs = zip(self.causes, names[::2], names[1::2], strict=True)
        causes = [ToggledCause(name=c.name, added=one, removed=two) for c, one, two in pairs]
        start = "" if self.start is None else start
        explain = Explain(
            variant=variant,
            by=self.by,
            start=start,
            only_removed=self.only_removed,
            causes=causes,
        )
        study = derived.study.model_copy(update={"explain": explain})
        return with_relinks(replace(derived, study=study))

    @staticmethod
    def _name_of(variants: Sequence[Variant], point: Variant) -> str:
        return next(variant.name for variant in variants if same_choices(variant, point))


def derived_study(
    file: StudyFile,
    named: tuple[str, str],
    points: tuple[Variant, Sequence[Variant]],
    race: Race,
) -> StudyFile:
    """The study of other variants, the baseline first, raced in another way.

    `named` are what its name ends with, and its title.
    """
    ending, title = named
    baseline, others = points
    include: list[Variant] = []
    for point in others:
        if not any(same_choices(point, other) for other in (baseline, *include)):
            include.append(point)
    study = file.study
    own = hashlib.sha256(
        repr([variant.choices for variant in (baseline, *include)]).encode()
    ).hexdigest()
    axes = Axes(compiler=[baseline.compiler], optimization=[baseline.optimization])
    changed = study.model_copy(
        update={
            "name": f"{study.name}-{ending}-{own[:8]}",
            "title": title,
            "axes": axes.model_copy(update={"combine": "list"}),
            "exclude": [],
            "include": [_choice(variant) for variant in (baseline, *include)],
            "baseline": _choice(baseline, every=True),
            "race": race,
            "explain": None,
        }
    )
    return replace(file, study=changed, variants=expand(changed), own=file.own or study)


def study_text(file: StudyFile) -> str:
    """The file of a study that answers a question, to be put beside the one it is derived from."""
    study = file.study
    tables = {
        "axes": study.axes.model_dump(exclude_defaults=True),
        "baseline": study.baseline.model_dump(exclude_none=True),
        "layouts": study.layouts.model_dump(exclude_defaults=True),
        "race": study.race.model_dump(exclude_defaults=True, exclude_none=True),
    }
    lists = {"include": [choice.model_dump(exclude_none=True) for choice in study.include]}
    if study.explain is not None:
        explain = study.explain.model_dump()
        lists["explain.causes"] = explain.pop("causes")
        tables["explain"] = explain
    named = {"name": study.name, "title": study.title}
    left = without_tables(file.text, {*named, *tables, *lists, "exclude"})
    parts = [_keys(named), left.strip()]
    parts += [f"[{name}]\n{_keys(values)}" for name, values in tables.items() if values]
    parts += [f"[[{name}]]\n{_keys(table)}" for name, every in lists.items() for table in every]
    return "\n\n".join(parts) + "\n"


def _keys(values: Mapping[str, object]) -> str:
    return "\n".join(f"{key} = {_value(value)}" for key, value in values.items())


def _value(value: object) -> str:
    """What JSON writes of texts, numbers and lists of these is TOML, too."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(item)}' for key, item in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def with_relinks(file: StudyFile) -> StudyFile:
    """With as many relinks as intervals of causes gain by, where the study names no number.

    Both ends have them from the first look on: they would be built again for the proof.
    """
    asked = file.study.layouts
    if asked.variants != "all" or asked.count is not None:
        return file
    layouts = asked.model_copy(update={"count": _RELINKS})
    return replace(file, study=file.study.model_copy(update={"layouts": layouts}))


def _choice(variant: Variant, *, every: bool = False) -> Choice:
    """A rule that is met by the variant: in `include` by what it says, else by every axis."""
    always = ("compiler", "optimization")
    values = {axis: getattr(variant, axis) for axis in AXES}
    return Choice(
        **{
            axis: value
            for axis, value in values.items()
            if every or axis in always or value != DEFAULTS[axis]
        }
    )


def questions(a: Variant, b: Variant, first: Result, own: Sequence[str]) -> tuple[Question, ...]:
    """What is worth asking after the first look, but for single flags.

    `own` are the sources that can have flags of their own. Nothing where no difference is shown,
    or none can be split.
    """
    if not is_shown(first):
        return ()
    choices = choice_causes(a, b)
    found = [Question(a, b, "choices", choices)] if len(choices) > 1 else []
    guilty = [source for source in guilty_sources(first, b.name) if source in own]
    if guilty and len(own) > 1:
        groups = [[source] for source in guilty]
        causes = source_causes(a, b, groups, are_all=len(guilty) == len(own))
        found.append(Question(a, b, "sources", causes))
    return tuple(found)


def with_only_choice(pair: StudyFile) -> StudyFile:
    """With the one choice in which two variants differ as the cause.

    As it is where they differ in several, where that is a name for many flags, and where each has
    one layout only, which may be all that makes the difference.
    """
    a, b = pair.variants
    names = [cause.name for cause in choice_causes(a, b)]
    coarse = [name for name in names if name.partition(":")[0] in (*OF_FLAGS, *_COARSE)]
    if pair.study.layouts.variants != "all" or len(names) != 1 or coarse:
        return pair
    explain = Explain(variant=b.name, causes=[ToggledCause(name=names[0])])
    return replace(pair, study=pair.study.model_copy(update={"explain": explain}))


def named_sources(asked: Sequence[Question]) -> list[str]:
    """Sources that questions ask about by name."""
    every = (
        cause.name for question in asked if question.by == "sources" for cause in question.causes
    )
    return [name for name in every if name != OTHERS]


def others_hold_most(causes: Sequence[Causes]) -> bool:
    """True if the sources that no function named are proven to do more than half, anywhere."""
    tables = (table for table in causes if table.by == "sources")
    rest = ((table.total, row) for table in tables for row in table.parts if row.name == OTHERS)
    return any(row.proven and abs(row.effect) > _MOST * abs(total.effect) for total, row in rest)


def end_of_flags(a: Variant, b: Variant, causes: Sequence[Causes]) -> Variant | None:
    """The first variant with those choices of the second that stand for many flags and matter.

    Where choices were toggled, those matter that are proven to be causes.
    """
    if a.compiler != b.compiler:
        return None
    axes = _that_matter(a, b, OF_FLAGS, causes)
    if not axes:
        return None
    end = with_flags_of(a, b, axes)
    return replace(end, name=plain_name(end))


def _that_matter(
    a: Variant, b: Variant, axes: Sequence[str], causes: Sequence[Causes]
) -> list[str]:
    """Axes in which they differ: those proven to be causes, where choices were toggled."""
    parts = [part for table in causes if table.by == "choices" for part in table.parts]
    proven = {part.name.partition(":")[0] for part in parts if part.proven}
    differ = [axis for axis in axes if getattr(a, axis) != getattr(b, axis)]
    return [axis for axis in differ if axis in proven or not parts]


def function_question(
    a: Variant, b: Variant, first: Result, own: Sequence[str], causes: Sequence[Causes]
) -> Question | None:
    """Which functions of a source it is that is a cause, or of the only one of the build's `own`.

    Those that differ most by the first look, where the source has more than one.
    """
    if not can_mix_functions(a, b) or any(table.by == "functions" for table in causes):
        return None
    tables = [table for table in causes if table.by == "sources"]
    proven = {part.name for table in tables for part in table.parts if part.proven}
    proven |= set(own) if len(own) == 1 else set()
    added: dict[tuple[str, str], float] = {}
    for costs in first.functions:
        for row in costs.by_symbol if costs.variant == b.name else ():
            if row.source in proven and _IN_C.fullmatch(row.name):
                change = abs(row.difference) if row.excludes_zero else 0.0
                at = row.source, row.name
                added[at] = added.get(at, 0.0) + change
    several = Counter(source for source, _ in added)
    least = _LEAST_SHARE * sum(added.values())
    told = [at for at, change in added.items() if change > least and several[at[0]] > 1]
    told.sort(key=lambda at: -added[at])
    functions = function_causes(a, b, told[:_GROUPS])
    return Question(a, b, "functions", functions) if functions else None


def training_question(
    a: Variant,
    b: Variant,
    training: Sequence[str],
    asked: Sequence[str],
    causes: Sequence[Causes],
) -> Question | None:
    """What to ask next of the workloads that trained the second variant, where its profile matters.

    Together with the first ones: whether one more that does what is `asked` would help.
    """
    if not can_split_training(a, b) or not _that_matter(a, b, _PROFILES, causes):
        return None
    alone = len(training) == 1  # nothing would be left to train on
    split = _next_split([] if alone else training, causes, ("training groups", "training"))
    told = any(table.by in ("training groups", "training") for table in causes)
    if split is None and (told or not alone):
        return None
    by, groups = split or ("training", [])
    lacking = asked if not told and len(asked) <= _MOST_TRAINED else ()
    parts = training_causes(b, groups, lacking)
    return Question(a, b, by, parts, only_removed=True) if parts else None


def rounds_of(names: Sequence[object]) -> int:
    """The most questions that there are on so many flags, or sources."""
    rounds, left = 0, len(names)
    while left:
        rounds += 1
        left = math.ceil(left / _GROUPS) if left > _MOST_SINGLE else 0
    return rounds


def flag_question(
    a: Variant, end: Variant, flags: Sequence[SingleFlag], causes: Sequence[Causes]
) -> Question | None:
    """What to ask next of single flags: many in groups, then those of groups that are causes."""
    by_word = {flag.word: flag for flag in flags}
    split = _next_split([*by_word], causes, ("flag groups", "flags"))
    if split is None:
        return None
    by, groups = split
    chosen = {word for group in groups for word in group}
    named = {" ".join(group): [by_word[word] for word in group] for group in groups}
    others = [flag for flag in flags if flag.word not in chosen]
    named |= {OTHER_FLAGS: others} if others else {}
    return Question(a, end, by, flag_causes(a, end, named), flag_start(a, end, flags))


def source_question(
    a: Variant,
    b: Variant,
    sources: Sequence[str],
    causes: Sequence[Causes],
    named: Sequence[str] = (),
) -> Question | None:
    """The same of sources that no function names; those that are `named` are asked beside them."""
    split = _next_split(sources, causes, ("source groups", "sources"))
    if split is None:
        return None
    by, groups = split
    are_all = sum(map(len, groups)) == len(sources)
    groups = [*([name] for name in named), *groups]
    return Question(a, b, by, source_causes(a, b, groups, are_all=are_all))


def _next_split(
    names: Sequence[str], causes: Sequence[Causes], ways: tuple[By, By]
) -> tuple[By, list[list[str]]] | None:
    """Each name by itself where they are few, groups where not; of groups the proven ones again.

    Where several groups are causes the last round may have too many names: those that do most.
    """
    in_groups, single = ways
    if any(table.by == single for table in causes):
        return None
    told = [table for table in causes if table.by == in_groups]
    chosen = _in_proven_groups(names, told) if told else list(names)
    if not chosen:
        return None
    left = rounds_of(names) - max(Counter(table.workload for table in told).values(), default=0)
    if left <= 1 or len(chosen) <= _MOST_SINGLE:
        return single, [[name] for name in chosen[:_MOST_SINGLE]]
    size = math.ceil(len(chosen) / _GROUPS)
    return in_groups, [chosen[at : at + size] for at in range(0, len(chosen), size)]


def _in_proven_groups(names: Sequence[str], told: Sequence[Causes]) -> list[str]:
    """Names of groups that the last round proved on any workload, those first that do most."""
    last = {table.workload: table for table in told}
    rows = [part for table in last.values() for part in table.parts if part.proven]
    rows.sort(key=lambda row: -abs(row.effect))
    known = set(names)
    return list(dict.fromkeys(word for row in rows for word in row.name.split() if word in known))


def is_shown(result: Result) -> bool:
    """True if the only variant differs from the baseline, on all workloads or on one."""
    rows = [*result.comparisons, *(row.comparison for row in result.workloads)]
    return not result.withheld and any(
        row.variant != result.twin and row.direction is not Direction.UNCLEAR for row in rows
    )


def guilty_sources(result: Result, variant: str, *, worse: bool = False) -> list[str]:
    """Sources of the build, those first whose functions differ most; with `worse` add most."""
    added: dict[str, float] = {}
    total = 0.0
    for costs in result.functions:
        if costs.variant != variant or costs.total is None:
            continue
        total += abs(costs.total.difference)
        for row in filter(_weighs, costs.by_symbol):
            added[row.source] = added.get(row.source, 0.0) + row.difference
    told = [
        name
        for name in added
        if abs(added[name]) >= _LEAST_SHARE * total and not (worse and added[name] < 0)
    ]
    return sorted(told, key=lambda name: -abs(added[name]))[:_MOST_SOURCES]


def _weighs(row: FunctionCost) -> bool:
    """True for a function that differs, of a source of the build that a glob can name."""
    return row.excludes_zero and can_be_named(row.source)
