"""Python writes what the meter reads and reads what it writes: both sides against one schema."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from ensign.host.processes import ProcessLimits
from ensign.meter import records
from ensign.meter.followed_files import GAPS, Followed
from ensign.meter.questions import ProbeLine, ProcessorLine
from ensign.meter.request_checks import RequestProblem
from ensign.meter.requests import (
    Containment,
    DriveLoad,
    ExecRequest,
    Load,
    NamedPattern,
    ProcessSpec,
    RaceRequest,
    Readiness,
    Report,
    Sink,
    VariantFiles,
    VariantSpec,
    exec_json,
    race_json,
)
from ensign.model.drive import Drive
from ensign.model.traced_execution import Way
from ensign.model.trials import LONGEST_SLICE_NS, SHORTEST_SLICE_NS, Better, Mode, NamedScore, Score
from meter.schema_shapes import PROTOCOL, all_keys, is_nullable, keys_of, resolved, shape

DRIVE = Drive.model_validate(
    {
        "pipeline": 4,
        "operations": 80,
        "rate_per_s": 1e4,
        "latency": True,
        "init": [["FLUSHALL"]],
        "scripts": {"add": "return 1"},
        "commands": [
            {
                "argv": ["SET", "{key}", "{data}"],
                "keys": {"pattern": "gaussian", "center": 5, "deviation": 2, "width": 9},
                "reply": ["status", "nil"],
            },
            {"transaction": [["INCR", "{key}"]], "keys": {"pattern": "zipf", "exponent": 2}},
            {"argv": ["GET", "{key}"], "keys": {}, "reply": "bulk", "value": True},
        ],
        "data": {"sizes": [1, 9], "random": True},
        "expiry_s": [5, 6],
    }
)
CONTAINED = Containment((5, 6), 7, marks=False)
CLOSED = DRIVE.model_copy(update={"rate_per_s": None})
PROGRAM = ProcessSpec(
    ("server", "{port}"),
    env=(("A", "b"),),
    cwd="/",
    root="/r",
    cpus=(0,),
    stdin="in",
    stdout="out",
    stderr="err",
    deadline_ns=10**9,
    sink=Sink.NULL,
    digest=True,
    limits=ProcessLimits(1, 2, 3, 4, 5, 6, 7),
)


def no_scores(_text: str) -> tuple[NamedScore, ...]:
    return ()


BATCH = VariantSpec(
    "batch",
    ProcessSpec(("program",)),
    prepare=(PROGRAM,),
    cleanup=(PROGRAM,),
    files=VariantFiles(("a", "b"), ("c",)),
    expected_ns=9,
    operations=3,
    operations_pattern="n=(.*)",
    score=Score("s=(.*)", "ops/s", Better.HIGHER),
    scores=(NamedPattern("t", Score("t=(.*)", "ms", Better.LOWER)),),
    report=Report("out.json", no_scores),
    reads=("d",),
    writes=("e",),
)
READY = Readiness("listens", 10**9)
FILLED = (PROGRAM, DriveLoad(CLOSED, None, 3, deadline_ns=10**12))
LOADED = VariantSpec(
    "loaded",
    PROGRAM,
    load=Load(PROGRAM, 5, "n=(.*)", ("file", "/count")),
    ready=READY,
    preload=FILLED,
)
DRIVEN = VariantSpec(
    "driven", PROGRAM, load=DriveLoad(CLOSED, 100, 3, (0,), 7, 10**9), preload=FILLED
)
WEIGHTED = DRIVE.model_copy(
    update={"data": DRIVE.data.model_validate({"weighted": [[1, 2], [3, 0]]})}
)
OPEN = VariantSpec("open", PROGRAM, load=DriveLoad(WEIGHTED, 100, 3), ready=READY)
PLAIN = VariantSpec(
    "plain", PROGRAM, DriveLoad(Drive.model_validate({"commands": [{"argv": ["PING"]}]}), 100, 3)
)
PRINTED = VariantSpec("printed", PROGRAM, report=Report(None, no_scores))


def race(mode: Mode, *variants: VariantSpec) -> RaceRequest:
    return RaceRequest(
        variants,
        mode,
        10**6,
        2,
        7,
        meter_cpus=(0,),
        scratch="/scratch",
        budget_ns=10**9,
        observe=True,
        containment=CONTAINED,
    )


DOCUMENTS: dict[str, tuple[str, Any]] = {
    "batch": ("race", race_json(race(Mode.INTERLEAVED, BATCH))),
    "printed": ("race", race_json(race(Mode.ALTERNATING, PRINTED))),
    "loaded": ("race", race_json(race(Mode.ALTERNATING, LOADED))),
    "driven": ("race", race_json(race(Mode.DRIVEN, DRIVEN))),
    "open": ("race", race_json(race(Mode.DRIVEN, OPEN, PLAIN))),
    "exec": (
        "exec",
        exec_json(ExecRequest(PROGRAM, observe=True, scratch="/scratch", containment=CONTAINED)),
    ),
}
# What the meter can be asked and Python does not ask.
UNASKED = {
    # `LocalMeter` adds both: the one says that it holds standard input open, and the other where
    # its own output goes.
    ("race", "hold"),
    ("race", "inherit_fd"),
    ("exec", "hold"),
    ("exec", "inherit_fd"),
    ("exec", "freezer"),
    # A command that is run alone names what it needs.
    ("exec.containment", "reads"),
    ("exec.containment", "writes"),
    # A preload is done as fast as can be, all connections together.
    ("race.variants.preload.drive", "at_once"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_asked_is_as_the_meter_reads_it(name: str) -> None:
    verb, document = DOCUMENTS[name]
    jsonschema.Draft202012Validator(PROTOCOL[verb]).validate(document)


def test_every_key_that_the_meter_reads_is_written_or_known_not_to_be() -> None:
    for verb in ("race", "exec"):
        schema = PROTOCOL[verb]
        known = set(all_keys(schema, schema, verb))
        written = {
            key
            for each, document in DOCUMENTS.values()
            if each == verb
            for key in keys_of(document, schema, schema, verb)
        }
        unasked = {key for key in UNASKED if key[0].split(".")[0] == verb}
        assert known - written - _of_other_data(known) == unasked


def _of_other_data(keys: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of a drive's data one kind is given; `test_the_keys_of_drives…` compares all of them."""
    return {key for key in keys if key[0].endswith("drive.data")}


def test_a_key_that_the_meter_would_ignore_is_found() -> None:
    schema = PROTOCOL["race"]
    document = {**DOCUMENTS["batch"][1], "color": "red"}
    with pytest.raises(AssertionError, match="race: color"):
        list(keys_of(document, schema, schema, "race"))


def test_the_keys_of_drives_are_those_of_the_meter_with_types_and_bounds() -> None:
    ours, theirs = Drive.model_json_schema(), PROTOCOL["drive"]
    said = shape(ours, ours)
    read = shape(theirs["$defs"]["Drive"], theirs)
    # Of the meter alone: how it drives, which is not what it sends.
    for key in ("at_once", "deadline_ns", "within_ns"):
        del read[key]
    # A study's is a number that TOML and JSON have exactly.
    assert said.pop("seed") == {"integer": {"minimum": 0, "maximum": 2**53 - 1}}
    assert read.pop("seed") == {"integer": {"minimum": 0}}
    assert said == read


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("mode", {each.value for each in Mode}),
        ("freezer", {"auto", "cgroup", "signal"}),
    ],
)
def test_words_of_requests(key: str, words: set[str]) -> None:
    schema = PROTOCOL["race"]
    assert shape(schema["properties"][key], schema) == {"words": sorted(words)}


def test_slices_have_the_same_bounds() -> None:
    schema = PROTOCOL["race"]
    bounds = {"minimum": SHORTEST_SLICE_NS, "maximum": LONGEST_SLICE_NS}
    assert shape(schema["properties"]["slice_ns"], schema) == {"integer": bounds}


def test_sinks() -> None:
    output = PROTOCOL["race"]["$defs"]["Process"]["properties"]["output"]
    assert shape(output, PROTOCOL["race"]) == {"words": sorted(each.value for each in Sink)}


def as_text(found: Any) -> Any:
    """The shape where any word is taken: a new one is then no failure."""
    if isinstance(found, dict):
        return "string" if "words" in found else {key: as_text(found[key]) for key in found}
    return found


def agrees(line: type[BaseModel], schema: Any, root: Any, ignored: AbstractSet[str]) -> None:
    """Every key is read as it is written, or known to be ignored."""
    ours = line.model_json_schema()
    assert schema["properties"].keys() - ignored == ours["properties"].keys()
    for name, field in ours["properties"].items():
        written = schema["properties"][name]
        said = shape(written, root, bounds=False)
        # Of the modes those of races are read: see below.
        if name != "mode":
            assert shape(field, ours, bounds=False) in (said, as_text(said)), name
        assert is_nullable(field, ours) or not is_nullable(written, root), name
        assert name in schema["required"] or name not in ours.get("required", ()), name


# Each line that is read, with the keys of the record that nobody here asks for.
LINES: dict[str, tuple[type[BaseModel], set[str]]] = {
    "start": (records.StartLine, {"type", "schema", "meter", "counters", "counters_scope", "pid"}),
    "slice": (records.SliceLine, {"type", "execution", "operations"}),
    "variant": (
        records.VariantLine,
        {"type", "execution", "digest", "bytes_sent", "bytes_received"},
    ),
    "execution": (records.ExecutionLine, {"type"}),
    "outcome": (
        records.OutcomeLine,
        {"type", "execution", "argv", "pid", "involuntary_switches"},
    ),
    "failure": (records.FailureLine, {"type", "execution"}),
    "warning": (records.WarningLine, {"type", "execution"}),
    "error": (records.DoubtLine, {"type", "execution"}),
}
# Nobody here runs the verb `drive`, whose record it is; of `end` the status alone is looked at.
UNREAD = {"drive", "end"}


def record_schemas() -> dict[str, Any]:
    schema = PROTOCOL["record"]
    found = [resolved(each, schema) for each in schema["oneOf"]]
    return {each["properties"]["type"]["const"]: each for each in found}


def test_every_kind_of_record_is_read_or_known_not_to_be() -> None:
    assert record_schemas().keys() - LINES.keys() == UNREAD
    assert LINES.keys() <= record_schemas().keys()


@pytest.mark.parametrize("kind", LINES)
def test_what_is_read_is_as_the_meter_writes_it(kind: str) -> None:
    line, ignored = LINES[kind]
    agrees(line, record_schemas()[kind], PROTOCOL["record"], ignored)


def test_modes_that_are_read_are_those_that_are_asked_for() -> None:
    ours = records.StartLine.model_json_schema()
    assert shape(ours["properties"]["mode"], ours) == shape(
        PROTOCOL["race"]["properties"]["mode"], PROTOCOL["race"]
    )


def test_codes_that_mean_something_are_written() -> None:
    definitions = PROTOCOL["record"]["$defs"]
    errors = shape(definitions["Code"], PROTOCOL["record"])["words"]
    assert set(errors) >= records.INPUT_CODES | {"internal", "system", "deadline"}
    warnings = shape(definitions["WarningCode"], PROTOCOL["record"])["words"]
    assert set(warnings) == set(records.WARNINGS)
    assert {"interrupted"} <= set(shape(definitions["Status"], PROTOCOL["record"])["words"])


def test_what_a_followed_program_did_is_as_the_meter_writes_it() -> None:
    schema = PROTOCOL["followed"]
    agrees(Followed, schema, schema, {"left_running", "exits"})
    assert shape(schema["$defs"]["Gap"], schema) == {"words": sorted(GAPS)}
    assert shape(schema["$defs"]["Way"], schema) == {"words": sorted(Way)}


def test_what_the_machine_can_do_is_as_the_meter_writes_it() -> None:
    ignored = {"type", "cgroup", "hierarchy", "systemd_scope", "counters_scope"}
    agrees(ProbeLine, PROTOCOL["probe"], PROTOCOL["probe"], ignored)
    agrees(ProcessorLine, PROTOCOL["processor"], PROTOCOL["processor"], {"type"})


def test_problems_are_as_the_meter_writes_them() -> None:
    ours, theirs = RequestProblem.model_json_schema(), PROTOCOL["answer"]
    said = shape(theirs["$defs"]["Problem"], theirs)
    assert {**said, "code": "string"} == shape(ours, ours)
    question = {"verb": "race", "request": DOCUMENTS["batch"][1]}
    jsonschema.Draft202012Validator(PROTOCOL["question"]).validate(question)
