"""Requests in the meter's words (docs/reference/meter-protocol.md). Pure."""

from __future__ import annotations

from dataclasses import asdict

from ensign.meter.requests import (
    Containment,
    DriveLoad,
    ExecRequest,
    Load,
    ProcessSpec,
    RaceRequest,
    Readiness,
    VariantFiles,
    VariantSpec,
)
from ensign.model.drive import drive_json
from ensign.model.trials import Score

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
    said: Json = {}
    if variant.scores:
        said["scores"] = [
            {"name": each.name, "pattern": each.score.pattern, **_unit("unit", each.score)}
            for each in variant.scores
        ]
    if variant.report is not None and variant.report.file is None:
        said["report_output"] = True
    elif variant.report is not None:
        said["report_file"] = variant.report.file
    return said


def _unit(key: str, score: Score) -> Json:
    """The unit that its number is in, also where another one of its kind is printed."""
    return {key: score.unit} if score.unit else {}


def _files_json(files: VariantFiles) -> Json:
    return {"folders": list(files.folders), "without": list(files.without)}


def _preload_json(step: ProcessSpec | DriveLoad) -> Json:
    return {"drive": _drive(step)} if isinstance(step, DriveLoad) else process_json(step)


def _drive(load: DriveLoad) -> Json:
    said = drive_json(load.drive, operations=load.operations, seed=load.seed)
    if load.at_once is not None:
        said["at_once"] = load.at_once
    if load.deadline_ns is not None:
        said["within_ns"] = load.deadline_ns
        said["deadline_ns"] = min(load.deadline_ns, _LONGEST_REPLY_NS)
    return said


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
