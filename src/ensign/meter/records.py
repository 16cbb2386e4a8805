"""The meter's records, read into trials. Pure: a fold over the records of one request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ensign.meter.requests import NamedPattern, RaceRequest, Report
from ensign.model.errors import (
    CommandFailed,
    DeadlineMet,
    InputError,
    InternalError,
    Interrupted,
    StorageFailed,
)
from ensign.model.finding_kinds.builds import LEFT_RUNNING
from ensign.model.finding_kinds.race import (
    ESCAPE,
    FILLER_FAILED,
    LOAD_BOTTLENECK,
    METER_WARNING,
    NOT_COPIED,
    OVERSHOOT,
)
from ensign.model.findings import Finding
from ensign.model.quoting import visible
from ensign.model.trials import (
    Better,
    CodeSamples,
    Latency,
    Mode,
    NamedScore,
    RaceMapping,
    Score,
    SliceRecord,
    TaskActivity,
    Trial,
    VariantFailure,
    VariantTotals,
)
from ensign.model.validation import first_error

_LONGEST_NAME = 200
_AGGREGATES = ("mean", "median", "stddev", "cv", "BigO", "RMS")
_NO_NUMBER = "nothing that it printed is a number above 0"


@dataclass(frozen=True, slots=True)
class AskedScores:
    """Requirements on a variant; the race is nothing without one that is `required`."""

    score: Score | None = None
    named: tuple[NamedPattern, ...] = ()
    report: Report | None = None
    required: bool = False

    @property
    def unit(self) -> str:
        """Unit of the one score."""
        return "" if self.score is None else self.score.unit

    @property
    def better(self) -> Better:
        """Direction in which the one score gets better."""
        return Better.HIGHER if self.score is None else self.score.better

    def named_scores(
        self, found: Sequence[tuple[str, float | None]], report: str | None
    ) -> tuple[NamedScore, ...]:
        """All scores that have names, of patterns and of the report.

        CommandFailed where some are asked for and there is no value at all, or for a damaged
        report.
        """
        aggregates = _aggregates({name for name, _ in found})
        scores = [self._of_pattern(name, value) for name, value in found if name not in aggregates]
        if self.report is not None:
            scores += self.report.read(report or "")
        by_name = {score.name: score for score in scores}
        asked = bool(self.named) or self.report is not None
        if asked and all(score.value is None for score in by_name.values()):
            why = next((f"{score.name}: {score.failed}" for score in by_name.values()), "")
            raise CommandFailed(f"it says nothing of its speed: {why or 'no pattern matches'}")
        return tuple(by_name.values())

    def _of_pattern(self, name: str, value: float | None) -> NamedScore:
        own = [pattern.score for pattern in self.named if pattern.name == name]
        scores = own or [pattern.score for pattern in self.named if not pattern.name]
        score = scores[0] if scores else Score("")
        failed = _NO_NUMBER if value is None else ""
        shown = visible(name)[:_LONGEST_NAME]
        return NamedScore(shown, value, score.unit, score.better, failed)


def _aggregates(names: Collection[str]) -> set[str]:
    """Rows that sum up others, as Google Benchmark prints them below repetitions of `x`."""
    stems = [name.removesuffix("_stddev") for name in names if name.endswith("_stddev")]
    whole = [stem for stem in stems if stem in names and f"{stem}_mean" in names]
    return {f"{stem}_{kind}" for stem in whole for kind in _AGGREGATES}


NOTHING_ASKED = AskedScores()


def asked_scores(request: RaceRequest) -> dict[str, AskedScores]:
    """Requirements on each variant of a race."""
    return {
        variant.name: AskedScores(variant.score, variant.scores, variant.report, variant.required)
        for variant in request.variants
    }


Record = Mapping[str, object]

_MEASURED = ("program", "load")
_SHOWN = 40
_UNKNOWN = "operations-unknown"
WARNINGS = {
    kind.code: kind
    for kind in (
        ESCAPE,
        FILLER_FAILED,
        LEFT_RUNNING,
        LOAD_BOTTLENECK,
        NOT_COPIED,
        OVERSHOOT,
    )
}
INPUT_CODES = frozenset({"request", "not-found", "not-executable", "port-in-use"})


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def of(cls, record: Record) -> Self:
        """The record as such a line. InternalError where it lacks what that has."""
        try:
            return cls.model_validate(record)
        except ValidationError as error:
            kind = str(record.get("type"))[:_SHOWN]
            problem = f"a record '{kind}' of ensign-meter is not as expected"
            raise InternalError(f"{problem} ({first_error(error)}); run 'make setup'") from None


class StartLine(_Line):
    """Mode of the variants, and what stops them."""

    freezer: str
    mode: Mode


class SliceLine(_Line):
    """One slice of one variant."""

    variant: str
    start_ns: int
    wall_ns: int
    cpu_ns: int
    load_cpu_ns: int = 0
    filler: bool = False
    cpu_wait_ns: int | None = None


class NamedScoreLine(_Line):
    """A score by its name; without a value where that is no number above 0."""

    name: str
    value: float | None = None


class VariantLine(_Line):
    """Resources that a variant used in one execution."""

    variant: str
    wall_ns: int
    cpu_ns: int
    user_ns: int
    system_ns: int
    load_cpu_ns: int = 0
    operations: int | None = 1
    peak_memory_bytes: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    page_faults: int = 0
    slices: int = 0
    counters: dict[str, int] = {}
    latency_ns: Latency | None = None
    cpu_wait_ns: int | None = None
    activity: TaskActivity | None = None
    load_activity: TaskActivity | None = None
    score: float | None = None
    scores: tuple[NamedScoreLine, ...] = ()
    report: str | None = None
    mapped: tuple[RaceMapping, ...] = ()
    code_samples: CodeSamples | None = None


class ExecutionLine(_Line):
    """The end of an execution; without `valid` it is no trial."""

    execution: int
    wall_ns: int
    started_unix_ns: int
    running_share: float
    valid: bool
    steal_ns: int = 0


class OutcomeLine(_Line):
    """Outcome of one process, and its resources."""

    role: str
    variant: str | None = None
    exit: int | None = None
    signal: int | None = None
    reason: str = "exited"
    user_ns: int = 0
    system_ns: int = 0
    active_wall_ns: int = 0
    peak_memory_bytes: int = 0
    voluntary_switches: int = 0
    page_faults: int = 0
    stderr_tail: str = ""
    stdout_tail: str = ""
    limits_met: tuple[str, ...] = ()
    digest: str | None = None
    cpu_wait_ns: int | None = None
    activity: TaskActivity | None = None


class FailureLine(_Line):
    """Failure of a variant, while the race goes on without it."""

    variant: str
    code: str
    text: str
    exit: int | None = None
    signal: int | None = None


class DoubtLine(_Line):
    """An error, or what a warning has like one."""

    code: str
    variant: str | None = None
    text: str


class WarningLine(DoubtLine):
    """`ended` names processes that were left running."""

    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecEnd:
    """Outcome of a command that was run alone; `left_running` names what it left behind."""

    outcome: OutcomeLine | None
    error: DoubtLine | None
    left_running: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrialPlace:
    """Place of the trials of a request; rounds count up from `first_round`.

    `names` are what the user calls the variants, where that differs; `asked` are the scores that a
    variant is asked for.
    """

    workload: str
    first_round: int
    seed: int
    slice_ns: int
    names: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, AskedScores] = field(default_factory=dict)


@dataclass
class _Pending:
    variants: list[VariantTotals] = field(default_factory=list)
    slices: list[SliceRecord] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    failures: list[VariantFailure] = field(default_factory=list)
    ends: dict[str, OutcomeLine] = field(default_factory=dict)


def trials(records: Iterable[Record], place: TrialPlace) -> Iterator[Trial]:
    """One trial per valid execution, as soon as its records are complete.

    A variant that failed is not in it, but in its `failures`.

    InputError or CommandFailed where the meter reports an error, by whose fault it was; Interrupted
    where it was told to end.
    """
    start: StartLine | None = None
    pending = _Pending()
    done = 0
    for record in records:
        match record.get("type"):
            case "start":
                start = StartLine.of(record)
            case "execution":
                line = ExecutionLine.of(record)
                if start is None:
                    raise InternalError("ensign-meter reported an execution before its start")
                if line.valid:
                    yield _trial(start, line, pending, place, done)
                    done += 1
                pending = _Pending()
            case "error":
                raise error_of(record, place)
            case "end" if record.get("status") == "interrupted":
                raise Interrupted("ensign-meter was ended by a signal")
            case _:
                _take(record, pending, place)


def error_of(
    record: Record, place: TrialPlace | None = None
) -> InputError | CommandFailed | InternalError:
    """The exception that an `error` record stands for; it names workload and variant."""
    return _raised(DoubtLine.of(record), place)


def _raised(
    line: DoubtLine, place: TrialPlace | None = None
) -> InputError | CommandFailed | InternalError:
    names = {} if place is None else place.names
    workload = "" if place is None else place.workload
    variant = names.get(line.variant or "", line.variant or "")
    message = _without_variant(line.text, line.variant)
    text = ": ".join(part for part in (workload, variant, message) if part)
    if line.code in INPUT_CODES:
        return InputError(text)
    if line.code == "internal":
        return InternalError(text)
    if line.code == "storage":
        return StorageFailed(text)
    return (DeadlineMet if line.code == "deadline" else CommandFailed)(text)


def outcome_of(records: Iterable[Record]) -> OutcomeLine:
    """The outcome of an `exec` request; InputError where the command cannot be started."""
    ended = ended_of(records)
    if ended.error is not None and (ended.outcome is None or ended.error.code in INPUT_CODES):
        raise _raised(ended.error)
    if ended.outcome is None:
        raise InternalError("ensign-meter reported no outcome")
    return ended.outcome


def ended_of(records: Iterable[Record]) -> ExecEnd:
    """All that the records of an `exec` request say of its end; Interrupted where it was ended."""
    outcome: OutcomeLine | None = None
    error: DoubtLine | None = None
    left: list[str] = []
    interrupted = False
    for record in records:
        match record.get("type"):
            case "outcome":
                outcome = OutcomeLine.of(record)
            case "error":
                error = DoubtLine.of(record)
            case "warning":
                left += WarningLine.of(record).ended
            case "end":
                interrupted = record.get("status") == "interrupted"
    if interrupted and outcome is None and error is None:
        raise Interrupted("ensign-meter was ended by a signal")
    return ExecEnd(outcome, error, tuple(dict.fromkeys(left)))


def _take(record: Record, pending: _Pending, place: TrialPlace) -> None:
    match record.get("type"):
        case "slice":
            line = SliceLine.of(record)
            pending.slices.append(SliceRecord(**line.model_dump()))
        case "variant":
            _take_totals(VariantLine.of(record), pending, place)
        case "warning":
            doubt = DoubtLine.of(record)
            pending.findings.append(_finding(doubt))
        case "failure":
            failed = FailureLine.of(record)
            text = _without_variant(failed.text, failed.variant)
            pending.failures.append(VariantFailure(**{**failed.model_dump(), "text": text}))
        case "outcome" if record.get("role") in _MEASURED:
            outcome = OutcomeLine.of(record)
            # A server runs until it is ended: its load generator is what may fail.
            if outcome.reason == "exited" and outcome.variant is not None:
                pending.ends[outcome.variant] = outcome


def _take_totals(line: VariantLine, pending: _Pending, place: TrialPlace) -> None:
    """A variant whose scores cannot be read has failed, as one that says none."""
    asked = place.asked.get(line.variant, NOTHING_ASKED)
    try:
        found = [(score.name, score.value) for score in line.scores]
        scores = asked.named_scores(found, line.report)
    except CommandFailed as error:
        if asked.required:
            raise _raised(_unknown(line.variant, str(error)), place) from None
        failure = VariantFailure(line.variant, _UNKNOWN, str(error))
        pending.failures.append(failure)
        return
    pending.variants.append(replace(_totals(line, asked), scores=scores))


def _unknown(variant: str, text: str) -> DoubtLine:
    return DoubtLine(code=_UNKNOWN, variant=variant, text=text)


def _finding(doubt: DoubtLine) -> Finding:
    kind = WARNINGS.get(doubt.code)
    if kind is None:
        return METER_WARNING.found(f"{doubt.code}: {doubt.text}", doubt.variant or "")
    return kind.found(doubt.text, doubt.variant or "")


def _without_variant(text: str, variant: str | None) -> str:
    return text.removeprefix(f'variant "{variant}": ')


def _with_end(totals: VariantTotals, end: OutcomeLine | None) -> VariantTotals:
    return totals if end is None else replace(totals, exit=end.exit or 0, signal=end.signal or 0)


def _totals(line: VariantLine, asked: AskedScores) -> VariantTotals:
    if not line.operations:
        raise CommandFailed(f"{line.variant}: the load generator's number of operations is unknown")
    return VariantTotals(
        variant=line.variant,
        wall_ns=line.wall_ns,
        cpu_ns=line.cpu_ns,
        user_ns=line.user_ns,
        system_ns=line.system_ns,
        load_cpu_ns=line.load_cpu_ns,
        operations=line.operations,
        peak_memory_bytes=line.peak_memory_bytes,
        voluntary_switches=line.voluntary_switches,
        involuntary_switches=line.involuntary_switches,
        page_faults=line.page_faults,
        slices=line.slices,
        counters=tuple(sorted(line.counters.items())),
        latency=line.latency_ns,
        cpu_wait_ns=line.cpu_wait_ns,
        activity=line.activity,
        load_activity=line.load_activity,
        score=line.score,
        unit=asked.unit,
        better=asked.better,
        mapped=line.mapped,
        code_samples=line.code_samples,
    )


def _trial(
    start: StartLine, line: ExecutionLine, pending: _Pending, place: TrialPlace, done: int
) -> Trial:
    return Trial(
        workload=place.workload,
        round_index=place.first_round + done,
        seed=place.seed,
        mode=start.mode,
        freezer=start.freezer,
        slice_ns=place.slice_ns,
        started_unix_s=line.started_unix_ns / 1e9,
        wall_ns=line.wall_ns,
        running_share=line.running_share,
        variants=tuple(
            _with_end(totals, pending.ends.get(totals.variant)) for totals in pending.variants
        ),
        slices=tuple(pending.slices),
        findings=tuple(pending.findings),
        steal_ns=line.steal_ns,
        failures=tuple(
            replace(failure, workload=place.workload, round_index=place.first_round + done)
            for failure in pending.failures
        ),
    )
