"""Samples of the rounds by relink and function. Reads the programs that were raced."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from ensign.experiment.study.variants import ProgramTree, VariantSet
from ensign.experiment.tracing import in_own_scratch, original_of
from ensign.model.errors import InputError
from ensign.model.finding_kinds.judgment import LAYOUT_SENSITIVE, PLACES_UNKNOWN
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.trials import TWIN, CodeSamples, SampledFile, Trial, failed_variants
from ensign.model.units import parse_share
from ensign.proof.sampled_code import (
    CodeMap,
    FunctionPlace,
    Loop,
    hottest_loop,
    loops_of,
    read_code_map,
)
from ensign.stats.relink_shares import (
    ShareChange,
    halves,
    own_layout_sds,
    share_changes,
    shown_growths,
    shows_layouts,
    slowest_first,
)
from ensign.stats.rounds import RoundCosts, round_costs

# A file's name and a function's, which is empty where it has none.
Key = tuple[str, str]
NOWHERE: Key = ("", "")
_MOST_MAPS = 8


@dataclass(slots=True)
class RelinkSamples:
    """Samples of one relink: counts by function, and by place in it; where functions lie."""

    functions: Counter[Key] = field(default_factory=Counter)
    offsets: defaultdict[Key, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    places: dict[Key, tuple[Path, FunctionPlace]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampleReader:
    """Finds functions in files; `trees` are those of the variants."""

    trees: Mapping[str, ProgramTree]
    _maps: dict[Path, CodeMap | None] = field(default_factory=dict)

    def read(self, artifact: str, executions: Iterable[CodeSamples]) -> RelinkSamples:
        """Observations of executions of a relink, the program at `artifact`."""
        relink_samples = RelinkSamples()
        for samples in executions:
            relink_samples.functions[NOWHERE] += samples.elsewhere
            for file in samples.files:
                self._add(file, artifact, relink_samples)
        return relink_samples

    def _add(self, file: SampledFile, artifact: str, to: RelinkSamples) -> None:
        path = self.original(file, artifact)
        code = None if path is None else self._map_of(path)
        name = Path(file.path).name
        for offset, count in file.places:
            address = None if code is None else code.address_of(offset)
            place = None if code is None or address is None else code.function_at(address)
            key = (name, "" if place is None else place.name)
            to.functions[key] += count
            if path is not None and place is not None and address is not None:
                to.offsets[key][address - place.start] += count
                to.places[key] = (path, place)

    def original(self, file: SampledFile, artifact: str) -> Path | None:
        """The file that was mapped, or what it was copied from."""
        if file.deleted or file.other_root:
            return None
        if not in_own_scratch(file.path):
            return Path(file.path)
        tree = self.trees.get(artifact)
        if tree is None:
            own = Path(artifact)
            return own if own.name == Path(file.path).name else None
        original = original_of(file.path, tree.files)
        return None if original is None else Path(original)

    def _map_of(self, path: Path) -> CodeMap | None:
        if path not in self._maps:
            # Relinks come one after the other, and a map of a large program is large.
            if len(self._maps) >= _MOST_MAPS:
                self._maps.clear()
            self._maps[path] = read_code_map(path)
        return self._maps[path]


_MARGIN = 0.01  # where the study has none
_MOST_SHOWN = 3
_LINE, _PAGE = 64, 4096
_MOST_PLACES = 4
_LARGEST_BYTES = 256  # where a longer one begins says little of it


@dataclass(frozen=True, slots=True)
class _Halves:
    """Samples of the slow relinks and of the fast ones, and how shares of functions differ."""

    slow: tuple[RelinkSamples, ...]
    fast: tuple[RelinkSamples, ...]
    changes: tuple[ShareChange[Key], ...]


@dataclass(frozen=True, slots=True)
class _Family:
    """Test of a variant in a workload; `sd` is between its layouts, of log costs."""

    variant: str
    workload: str
    program: str
    sd: float
    halves: _Halves


def sensitivity_findings(
    study: Study, variants: VariantSet, trials: Sequence[Trial]
) -> tuple[Finding, ...]:
    """Variants whose layouts spread by more than the margin, where samples show functions for it.

    Else nothing is said: also of races in groups, of relinks that ran once, of few samples.
    """
    gone = failed_variants(trials)
    left = [trial.without(gone) for trial in trials]
    if not variants.rotation or any(trial.groups for trial in left):
        return ()
    if _is_untold(left):
        return (PLACES_UNKNOWN.found("the kernel did not tell where stopped programs stood"),)
    names = [*(name for name, _ in variants.without(gone).artifacts), TWIN]
    reader = SampleReader(variants.trees)
    families: list[_Family] = []
    for workload in study.workloads:
        own = [trial for trial in left if trial.workload == workload.name]
        if any(totals.scores for trial in own for totals in trial.variants):
            continue
        try:
            costs = round_costs(own, names, [workload.name], study.race.cost)
        except InputError:  # no measurable time: the judgment says so
            continue
        families += _families(study, costs, _Race(variants, own, reader))
    growths = shown_growths([family.halves.changes for family in families], study.race.level)
    several = len(study.workloads) > 1
    return tuple(
        LAYOUT_SENSITIVE.found(_text(family, shown, several=several), family.variant)
        for family, shown in zip(families, growths, strict=True)
        if shown
    )


def _is_untold(trials: Sequence[Trial]) -> bool:
    """True if tasks stood, and of none the kernel told where."""
    told = [
        variant.code_samples
        for trial in trials
        for variant in trial.variants
        if variant.code_samples
    ]
    return any(samples.unknown for samples in told) and not any(
        samples.files or samples.elsewhere or samples.in_calls for samples in told
    )


@dataclass(frozen=True, slots=True)
class _Race:
    """The trials of one workload, and who raced in them."""

    variants: VariantSet
    trials: Sequence[Trial]
    reader: SampleReader

    def samples_of(self, copies: Sequence[str]) -> Mapping[str, RelinkSamples]:
        """Samples by the path of each relink."""
        taken: defaultdict[str, list[CodeSamples]] = defaultdict(list)
        for trial in self.trials:
            for totals in trial.variants:
                if totals.variant in copies and totals.code_samples is not None:
                    relink = self.variants.artifact_of(totals.variant, trial.round_index)
                    taken[relink].append(totals.code_samples)
        return {relink: self.reader.read(relink, samples) for relink, samples in taken.items()}


def _families(study: Study, costs: RoundCosts, race: _Race) -> Iterator[_Family]:
    y, relinks = costs.y[:, 0, :], race.variants.rotation
    sds = own_layout_sds(y, costs.rounds, relinks)
    if sds is None:
        return
    margin = math.log1p(_MARGIN if study.race.margin is None else parse_share(study.race.margin))
    count = len(y)
    # What a round does to all of them is none of a layout's.
    d = (y - y.mean(axis=0)) * count / (count - 1)
    baseline = costs.variants[0]
    for name, sd, own in zip(costs.variants, sds.tolist(), d, strict=True):
        if name == TWIN or sd <= margin or not shows_layouts(own, costs.rounds, relinks):
            continue
        copies = [name, TWIN] if name == baseline else [name]
        by_relink: defaultdict[str, list[float]] = defaultdict(list)
        for copy in copies:
            values = d[costs.variants.index(copy)].tolist()
            for round_index, value in zip(costs.rounds, values, strict=True):
                by_relink[race.variants.artifact_of(copy, round_index)].append(value)
        found = _halves(race, copies, by_relink)
        if found is not None:
            program = Path(race.variants.artifacts[0][1]).name
            yield _Family(name, costs.workloads[0], program, sd, found)


def _halves(
    race: _Race, copies: Sequence[str], costs: Mapping[str, Sequence[float]]
) -> _Halves | None:
    """Samples of slow and of fast relinks, and what differs; None where they are too few."""
    sampled = race.samples_of(copies)
    order = slowest_first(
        costs, {name: samples.functions.total() for name, samples in sampled.items()}
    )
    if not order:
        return None
    relinks = [sampled[name] for name in order]
    means = [fmean(costs[name]) for name in order]
    changes = share_changes(means, [relink.functions for relink in relinks])
    # What has no name cannot be told from others without one.
    return _Halves(*halves(relinks), tuple(change for change in changes if change.key[1]))


def _text(family: _Family, shown: Sequence[ShareChange[Key]], *, several: bool) -> str:
    where = f"on {family.workload}, " if several else ""
    largest = sorted(shown, key=lambda change: change.fast - change.slow)[:_MOST_SHOWN]
    functions = "; and ".join(_function(change, family) for change in largest)
    return (
        f"{where}slow relinks spend {functions}; the standard deviation between relinks is "
        f"{100 * math.expm1(family.sd):.1f} %"
    )


def _function(change: ShareChange[Key], family: _Family) -> str:
    file, name = change.key
    called = name if file == family.program else f"{name} of {file}"
    slow, fast = (f"{100 * share:.1f} %" for share in (change.slow, change.fast))
    counts = f"{change.slow_samples} and {change.fast_samples}"
    text = f"{slow} of their time in {called}, fast ones {fast}, as far as {counts} samples show"
    loop = loop_text(change.key, family.halves.slow, family.halves.fast)
    return f"{text}; {loop}" if loop else text


@dataclass(frozen=True, slots=True)
class _Side:
    """Relinks of one half: in how many the loop crosses a border, and where in a line it begins."""

    relinks: int
    across_lines: int
    across_pages: int
    begins: tuple[int, ...]


def loop_text(key: Key, slow: Sequence[RelinkSamples], fast: Sequence[RelinkSamples]) -> str:
    """Range of the smallest short loop with half of the function's samples; empty if none.

    Neither is there one where relinks differ in the function's code, or in nothing.
    """
    every = [*slow, *fast]
    if not all(key in relink_samples.places for relink_samples in every) or _lies_still(key, every):
        return ""
    first, *others = (frozenset(loops_of(*relink_samples.places[key])) for relink_samples in every)
    samples: Counter[int] = Counter()
    for one in every:
        samples.update(one.offsets[key])
    hottest = hottest_loop(first.intersection(*others), samples, _LARGEST_BYTES)
    if hottest is None:
        return ""
    share = hottest.share_of(samples)
    head = f"its hottest loop ({hottest.size} bytes, {100 * share:.0f} % of its samples)"
    return f"{head} {_compared(_side(hottest, key, slow), _side(hottest, key, fast))}"


def _lies_still(key: Key, relinks: Sequence[RelinkSamples]) -> bool:
    return len({relink.places[key][1].start for relink in relinks}) == 1


def _side(loop: Loop, key: Key, relinks: Sequence[RelinkSamples]) -> _Side:
    starts = [relink.places[key][1].start for relink in relinks]
    return _Side(
        relinks=len(starts),
        across_lines=sum(loop.crosses(start, _LINE) for start in starts),
        across_pages=sum(loop.crosses(start, _PAGE) for start in starts),
        begins=tuple(sorted({(start + loop.start) % _LINE for start in starts})),
    )


def _compared(slow: _Side, fast: _Side) -> str:
    lines = (
        f"crosses a line of {_LINE} bytes in {slow.across_lines} of {slow.relinks} slow relinks "
        f"and in {fast.across_lines} of {fast.relinks} fast ones"
    )
    parts = [lines]
    if slow.across_pages or fast.across_pages:
        parts.append(f"a page in {slow.across_pages} and {fast.across_pages} of them")
    if max(len(slow.begins), len(fast.begins)) <= _MOST_PLACES:
        parts.append(f"and begins at {_listed(slow)} and {_listed(fast)} modulo {_LINE}")
    return ", ".join(parts)


def _listed(side: _Side) -> str:
    return " or ".join(map(str, side.begins))
