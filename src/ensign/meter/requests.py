"""Requests to `ensign-meter`; the written form is in docs/reference/meter-protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from ensign.host.processes import ProcessLimits
from ensign.model.drive import Drive, drive_json
from ensign.model.trials import Mode, NamedScore, Score


class Sink(StrEnum):
    """Sink of standard output that has no file.

    Into a pipe that is drained, to /dev/null (which programs can tell from others), or where
    ensign's own goes.
    """

    PIPE = "pipe"
    NULL = "null"
    INHERIT = "inherit"


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process. `env` is added to (or, with `clear_env`, replaces) the meter's environment.

    `stdin`, `stdout`, `stderr` are paths; None is /dev/null for input and the `sink` for output,
    and the tail of standard error is kept for messages. `argv`, `env`, `cwd` and the paths may hold
    `{variant}`, `{port}` and `{tmp}`. A deadline counts the time in which the process was allowed
    to run. With `digest` all that it writes into a pipe is hashed. In a `root` directory it sees
    that one's files instead of the machine's.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    clear_env: bool = False
    cwd: str | None = None
    cpus: tuple[int, ...] | None = None
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    deadline_ns: int | None = None
    ignore_failure: bool = False
    sink: Sink = Sink.PIPE
    digest: bool = False
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Containment:
    """Settings for all processes of a run.

    They run as `user` (its number and its group's), without any privilege; None is as ensign.
    Each variant may write `tmp_bytes` below its `{tmp}`; None does not limit it. With `marks` they
    get variables that name the run and the variant.
    """

    user: tuple[int, int] | None = None
    tmp_bytes: int | None = None
    marks: bool = True


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """One command run alone. `observe` looks at what its tasks do.

    Without `keep_output` its standard output flows away as in a race. `scratch` is where the
    meter's own files go.
    """

    process: ProcessSpec
    observe: bool = False
    keep_output: bool = True
    scratch: str | None = None
    containment: Containment = Containment()


@dataclass(frozen=True, slots=True)
class Readiness:
    """Sign that a server is ready: it listens on its port, or `output` was printed."""

    output: str | None
    deadline_ns: int


@dataclass(frozen=True, slots=True)
class Load:
    """A load generator and how its completed operations are known.

    That is a count, a pattern of what it prints, or file and JSON pointer of what it writes.
    """

    process: ProcessSpec
    operations: int | None
    operations_pattern: str | None = None
    operations_json: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DriveLoad:
    """Requests of the meter's own load generator, how often, and with which seed.

    `at_once` of the connections send in one slice, by turns; None: all of them. What is not done
    after `deadline_ns` hangs; None: after an hour, or ten seconds without a reply.
    """

    drive: Drive
    operations: int | None
    seed: int
    cpus: tuple[int, ...] | None = None
    at_once: int | None = None
    deadline_ns: int | None = None


@dataclass(frozen=True, slots=True)
class NamedPattern:
    """Pattern of one of several scores; it may say names itself, by a group `name`."""

    name: str
    score: Score


@dataclass(frozen=True, slots=True)
class Report:
    """A text that a run leaves with its scores, and who reads it.

    `file` is what it writes, None what it prints. `read` raises EnsignError for a damaged text.
    """

    file: str | None
    read: Callable[[str], tuple[NamedScore, ...]]


@dataclass(frozen=True, slots=True)
class VariantFiles:
    """Folders of which a variant gets a copy, later ones over earlier ones, as `{files}`.

    `without` are relative names that are left out.
    """

    folders: tuple[str, ...]
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """A batch program (`load` is None), or a server with its load.

    `prepare` runs unmeasured before each execution of the variant and `cleanup` after it; `preload`
    runs when the server is ready. `copy_program` gives the variant its own copy of the executable.
    `files` gives it a copy of all that it runs with, and that copy's path for `{files}`.
    `ask_to_stop` ends a server by SIGTERM, and kills it only if it goes on for two seconds more. A
    variant that `fills` runs again, uncounted, while others are not done, and is cut off then. The
    failure of a variant that is `required` ends the race, that of another one the variant alone.
    `operations` (or a pattern in what it prints) are those of one run of a batch program.
    `reads` and `writes` are files and folders that it needs, besides those that are named here,
    where it is confined.
    """

    name: str
    program: ProcessSpec
    load: Load | DriveLoad | None = None
    ready: Readiness | None = None
    preload: tuple[ProcessSpec | DriveLoad, ...] = ()
    prepare: tuple[ProcessSpec, ...] = ()
    cleanup: tuple[ProcessSpec, ...] = ()
    copy_program: bool = True
    files: VariantFiles | None = None
    ask_to_stop: bool = True
    expected_ns: int | None = None
    fills: bool = True
    required: bool = False
    operations: int | None = None
    operations_pattern: str | None = None
    score: Score | None = None
    scores: tuple[NamedPattern, ...] = ()
    report: Report | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RaceRequest:
    """Executions of one race. `budget_ns` starts no execution later than that after the first.

    `apart`, in mode alternating: no two servers are there at once.
    `observe` looks at what tasks do; `code_samples` asks where they stand at the ends of slices.
    """

    variants: tuple[VariantSpec, ...]
    mode: Mode
    slice_ns: int
    executions: int
    seed: int
    freezer: str = "auto"
    meter_cpus: tuple[int, ...] | None = None
    ports: tuple[int, int] = (20_000, 29_999)
    scratch: str | None = None
    env_padding: bool = True
    apart: bool = False
    budget_ns: int | None = None
    counters: tuple[str, ...] = ("instructions", "cycles")
    observe: bool = False
    code_samples: bool = False
    containment: Containment = Containment()

    def without(self, variants: Collection[str]) -> RaceRequest:
        """The same race without these variants."""
        left = tuple(variant for variant in self.variants if variant.name not in variants)
        return replace(self, variants=left)


Json = dict[str, object]

SCHEMA = 1
_LONGEST_REPLY_NS = 10 * 10**9


def race_json(request: RaceRequest) -> Json:
    """The object that `ensign-meter race` reads."""
    return {
        "schema": SCHEMA,
        "mode": request.mode.value,
        "slice_ns": request.slice_ns,
        "executions": request.executions,
        "seed": request.seed,
        "freezer": request.freezer,
        "meter_cpus": _list(request.meter_cpus),
        "ports": list(request.ports),
        "scratch": request.scratch,
        "env_padding": request.env_padding,
        "apart": request.apart,
        "budget_ns": request.budget_ns,
        "counters": list(request.counters),
        "observe": request.observe,
        "code_samples": request.code_samples,
        "containment": {
            **_containment_json(request.containment),
            "reads": [path for variant in request.variants for path in variant.reads],
            "writes": [path for variant in request.variants for path in variant.writes],
        },
        "variants": [_variant_json(variant) for variant in request.variants],
    }


def process_json(process: ProcessSpec) -> Json:
    """One process, as it stands in a request."""
    return {
        "argv": list(process.argv),
        "env": dict(process.env),
        "clear_env": process.clear_env,
        "cwd": process.cwd,
        **({} if process.root is None else {"root": process.root}),
        "cpus": _list(process.cpus),
        "stdin": process.stdin,
        "stdout": process.stdout,
        "stderr": process.stderr,
        "deadline_ns": process.deadline_ns,
        "ignore_failure": process.ignore_failure,
        "output": process.sink.value,
        "digest": process.digest,
        "limits": {name: most for name, most in asdict(process.limits).items() if most is not None},
    }


def exec_json(request: ExecRequest) -> Json:
    """The object that `ensign-meter exec` reads."""
    return {
        "schema": SCHEMA,
        "process": process_json(request.process),
        "observe": request.observe,
        "keep_output": request.keep_output,
        "scratch": request.scratch,
        "containment": _containment_json(request.containment),
    }


def _containment_json(asked: Containment) -> Json:
    user = None if asked.user is None else {"uid": asked.user[0], "gid": asked.user[1]}
    return {"user": user, "tmp_bytes": asked.tmp_bytes, "marks": asked.marks}


def _variant_json(variant: VariantSpec) -> Json:
    return {
        "name": variant.name,
        "program": process_json(variant.program),
        "load": None if variant.load is None else _load_json(variant.load),
        "ready": None if variant.ready is None else _ready_json(variant.ready),
        "preload": [_preload_json(step) for step in variant.preload],
        "prepare": [process_json(process) for process in variant.prepare],
        "cleanup": [process_json(process) for process in variant.cleanup],
        **({} if variant.files is None else {"files": _files_json(variant.files)}),
        "copy_program": variant.copy_program,
        "ask_to_stop": variant.ask_to_stop,
        "expected_ns": variant.expected_ns,
        "operations": variant.operations,
        "operations_pattern": variant.operations_pattern,
        "score_pattern": None if variant.score is None else variant.score.pattern,
        **({} if variant.score is None else _unit("score_unit", variant.score)),
        **_several_scores(variant),
        "fills": variant.fills,
        "required": variant.required,
    }


def _several_scores(variant: VariantSpec) -> Json:
    document: Json = {}
    if variant.scores:
        document["scores"] = [
            {"name": score.name, "pattern": score.score.pattern, **_unit("unit", score.score)}
            for score in variant.scores
        ]
    if variant.report is not None and variant.report.file is None:
        document["report_output"] = True
    elif variant.report is not None:
        document["report_file"] = variant.report.file
    return document


def _unit(key: str, score: Score) -> Json:
    """The unit that its number is in, also where another one of its kind is printed."""
    return {key: score.unit} if score.unit else {}


def _files_json(files: VariantFiles) -> Json:
    return {"folders": list(files.folders), "without": list(files.without)}


def _preload_json(step: ProcessSpec | DriveLoad) -> Json:
    return {"drive": _drive(step)} if isinstance(step, DriveLoad) else process_json(step)


def _drive(load: DriveLoad) -> Json:
    document = drive_json(load.drive, operations=load.operations, seed=load.seed)
    if load.at_once is not None:
        document["at_once"] = load.at_once
    if load.deadline_ns is not None:
        document["within_ns"] = load.deadline_ns
        document["deadline_ns"] = min(load.deadline_ns, _LONGEST_REPLY_NS)
    return document


def _load_json(load: Load | DriveLoad) -> Json:
    if isinstance(load, DriveLoad):
        return {"drive": _drive(load), "cpus": _list(load.cpus)}
    return {
        "process": process_json(load.process),
        "operations": load.operations,
        "operations_pattern": load.operations_pattern,
        **_json_count(load),
    }


def _json_count(load: Load) -> Json:
    if load.operations_json is None:
        return {}
    file, pointer = load.operations_json
    return {"operations_json": {"file": file, "pointer": pointer}}


def _ready_json(ready: Readiness) -> Json:
    return {"output": ready.output, "deadline_ns": ready.deadline_ns}


def _list(cpus: tuple[int, ...] | None) -> list[int] | None:
    return None if cpus is None else list(cpus)
