"""The plan of a confirmation: written, with its hash, before the first confirming trial."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from ensign.experiment.study.budget import MOST_ROUNDS
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study_file import StudyFile
from ensign.model.errors import InputError
from ensign.model.results import Result
from ensign.model.study import Study
from ensign.model.study_axes import Layouts
from ensign.model.study_race import Confirm, Race
from ensign.model.units import parse_share
from ensign.model.variants import Variant, trained
from ensign.stats.expected import FEWEST_ROUNDS
from ensign.stats.winner import able, promising
from ensign.store.folder import StudyFolder

_LARGEST_LAYOUT_SEED = 10**6
_MOST_RELINKS = 100
_ENOUGH_RELINKS = 24  # where as many rounds are raced as fit, relinks take turns
_FOR_ONE, _FOR_MORE = 12, 16
_MARGIN = 0.97  # the number is fixed beforehand: rounds may come out a little longer


@dataclass(frozen=True, slots=True)
class ConfirmPlan:
    """Decisions before the first confirming trial; `exploration` is the key of the rounds.

    Each of the `finalists` (best first; none: nothing is raced) is judged at 1 - (1 - level)/k;
    the winner is chosen by what they `prefer`.
    `layout_seed` gives so many fresh `relinks` (0: none are raced), `profile` counts the fresh
    profile.
    With a `precision` more than the `rounds` are raced while it is not reached, and all of them
    within `allowed_ns` (None: no limit).
    """

    exploration: str
    baseline: str
    finalists: tuple[str, ...]
    workloads: tuple[str, ...]
    requests: Mapping[str, int | None]
    metric: str
    margin: str | None
    level: float
    rounds: int
    seed: int
    layout_seed: int
    profile: int
    precision: str | None = None
    allowed_ns: int | None = None
    relinks: int = 0
    prefer: str = "mean"

    @property
    def sha256(self) -> str:
        """Hash of all of it; it names the trials, too."""
        return hashlib.sha256(_text(self).encode()).hexdigest()

    @property
    def prefix(self) -> str:
        """Prefix of the names of its trials, whatever programs were raced."""
        return f"confirm-{self.sha256[:16]}-"

    @property
    def level_each(self) -> float:
        """The level of each finalist's claims."""
        return 1 - (1 - self.level) / max(1, len(self.finalists))


_PLAN = TypeAdapter(ConfirmPlan)


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Racing time that is left for a confirmation, and what one of its rounds takes (ns)."""

    left_ns: int
    round_ns: int

    @property
    def fits(self) -> int:
        """Number of rounds that fit."""
        return min(MOST_ROUNDS, int(_MARGIN * self.left_ns / max(self.round_ns, 1)))


def new_plan(
    file: StudyFile,
    confirm: Confirm,
    finalists: Sequence[str],
    explored: RoundPlan,
    time_left: TimeLeft,
) -> ConfirmPlan:
    """The plan that follows from the rounds that explored; the same from the same ones."""
    key, requests = explored.key, explored.requests
    rounds, allowed_ns = _rounds(file.study, confirm, len(finalists), explored, time_left)
    study = file.study
    layouts = study.layouts
    relinked = layouts.variants == "all" or confirm.relinks
    seed = int(hashlib.sha256(f"confirm {key}".encode()).hexdigest()[:8], 16)
    return ConfirmPlan(
        exploration=key,
        baseline=file.variants[0].name,
        finalists=tuple(finalists),
        workloads=tuple(workload.name for workload in study.workloads),
        requests=dict(requests),
        metric=study.race.cost.value,
        margin=study.race.margin,
        level=confirming_level(study.race),
        rounds=rounds,
        seed=seed,
        layout_seed=layouts.seed % _LARGEST_LAYOUT_SEED + 1 if relinked else 0,
        profile=1 if study.training is None else study.training.profiles + 1,
        precision=study.race.precision if confirm.rounds is None else None,
        allowed_ns=allowed_ns,
        relinks=min(rounds, _MOST_RELINKS if confirm.rounds else _ENOUGH_RELINKS),
        prefer=study.race.prefer,
    )


def confirming_level(race: Race) -> float:
    """The level of all claims; of a k-th attempt 1 - α/2^k, which sum up to less than α."""
    attempt = None if race.confirm is None else race.confirm.attempt
    return race.level if attempt is None else 1 - (1 - race.level) / 2**attempt


def _rounds(
    study: Study, confirm: Confirm, finalists: int, explored: RoundPlan, time_left: TimeLeft
) -> tuple[int, int | None]:
    """Number of confirming rounds, and their time; all that fit, or as a precision needs.

    Where the rounds have used the budget, because nobody had asked to confirm, it is as many as
    confirm well, without a limit.
    """
    if confirm.rounds is not None:
        return confirm.rounds, max(time_left.left_ns, confirm.rounds * time_left.round_ns)
    if time_left.fits < FEWEST_ROUNDS:
        return (_FOR_ONE if finalists == 1 else _FOR_MORE), None
    rounds, precision = time_left.fits, study.race.precision
    if precision is not None and explored.reached is not None:
        needed = explored.rounds * (explored.reached / parse_share(precision)) ** 2
        rounds = max(FEWEST_ROUNDS, math.ceil(min(needed, rounds)))
    return rounds, time_left.left_ns


def choose_finalists(explored: Result, variants: Iterable[Variant], most: int) -> tuple[str, ...]:
    """The best of those with a mean below the baseline's that nothing speaks against. Pure.

    Of several profiles of one variant the best stands for all: its profile is collected anew.
    """
    choices = {variant.name: variant.choices for variant in variants}
    taken = {choices.get(explored.baseline)}
    chosen: list[str] = []
    for compared in promising(explored):
        name = compared.comparison.variant
        if choices.get(name, ()) not in taken:
            taken.add(choices.get(name, ()))
            chosen.append(name)
    return tuple(chosen[:most])


def choose_extremes(explored: Result, variants: Iterable[Variant], most: int) -> tuple[str, ...]:
    """The best of each compiler over all workloads, then the worst of each; not the baseline. Pure.

    The baseline may be either of its compiler.
    """
    ratios = {compared.comparison.variant: compared.comparison.ratio for compared in able(explored)}
    ratios[explored.baseline] = 1.0
    raced = [variant for variant in variants if variant.name in ratios]
    ends: list[list[str]] = [[], []]
    for compiler in dict.fromkeys(variant.compiler for variant in raced):
        own = [variant.name for variant in raced if variant.compiler == compiler]
        own.sort(key=lambda name: ratios[name])
        for end, name in zip(ends, (own[0], own[-1]), strict=True):
            end.append(name)
    chosen = dict.fromkeys(name for end in ends for name in end if name != explored.baseline)
    return tuple(chosen)[:most]


def confirming(file: StudyFile, plan: ConfirmPlan) -> StudyFile:
    """The study of the confirmation: finalists alone, with seeds and profiles of its own. Pure."""
    chosen = (plan.baseline, *plan.finalists)
    by_name = {variant.name: variant for variant in file.variants}
    missing = [name for name in chosen if name not in by_name]
    if missing:
        raise InputError(
            f"{file.path} no longer has {', '.join(missing)}, which is to be confirmed"
        )
    variants = (by_name[name] for name in chosen)
    fresh = (
        replace(variant, profile=plan.profile) if trained(variant) else variant
        for variant in variants
    )
    return replace(file, study=confirming_study(file.study, plan), variants=tuple(fresh))


def confirming_study(study: Study, plan: ConfirmPlan) -> Study:
    """Race and rule of the confirmation: by its plan, whatever the study says now. Pure."""
    race = study.race.model_copy(
        update={
            "confirm": None,
            "slice_check": [],
            "metric": plan.metric,
            "margin": plan.margin,
            "level": plan.level,
            "prefer": plan.prefer,
            "rounds": plan.rounds,
            "precision": plan.precision,
            "seed": plan.seed,
        }
    )
    layouts = study.layouts
    if plan.layout_seed:
        layouts = Layouts(count=plan.relinks, how=layouts.how, seed=plan.layout_seed)
    workloads = [workload for workload in study.workloads if workload.name in plan.workloads]
    return study.model_copy(update={"race": race, "layouts": layouts, "workloads": workloads})


def made_afresh(file: StudyFile, plan: ConfirmPlan) -> tuple[str, ...]:
    """Parts that are not taken over from the exploration, in words. Pure."""
    by_name = {variant.name: variant for variant in file.variants}
    chosen = [by_name[name] for name in (plan.baseline, *plan.finalists) if name in by_name]
    relinks = ("relinks",) if plan.layout_seed else ()
    profiles = ("profiles",) if any(map(trained, chosen)) else ()
    return ("executions", *relinks, *profiles)


def plan_name(key: str) -> str:
    """Path of the plan of that exploration, in the results folder."""
    return f"confirm/{key}"


def record_name(key: str) -> str:
    """Path of the record of the confirmation of that exploration."""
    return f"confirm/{key}-record"


def write_plan(folder: StudyFolder, plan: ConfirmPlan) -> None:
    """Writes plan and hash in one step."""
    content = {"plan": json.loads(_text(plan)), "sha256": plan.sha256}
    folder.write_json(plan_name(plan.exploration), content)


def read_plan(folder: StudyFolder, key: str) -> ConfirmPlan | None:
    """The plan of that exploration, or None. InputError where it was edited afterwards."""
    stored = folder.read_json(plan_name(key))
    if stored is None:
        return None
    try:
        plan = _PLAN.validate_python(stored["plan"])
    except (KeyError, ValidationError):
        plan = None
    if plan is None or plan.sha256 != stored.get("sha256") or plan.exploration != key:
        raise edited(folder, key)
    return plan


def edited(folder: StudyFolder, key: str) -> InputError:
    """Error for a plan that is not the one that was written before the trials."""
    path = folder.json_file(plan_name(key))
    return InputError(
        f"{path} was edited after it was written, but a confirmation follows the plan that was "
        f"fixed before it: put it back, or delete {path.parent} to confirm anew"
    )


def _text(plan: ConfirmPlan) -> str:
    return json.dumps(_PLAN.dump_python(plan, mode="json"), sort_keys=True)
