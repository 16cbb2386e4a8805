"""Reads where raced programs stood: CPU time by function, of each variant beside the baseline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ensign.explain.code_facts import CodeDifference, SampledFunction, code_differences
from ensign.explain.function_names import ALLOCATION, interface_of, source_name
from ensign.explain.relinked_places import with_lines
from ensign.meter.client import find_meter
from ensign.meter.questions import Place, located
from ensign.model.results import STACK_SEPARATOR, FunctionCost, FunctionCosts
from ensign.model.trials import (
    TWIN,
    CodeSamples,
    Mode,
    SampledFile,
    Trial,
    VariantTotals,
    name_without_group,
)
from ensign.proof.loaded_bytes import loader_name
from ensign.proof.loader import ALLOCATORS
from ensign.stats.function_costs import CostDifference, SampledExecution, cost_differences

KERNEL = "(system calls and page faults)"
NO_FILE = "(code in no file)"
NO_NAME = "(functions without a name)"
FEW_SAMPLES = "(functions with few samples)"
_FEWEST_SAMPLES = 30
_MOST_WITH_FACTS = 20
_FEWEST_OF_ONE = 30  # an interval of fewer would say too much
# Of a program that computes all the time: CPU over wall time, and how far samples in system calls
# may exceed their accounted share, before they are of tasks that sleep.
_LEAST_BUSY, _MOST_BUSY = 0.9, 1.02
_MOST_TIMES, _MOST_MORE = 2.5, 0.05
_SOURCE_SHARE = 0.5  # of the samples in the programs themselves, for rows by source to say enough
NO_SLICES = "whole executions have no slices, at whose ends programs are looked at"
UNTOLD = "the kernel does not tell where stopped programs stand"
OpenFile = Callable[[Trial, str, SampledFile], Path | None]


class Function(NamedTuple):
    """A function under the name that all builds of it share; `file` is empty for the program."""

    file: str
    name: str


@dataclass(frozen=True, slots=True)
class _Found:
    """A place's function: as a symbol, with all that is inlined there, as written, with its line.

    `symbol` is what the file calls it.
    """

    by_symbol: Function
    by_stack: Function
    by_source: Function | None
    by_line: Function | None
    symbol: str
    place: Place


class _Sample(NamedTuple):
    """A place in a file, what lies there as far as it is known, and how often it was met."""

    path: Path | None
    offset: int
    found: _Found | None
    times: int


# Workload, round and variant.
_Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class FunctionReader:
    """Finds functions at the places of samples; `open_file` says where a variant's file lies now.

    A file that is gone, or another one by now, has none: its samples are without a name. `relinks`
    are folders of relinks, which have no debug information, and of the files that they are of.
    """

    open_file: OpenFile
    relinks: Mapping[Path, Path] = field(default_factory=dict[Path, Path])

    def read(self, trials: Sequence[Trial]) -> Mapping[_Key, tuple[_Sample, ...]]:
        """Samples in files, of each variant in each trial. InternalError without an answer."""
        opened: list[tuple[_Key, Path | None, SampledFile]] = []
        asked: defaultdict[Path, set[int]] = defaultdict(set)
        users: defaultdict[Path, set[str]] = defaultdict(set)
        for trial in trials:
            for totals in trial.variants:
                for file in _samples(totals).files:
                    path = self.open_file(trial, totals.variant, file)
                    opened.append((_key(trial, totals.variant), path, file))
                    if path is not None:
                        asked[path].update(offset for offset, _ in file.places)
                        users[path].add(totals.variant)
        ordered = {path: tuple(sorted(offsets)) for path, offsets in asked.items()}
        answers: Mapping[Path, Sequence[Place]]
        answers = located(find_meter(), ordered) if ordered else {}
        linked = {
            path: self.relinks[folder] / path.relative_to(folder)
            for path in answers
            for folder in path.parents
            if folder in self.relinks
        }
        answers = with_lines(answers, linked)
        known: dict[tuple[Path | None, int], _Found] = {}
        for path, places in answers.items():
            label = loader_name(str(path)) if ".so" in path.name else ""
            # Of one file that several run, an address is as good as a name.
            shared = path.name if len(users[path] - {TWIN}) > 1 else ""
            # Where a file is no program there are no places.
            for offset, place in zip(ordered[path], places, strict=False):
                known[path, offset] = _found(place, label, shared)
        found: defaultdict[_Key, list[_Sample]] = defaultdict(list)
        for key, where, file in opened:
            found[key] += (
                _Sample(where, offset, known.get((where, offset)), count)
                for offset, count in file.places
            )
        return {key: tuple(samples) for key, samples in found.items()}


def _key(trial: Trial, variant: str) -> _Key:
    return trial.workload, trial.round_index, variant


def _found(place: Place, label: str, shared: str) -> _Found:
    symbol = place.function
    if symbol:
        name = interface_of(source_name(symbol), label, ALLOCATORS)
    elif shared and place.start is not None:
        name = f"{'' if label else shared}+{place.start:#x}"
    else:
        name = NO_NAME
    by_symbol = Function("" if name == ALLOCATION else label, name)
    inner = source_name(place.inlined[0]) if place.inlined else ""
    by_source = Function(label, interface_of(inner, label, ALLOCATORS)) if inner else None
    line = _line_of(place)
    by_line = by_source and by_source._replace(name=f"{by_source.name} {line}".strip())
    inlined = reversed([source_name(place_name) for place_name in place.inlined[:-1]])
    by_stack = by_symbol._replace(name=STACK_SEPARATOR.join((by_symbol.name, *inlined)))
    return _Found(by_symbol, by_stack, by_source, by_line, symbol or name, place)


def _line_of(place: Place) -> str:
    return f"{place.file.rpartition('/')[2]}:{place.line}" if place.line else ""


def _samples(totals: VariantTotals) -> CodeSamples:
    return totals.code_samples or CodeSamples()


def function_costs(
    trials: Sequence[Trial], baseline: str, reader: FunctionReader, level: float
) -> tuple[FunctionCosts, ...]:
    """One for each variant and workload, in the order of the trials; the twin is the baseline."""
    samples = reader.read(trials)
    by_workload: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_workload[trial.workload].append(trial)
    names = dict.fromkeys(totals.variant for trial in trials for totals in trial.variants)
    return tuple(
        _Pair(own, baseline, name, samples, level).costs(workload)
        for workload, own in by_workload.items()
        for name in names
        if name_without_group(name) not in (baseline, TWIN)
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    trials: Sequence[Trial]
    baseline: str
    variant: str
    samples: Mapping[_Key, tuple[_Sample, ...]]
    level: float

    def costs(self, workload: str) -> FunctionCosts:
        both = [
            trial
            for trial in self.trials
            if {self.baseline, self.variant} <= {totals.variant for totals in trial.variants}
        ]
        sides = (
            [self._of(trial, self._copies(trial)) for trial in both],
            [self._of(trial, (self.variant,)) for trial in both],
        )
        before, after = (sum(execution.in_code for execution in side) for side in sides)
        named = FunctionCosts(
            self.variant,
            workload,
            self.level,
            (before, after),
            page_faults=(_mean_faults(sides[0]), _mean_faults(sides[1])),
        )
        why = _why_unknown(both, named.samples)
        rows = None if why else _rows_of(sides, _by_symbol, self.level)
        if rows is None:
            return replace(named, unknown=why or "too few executions were raced")
        costs = replace(named, total=rows[0], by_symbol=_with_facts(rows[1], sides))
        by_source = _rows_of(sides, _by_source, self.level) if _has_lines(sides) else None
        if by_source is None:
            return costs
        finer = (_rows_of(sides, counted, self.level) for counted in (_by_line, _by_stack))
        by_line, by_stack = (rows[1] if rows else () for rows in finer)
        return replace(costs, by_source=by_source[1], by_line=by_line, by_stack=by_stack)

    def _copies(self, trial: Trial) -> tuple[str, ...]:
        """The baseline that the variant was raced with, and its twin."""
        own = trial.baselines_of(self.variant)
        return (self.baseline, TWIN) if own is None else own[0]

    def _of(self, trial: Trial, names: Sequence[str]) -> _Execution:
        copies = [totals for totals in trial.variants if totals.variant in names]
        taken = [_samples(totals) for totals in copies]
        return _Execution(
            sum(totals.wall_ns / totals.operations for totals in copies) / len(copies),
            sum(totals.user_ns / totals.operations for totals in copies) / len(copies),
            sum(totals.system_ns / totals.operations for totals in copies) / len(copies),
            tuple(
                sample
                for totals in copies
                for sample in self.samples.get(_key(trial, totals.variant), ())
            ),
            sum(samples.elsewhere for samples in taken),
            sum(samples.in_calls for samples in taken),
            sum(totals.page_faults for totals in copies) / len(copies),
            awaits=trial.mode is Mode.DRIVEN,
        )


@dataclass(frozen=True, slots=True)
class _Execution:
    """Means of the copies of a side in a trial (times in ns per operation), and all their samples.

    Who `awaits` its load stands in a system call whenever that is done.
    """

    wall_ns: float
    user_ns: float
    system_ns: float
    in_files: tuple[_Sample, ...]
    elsewhere: int
    in_calls: int
    page_faults: float = 0.0
    awaits: bool = False

    @property
    def in_code(self) -> int:
        """Number of samples in code, of whatever file."""
        return self.elsewhere + sum(sample.times for sample in self.in_files)


_Sides = Sequence[Sequence[_Execution]]
_CountedBy = Callable[[_Execution], Counter[Function]]


def _mean_faults(side: Sequence[_Execution]) -> float:
    return sum(execution.page_faults for execution in side) / max(1, len(side))


def _with_facts(rows: Sequence[FunctionCost], sides: _Sides) -> tuple[FunctionCost, ...]:
    """The rows that differ most, with what differs in their code."""
    told = [row for row in rows if row.excludes_zero and not row.name.startswith("(")]
    told = told[:_MOST_WITH_FACTS]
    before, after = map(_code, sides)
    keys = [Function(row.file, row.name) for row in told]
    pairs = [(before.get(key), after.get(key)) for key in keys]
    differences = dict(zip(keys, code_differences(pairs), strict=True))
    known = ((row, differences.get(Function(row.file, row.name), CodeDifference())) for row in rows)
    return tuple(
        replace(
            row,
            facts=difference.facts,
            code=difference.code,
            same_code=difference.same,
            loop_starts=difference.loop_starts,
        )
        for row, difference in known
    )


def _code(side: Sequence[_Execution]) -> dict[Function, SampledFunction]:
    """Each function's code of the size that has most samples: relinks may pad it."""
    by_function: defaultdict[Function, dict[int, SampledFunction]] = defaultdict(dict)
    for path, offset, one, count in (sample for execution in side for sample in execution.in_files):
        place = Place() if one is None else one.place
        if one is None or path is None or place.start is None or place.within is None:
            continue
        size = place.size or 0
        code = SampledFunction(path, offset - place.within, size)
        code = by_function[one.by_symbol].setdefault(size, code)
        code.starts.add(place.start)
        code.samples[place.within] += count
        code.lines[place.within] = _line_of(place)
    return {
        function: max(codes.values(), key=lambda code: code.samples.total())
        for function, codes in by_function.items()
    }


def _rows_of(
    sides: _Sides, counted: _CountedBy, level: float
) -> tuple[FunctionCost, tuple[FunctionCost, ...]] | None:
    """The whole, and what adds up to it; None where too little is known."""
    in_calls = all(map(_computes, sides))
    counted = _with_calls(counted) if in_calls else counted
    raw = [[counted(execution) for execution in side] for side in sides]
    moved = _moved(*(frozenset(key for each in side for key in each) for side in raw))
    total = _renamed(sum((each for side in raw for each in side), Counter()), moved)
    few = [key for key, count in total.items() if count < _FEWEST_OF_ONE and key.name != KERNEL]
    moved |= dict.fromkeys(few, Function("", FEW_SAMPLES))
    executions = [
        [
            SampledExecution(
                execution.user_ns + (execution.system_ns if in_calls else 0),
                0 if in_calls else execution.system_ns,
                _renamed(count, moved),
            )
            for execution, count in zip(side, counts, strict=True)
        ]
        for side, counts in zip(sides, raw, strict=True)
    ]
    differences = cost_differences(executions[0], executions[1], level)
    if differences is None:
        return None
    symbols = _symbols(sides, moved)
    rows = [_row(key, difference, symbols) for key, difference in differences.functions.items()]
    if not in_calls:
        rows.append(_row(Function("", KERNEL), differences.kernel, {}))
    ordered = sorted(rows, key=lambda row: (-abs(row.difference), row.file, row.name))
    return _row(Function("", ""), differences.total, {}), tuple(ordered)


def _by_symbol(execution: _Execution) -> Counter[Function]:
    return _counted(execution, lambda found: found.by_symbol)


def _by_source(execution: _Execution) -> Counter[Function]:
    return _counted(execution, lambda found: found.by_source or found.by_symbol)


def _by_line(execution: _Execution) -> Counter[Function]:
    return _counted(execution, lambda found: found.by_line or found.by_symbol)


def _by_stack(execution: _Execution) -> Counter[Function]:
    return _counted(execution, lambda found: found.by_stack)


def _counted(execution: _Execution, chosen: Callable[[_Found], Function]) -> Counter[Function]:
    counts = Counter({Function("", NO_FILE): execution.elsewhere})
    for sample in execution.in_files:
        key = Function("", NO_NAME) if sample.found is None else chosen(sample.found)
        counts[key] += sample.times
    return +counts


def _has_lines(sides: _Sides) -> bool:
    """True if both sides tell what was inlined, for most of what is their own."""
    for side in sides:
        seen = (sample for execution in side for sample in execution.in_files)
        own = [sample for sample in seen if sample.found and not sample.found.by_symbol.file]
        told = sum(sample.times for sample in own if sample.found and sample.found.by_source)
        if told <= _SOURCE_SHARE * sum(sample.times for sample in own):
            return False
    return True


def _symbols(
    sides: _Sides, moved: Mapping[Function, Function]
) -> Mapping[Function, tuple[str, str]]:
    """What each side calls a function, by most of its samples."""
    seen: list[defaultdict[Function, Counter[str]]] = []
    for side in sides:
        names: defaultdict[Function, Counter[str]] = defaultdict(Counter)
        for _, _, found_file, count in (
            sample for execution in side for sample in execution.in_files
        ):
            if found_file is not None:
                names[moved.get(found_file.by_symbol, found_file.by_symbol)][found_file.symbol] += (
                    count
                )
        seen.append(names)
    keys = {*seen[0], *seen[1]}
    return {key: (_most(seen[0].get(key)), _most(seen[1].get(key))) for key in keys}


def _most(names: Counter[str] | None) -> str:
    return names.most_common(1)[0][0] if names else ""


def _computes(side: Sequence[_Execution]) -> bool:
    """True if nobody sleeps, so that samples in system calls are of CPU time.

    Who sleeps stands in one: if fewer do than the kernel's accounted share, which has the page
    faults, too, nobody sleeps by much. Then a processor that others took as well tells nothing.
    Accounts of user and system time are by the clock's ticks, which short system calls evade: their
    time is booked as the user's.
    """
    user = sum(execution.user_ns for execution in side)
    system = sum(execution.system_ns for execution in side)
    wall = sum(execution.wall_ns for execution in side)
    calls = sum(execution.in_calls for execution in side)
    code = sum(execution.in_code for execution in side)
    awaits = any(execution.awaits for execution in side)
    if awaits or not code or not wall or not user + system:
        return False
    accounted = system / (user + system)
    standing = calls / (calls + code)
    is_busy = _LEAST_BUSY <= (user + system) / wall <= _MOST_BUSY
    return standing <= accounted or (is_busy and standing <= _MOST_TIMES * accounted + _MOST_MORE)


def _with_calls(counted: _CountedBy) -> _CountedBy:
    def more(execution: _Execution) -> Counter[Function]:
        return Counter({**counted(execution), Function("", KERNEL): execution.in_calls})

    return more


def _moved(before: frozenset[Function], after: frozenset[Function]) -> dict[Function, Function]:
    """Functions that each side has in another file, such as one that is linked statically."""
    own, others = before - after, after - before
    by_name: defaultdict[str, list[list[Function]]] = defaultdict(lambda: [[], []])
    for side, keys in enumerate((own, others)):
        for key in keys:
            by_name[key.name][side].append(key)
    return {
        theirs[0]: ours[0]
        for name, (ours, theirs) in by_name.items()
        if len(ours) == len(theirs) == 1 and not name.startswith("(")
    }


def _renamed(counts: Counter[Function], moved: Mapping[Function, Function]) -> Counter[Function]:
    renamed: Counter[Function] = Counter()
    for key, count in counts.items():
        name = moved.get(key, key)
        renamed[moved.get(name, name)] += count  # moved to another file, then among the few
    return renamed


def _row(
    key: Function, difference: CostDifference, symbols: Mapping[Function, tuple[str, str]]
) -> FunctionCost:
    many = key.name.startswith("(") or key.name == ALLOCATION
    called = ("", "") if many else symbols.get(key, ("", ""))
    return FunctionCost(
        key.name,
        key.file,
        difference.before_ns,
        difference.after_ns,
        difference.share,
        difference.low,
        difference.high,
        ("", "") if set(called) <= {key.name, ""} else called,
    )


def _why_unknown(trials: Sequence[Trial], taken: tuple[int, int]) -> str:
    every = [_samples(totals) for trial in trials for totals in trial.variants]
    if trials and all(trial.mode is Mode.ALTERNATING for trial in trials):
        return NO_SLICES
    if any(samples.unknown for samples in every) and not any(
        samples.files or samples.elsewhere or samples.in_calls for samples in every
    ):
        return UNTOLD
    if trials and min(taken) < _FEWEST_SAMPLES:
        waiting = sum(samples.in_calls for samples in every)
        if waiting > sum(taken):
            return f"it stood in system calls at {waiting} looks, and in code at {sum(taken)} alone"
        return (
            f"{taken[0]} and {taken[1]} samples were taken in code, and {_FEWEST_SAMPLES} are "
            "needed: a longer --budget, or --slice 1ms, takes more"
        )
    return ""
