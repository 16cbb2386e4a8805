"""Values of `{workload}`, and observations of each workload before the race. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.experiment.compare.commands import CommandVariant
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.planning import Planned
from ensign.experiment.compare.tracing import Traces, raced_findings
from ensign.experiment.pilots import CommandPilot
from ensign.experiment.self_timed import FOR_A_MEDIAN, TO_BE_SURE, withheld_text
from ensign.model.errors import InputError
from ensign.model.finding_kinds.proof import FAST_MATH_START
from ensign.model.finding_kinds.race import SELF_TIMED
from ensign.model.finding_kinds.ran import VISIBLE_DIFFERENCES
from ensign.model.findings import Finding
from ensign.model.traced_execution import MappedFile, TracedExecution, is_loader
from ensign.model.trials import Metric, Mode, Trial, VariantFailure
from ensign.proof.loaded_bytes import loader_name

PLACE = "{workload}"
_NAMED = re.compile(r"([A-Za-z0-9_.-]+)=(.*)", re.DOTALL)
_MOST_FILES, _MOST_BYTES = 4, 64 << 20
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class CommandWorkload:
    """The commands and options of one workload; its name is empty where there is only one."""

    name: str
    commands: tuple[CommandVariant, ...]
    options: Options


def workloads_of(
    options: Options, commands: tuple[CommandVariant, ...]
) -> tuple[CommandWorkload, ...]:
    """One for each `--workload`, NAME=TEXT or TEXT; the commands as they are without any.

    TEXT stands for `{workload}` in them; where no command has that, it is put at their end.
    InputError for two of one name.
    """
    if not options.workloads:
        return (CommandWorkload("", commands, options),)
    workloads: dict[str, CommandWorkload] = {}
    for option_text in options.workloads:
        named = _NAMED.fullmatch(option_text)
        name, text = named.groups() if named else (option_text, option_text)
        if name in workloads:
            raise InputError(f"--workload {name} is given twice; name them NAME=TEXT")
        workloads[name] = _filled(name, text, options, commands)
    return tuple(workloads.values())


def _filled(
    name: str, text: str, options: Options, commands: tuple[CommandVariant, ...]
) -> CommandWorkload:
    every = [word for command in commands for word in (*command.argv, *(command.load or ()))]
    placed = [*every, options.input or "", *options.env]
    at_the_end = not any(PLACE in word for word in placed)

    def words(argv: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if argv is None:
            return None
        return tuple(
            part
            for word in argv
            for part in (shlex.split(text) if word == PLACE else [word.replace(PLACE, text)])
        )

    def command(variant: CommandVariant) -> CommandVariant:
        more = tuple(shlex.split(text)) if at_the_end else ()
        load = words(variant.load)
        return replace(
            variant,
            argv=(*(words(variant.argv) or ()), *(() if load else more)),
            setup=words(variant.setup),
            prepare=words(variant.prepare),
            cleanup=words(variant.cleanup),
            load=None if load is None else (*load, *more),
            preload=words(variant.preload),
        )

    budget_ns = options.budget_ns
    return CommandWorkload(
        name,
        tuple(map(command, commands)),
        replace(
            options,
            input=None if options.input is None else options.input.replace(PLACE, text),
            output=None if options.output is None else options.output.replace(PLACE, name),
            expected=None if options.expected is None else options.expected.replace(PLACE, text),
            env=tuple(assignment.replace(PLACE, text) for assignment in options.env),
            budget_ns=None if budget_ns is None else budget_ns // len(options.workloads),
        ),
    )


@dataclass(frozen=True, slots=True)
class PlannedWorkloads:
    """Observations of each workload, by name."""

    by_name: Mapping[str, Planned]

    def by_one_metric(self) -> PlannedWorkloads:
        """All by the same cost: wall time, where they ask for several."""
        metrics = {planned.plan.metric for planned in self.by_name.values()}
        if len(metrics) == 1:
            return self
        return PlannedWorkloads(
            {
                name: replace(planned, plan=replace(planned.plan, metric=Metric.WALL))
                for name, planned in self.by_name.items()
            }
        )

    @property
    def judged(self) -> Mapping[str, Planned]:
        """Those that do not run for a fixed time."""
        return {name: planned for name, planned in self.by_name.items() if not planned.self_timed}

    @property
    def metric(self) -> Metric:
        """The cost that is compared."""
        return self._first.plan.metric

    @property
    def mode(self) -> Mode:
        """Mode of the first workload."""
        return self._first.plan.mode

    @property
    def failures(self) -> tuple[VariantFailure, ...]:
        """Failures before the race."""
        return tuple(
            replace(failure, workload=name)
            for name, planned in self.by_name.items()
            for failure in planned.failures
        )

    @property
    def round_ns(self) -> int:
        """Time of one execution of all variants on every workload."""
        return sum(planned.plan.execution_ns for planned in self.judged.values())

    @property
    def together(self) -> Mapping[str, int | None]:
        """Number of variants that race at a time on each workload; None: all."""
        return {name: planned.plan.together for name, planned in self.by_name.items()}

    @property
    def deadline_ns(self) -> int | None:
        """Time after which a run hangs; None where the user said when that is."""
        deadlines_ns = [planned.plan.deadline_ns for planned in self.by_name.values()]
        known = [deadline_ns for deadline_ns in deadlines_ns if deadline_ns is not None]
        return max(known) if len(known) == len(deadlines_ns) else None

    @property
    def traces(self) -> Traces:
        """Observations of the commands in the first workload, with the findings of all."""
        findings = [
            finding
            for name, planned in self.by_name.items()
            for finding in self._of(name, planned.traces.findings)
        ]
        return replace(self._first.traces, findings=tuple(findings))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on the plans, and on the workloads that are not judged."""
        findings = [
            finding
            for name, planned in self.by_name.items()
            for finding in self._of(name, planned.plan.findings)
        ]
        if len(self.by_name) > 1:
            findings += (
                SELF_TIMED.found(withheld_text(planned.self_timed), name)
                for name, planned in self.by_name.items()
                if planned.self_timed
            )
        return tuple(dict.fromkeys(findings))

    @property
    def pilots(self) -> Mapping[str, CommandPilot]:
        """The unmeasured runs of the first workload."""
        return self._first.pilots

    @property
    def withheld(self) -> str:
        """Why nothing is compared."""
        return withheld_text(self._first.self_timed)

    @property
    def same(self) -> frozenset[str]:
        """The variants that run what an earlier one runs, on every workload."""
        same = [frozenset(planned.traces.same) for planned in self.by_name.values()]
        return frozenset.intersection(*same)

    def doubt(self, *, loaded: bool) -> str:
        """Why nothing is claimed, whatever the race gives; empty where there is no such reason."""
        doubts = (planned.doubt_of_the_clock(loaded=loaded) for planned in self.judged.values())
        return next(filter(None, doubts), "")

    def seen_in(self, trials: Sequence[Trial]) -> PlannedWorkloads | None:
        """Workloads that the first executions show to run for a fixed time; None if none."""
        # Asked after every execution: of a long race the later ones are not gone through.
        if len(trials) > FOR_A_MEDIAN * len(self.by_name):
            return None
        name = trials[-1].workload
        planned = self.by_name[name]
        if planned.self_timed:
            return None
        seen = planned.seen_in([trial for trial in trials if trial.workload == name])
        return None if seen is None else PlannedWorkloads({**self.by_name, name: seen})

    def doubted(self, trials: Sequence[Trial]) -> tuple[str, ...]:
        """Workloads whose first executions show that a program runs for a fixed time."""
        return tuple(
            name
            for name, planned in self.judged.items()
            if _with_clock(
                planned, [trial for trial in trials if trial.workload == name]
            ).self_timed
        )

    def with_pilots(self, name: str, pilots: Mapping[str, CommandPilot]) -> PlannedWorkloads:
        """With other unmeasured runs of that workload."""
        other = replace(self.by_name[name], pilots=pilots)
        return PlannedWorkloads({**self.by_name, name: other})

    def after_race(
        self, trials: Sequence[Trial], names: Mapping[str, str], baseline: str
    ) -> PlannedWorkloads:
        """With what the race showed of the files that ran, and of who runs for a fixed time.

        A workload alone that ends so has ended its race; of several the others go on.
        """
        by_name = {}
        for name, planned in self.by_name.items():
            mine = [trial for trial in trials if trial.workload == name]
            timed = planned if planned.self_timed else _with_clock(planned, mine)
            raced = raced_findings(timed.traces, mine, names, baseline) if mine else ()
            looks = visible_findings(timed.traces.by_variant, names, baseline) if mine else ()
            traces = replace(timed.traces, findings=(*timed.traces.findings, *raced, *looks))
            by_name[name] = replace(timed, traces=traces)
        return PlannedWorkloads(by_name)

    @property
    def _first(self) -> Planned:
        return next(iter(self.judged.values()), next(iter(self.by_name.values())))

    def _of(self, name: str, findings: Sequence[Finding]) -> list[Finding]:
        if len(self.by_name) == 1:
            return list(findings)
        return [replace(finding, text=f"{name}: {finding.text}") for finding in findings]


def _with_clock(planned: Planned, trials: Sequence[Trial]) -> Planned:
    """Observations of the first executions of a workload: who runs for a fixed time."""
    seen = (planned.seen_in(trials[:count]) for count in (TO_BE_SURE, FOR_A_MEDIAN))
    return next(filter(None, seen), planned)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A file that one command ran, and what the other had in its place."""

    first: MappedFile
    other: MappedFile

    @property
    def name(self) -> str:
        """As a loader asks for it."""
        return loader_name(self.other.path)


def visible_findings(
    seen: Mapping[str, TracedExecution], names: Mapping[str, str], baseline: str
) -> Iterator[Finding]:
    """Findings on each command against the baseline, of files that differ alone."""
    first = seen.get(baseline)
    for variant, name in names.items():
        other = seen.get(variant)
        if variant == baseline or first is None or other is None:
            continue
        if first.identities != other.identities and first.followed and other.followed:
            yield from _between(first, other, names[baseline], name)


def _between(
    first: TracedExecution, other: TracedExecution, before: str, name: str
) -> Iterator[Finding]:
    # Not at the start of the program: a comparison begins without it.
    from ensign.proof.fast_math import FLUSHED, links_fast_math  # noqa: PLC0415
    from ensign.proof.visible_code import differences, read_visible  # noqa: PLC0415

    own = _others(first, other), _others(other, first)
    parts = []
    for pair in _pairs(first, other, own):
        looks = read_visible(Path(pair.first.path)), read_visible(Path(pair.other.path))
        if looks[0] is not None and looks[1] is not None:
            differing = ", ".join(differences(looks[0], looks[1]))
            parts += [f"{pair.name} ({differing})"] if differing else []
    parts += _libraries(first, other)
    if parts:
        text = f"what visibly differs from {before}: {'; '.join(parts)}"
        yield VISIBLE_DIFFERENCES.found(text, name)
    flushing = [
        [loader_name(file.path) for file in files if links_fast_math(Path(file.path))]
        for files in own
    ]
    if bool(flushing[0]) != bool(flushing[1]):
        who, whose = (before, flushing[0]) if flushing[0] else (name, flushing[1])
        two = name if flushing[0] else before
        files = ", ".join(whose[:_SHOWN])
        yield FAST_MATH_START.found(
            f"it runs fast-math start-up code ({files}), {two} does not: {FLUSHED}; time and "
            "output may differ for that alone",
            who,
        )


def _others(one: TracedExecution, two: TracedExecution) -> list[MappedFile]:
    """Files of the one that the other did not run, as far as they can still be read."""
    known = {file.sha256 for file in two.mapped}
    files = [file for file in one.mapped if file.sha256 and file.sha256 not in known]
    return [file for file in files if _is_small(Path(file.path))]


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size <= _MOST_BYTES
    except OSError:
        return False


def _pairs(
    first: TracedExecution,
    other: TracedExecution,
    own: tuple[list[MappedFile], list[MappedFile]],
) -> list[_Pair]:
    """Pairs by their names; programs that have none in common, by being the programs."""
    before, after = ({loader_name(file.path): file for file in files} for files in own)
    pairs = [_Pair(before[name], after[name]) for name in after if name in before]
    mains = _program(first, before), _program(other, after)
    if mains[0] is not None and mains[1] is not None and mains[0].path != mains[1].path:
        main = _Pair(mains[0], mains[1])
        pairs = [main, *(pair for pair in pairs if pair != main)]
    return pairs[:_MOST_FILES]


def _program(trace: TracedExecution, files: Mapping[str, MappedFile]) -> MappedFile | None:
    """The executed program, where it is one file of those that differ.

    Where a loader was executed, it is what that started: no library.
    """
    started = {str(Path(path).resolve()) for path in trace.programs}
    mapped_files = [file for file in files.values() if str(Path(file.path).resolve()) in started]
    if len(mapped_files) == 1 and is_loader(mapped_files[0].path):
        mapped_files = [file for name, file in files.items() if ".so" not in name]
    return mapped_files[0] if len(mapped_files) == 1 else None


def _libraries(first: TracedExecution, other: TracedExecution) -> Iterator[str]:
    """Those that one of them loads; an allocator is named as such."""
    from ensign.proof.loader import ALLOCATORS  # noqa: PLC0415
    from ensign.proof.visible_code import with_and_without  # noqa: PLC0415

    before, after = (
        frozenset(
            name for name in (loader_name(file.path) for file in trace.mapped) if ".so" in name
        )
        for trace in (first, other)
    )
    if before != after:
        yield f"libraries {with_and_without(after - before, before - after)}"
    kinds = [
        next((kind for kind in ALLOCATORS for name in names if kind in name), "the C library's")
        for names in (before, after)
    ]
    if kinds[0] != kinds[1]:
        yield f"allocator {kinds[1]} against {kinds[0]}"
