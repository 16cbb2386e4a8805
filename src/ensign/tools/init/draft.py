"""The text of a first study, with comments that teach. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ensign.model.quoting import visible

_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.+-]+")


@dataclass(frozen=True, slots=True)
class DraftWorkload:
    """A command as a study has it; `comment` says what was seen of it."""

    name: str
    command: tuple[str, ...]
    input: str = ""
    comment: str = ""
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """Content of a first study. `keys` are those of [build] besides `system` and `artifact`."""

    name: str
    system: str
    artifact: str
    compilers: tuple[str, ...]
    keys: Mapping[str, object] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    runtime_files: tuple[str, ...] = ()
    workload: DraftWorkload | None = None
    notes: tuple[str, ...] = ()
    budget: str = "20s"


def study_name(text: str) -> str:
    """A name as studies may have one, like a text."""
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-.+_") or "program"


def draft_text(draft: Draft, file: str) -> str:
    """The study file."""
    return "\n".join(
        [
            *_head(draft, file),
            *_source(draft),
            *_build(draft),
            *(_rust_axes() if draft.system == "cargo" else _axes(draft.compilers)),
            *_workload(draft.workload),
            *_race(draft.budget),
            "",
        ]
    )


def _race(budget: str) -> Iterator[str]:
    yield "[race]"
    yield "# Racing time for all of it; builds are not counted. More time gives narrower intervals."
    yield f"budget = {_value(budget)}"
    yield "# A smaller difference does not matter to you."
    yield 'margin = "1%"'


def _head(draft: Draft, file: str) -> Iterator[str]:
    yield f"# Which compiler and flags make {draft.name} fastest? Written by 'ensign init'."
    yield f"#   ensign plan {file}    what it will do, and how long that takes"
    yield f"#   ensign run {file}     build, check, race, say which is fastest"
    for note in draft.notes:
        yield _comment(note)
    yield ""
    yield f"name = {_value(draft.name)}"
    yield ""


def _source(draft: Draft) -> Iterator[str]:
    yield "# This folder. Each variant is built from a copy of it; nothing here is changed."
    yield "[source]"
    yield 'kind = "path"'
    yield 'path = "."'
    if draft.exclude:
        yield f"exclude = {_value(draft.exclude)}"
    yield ""


def _build(draft: Draft) -> Iterator[str]:
    yield "[build]"
    yield f"system = {_value(draft.system)}"
    for key, value in draft.keys.items():
        yield f"{key} = {_value(value)}"
    yield "# The program that is raced; libraries of the same build that it loads belong to it."
    yield f"artifact = {_value(draft.artifact)}"
    if draft.runtime_files:
        yield "# More files of the build that it needs when it runs."
        yield f"runtime_files = {_value(draft.runtime_files)}"
    yield ""


def _axes(compilers: Sequence[str]) -> Iterator[str]:
    yield "# What is varied: the baseline, and each change of it alone; without 'combine' every"
    yield "# combination. More axes: pgo, bolt, target, … (docs/reference/axes.md)"
    yield "[axes]"
    yield 'combine = "one-at-a-time"'
    yield f"compiler = {_value(compilers)}"
    yield 'optimization = ["-O2", "-O3"]'
    yield 'lto = ["off", "full"]'
    yield from _alignment()
    yield ""
    yield "# What all others are compared with."
    yield "[baseline]"
    yield f"compiler = {_value(compilers[0])}"
    yield 'optimization = "-O2"'
    yield 'lto = "off"'
    yield ""


def _alignment() -> Iterator[str]:
    yield "# Aligned code is less at the mercy of where it lies; 'ensign run' says when to try it:"
    yield '# alignment = ["default", "loops"]'


def _rust_axes() -> Iterator[str]:
    yield "# What is varied: the baseline, and each change of it alone; without 'combine' every"
    yield "# combination. More axes: pgo, bolt, target, panic, … (docs/reference/axes.md)"
    yield "[axes]"
    yield 'combine = "one-at-a-time"'
    yield 'compiler = ["rustc"]'
    yield 'optimization = ["-O3", "-O2"]'
    yield 'lto = ["off", "full"]'
    yield "codegen_units = [16, 1]"
    yield from _alignment()
    yield ""
    yield "# What all others are compared with: Cargo's own release profile."
    yield "[baseline]"
    yield 'compiler = "rustc"'
    yield 'optimization = "-O3"'
    yield 'lto = "off"'
    yield "codegen_units = 16"
    yield ""


def _workload(workload: DraftWorkload | None) -> Iterator[str]:
    if workload is None:
        return
    yield "# What is run; {artifact} is the variant's program. Put your own work here:"
    yield "# a result holds for what was run, and for nothing else."
    if workload.comment:
        yield _comment(workload.comment)
    yield "[[workloads]]"
    yield f"name = {_value(workload.name)}"
    yield f"command = {_value(workload.command)}"
    if workload.input:
        yield f"input = {_value(workload.input)}"
    if workload.env:
        pairs = ", ".join(f"{_value(name)} = {_value(value)}" for name, value in workload.env)
        yield f"env = {{ {pairs} }}"
    yield ""


def _comment(text: str) -> str:
    """In one line, whatever it has."""
    return f"# {visible(text)}"


def _value(value: object) -> str:
    """As TOML writes it. Its strings are JSON's, but for what JSON need not escape."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)
