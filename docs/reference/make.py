"""Makes the pages of this folder that follow from the code: `python docs/reference/make.py`.

A test fails where a committed page is not what this makes.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import EnumType
from inspect import cleandoc
from pathlib import Path

import typer

from ensign.cli.main import EXIT_STATUSES, application
from ensign.model.finding_kinds.catalog import CATALOG, Group
from ensign.model.findings import FindingKind
from ensign.model.study import study_schema
from ensign.report.formats import results_schema_text

Schema = Mapping[str, typing.Any]
Place = tuple[str, str, bool]  # a kind of table, a key in it, and whether that is a list

HERE = Path(__file__).parent
_REFERENCE = "#/$defs/"
_STUDY_FILE = """# Study file

A study is one TOML file. `ensign schema` prints the JSON Schema from which this page is made, for
editors. Unknown keys are refused, with the nearest valid one. [Axes](axes.md) says what each value
of an axis does, [Drive](drive.md) what ensign's own load generator sends."""

_RESULTS = """# Results as JSON

`ensign compare`, `run` and `report` write one [Result](#result) with `--json FILE`.
`ensign schema --results` prints the JSON Schema from which this page is made.
Ratios are cost ratios: below 1 is faster. What is infinite or unknown is null. Names that end in
`_ns` are nanoseconds, in `_s` seconds, in `_bytes` bytes."""

_FINDINGS = """\
# Findings

<!-- Made by `make reference` from src/ensign/model/finding_kinds: edit it there. -->

A finding is a doubt or a fact that travels with a result. Its code is stable, its text has the
details of the case, and its subject is the variant or the workload that it is about, if it is not
about the whole. JSON has them in `findings`: objects with `code`, `severity`, `text` and `subject`.

- **error**: what it is about cannot win, is not compared, or says nothing.
- **warning**: it weakens what may be concluded, until what it names is mended.
- **note**: good to know; it asks for nothing.

With `ensign doctor --fail-on note|warning|error` findings of at least that severity make the exit
status 1.
"""
_FINDING_COLUMNS = ("finding", "severity", "what it means", "what to do")

# The names are those of the sources, as a test sees to; what they mean is said here alone.
FOR_USERS = {
    "ENSIGN_CACHE": "the folder of sources and builds (default: in the user's cache folder)",
    "ENSIGN_RACE_LOCK": "the lock file by which one race at a time runs on a machine, for all "
    "users and all containers that share it",
    "ENSIGN_METER_PROGRAM": "the executable `ensign-meter` (default: that beside ensign, else "
    "on `PATH`)",
    "ENSIGN_RECORDER": "the settings of the [recorder](recorder.md); ensign sets it for builds",
}
USUAL = {
    "PATH": "where compilers, profilers and commands are looked for",
    "TMPDIR": "where scratch folders are made, in `ensign-UID` of mode 0700 (default: `/tmp`)",
    "XDG_CACHE_HOME": "where the user's cache folder is",
    "COLUMNS": "the width of reports in the terminal",
}
FOR_PROGRAMS = {
    "ENSIGN_METER": "the run of the meter that started the process",
    "ENSIGN_VARIANT": "the variant that the process belongs to",
    "PADDING": "of random length (0 to 4095 bytes), so that the stack begins elsewhere in "
    "each execution",
    "ENSIGN_METER_SCOPE": "set while the meter starts itself again in a control group of its own",
    "ENSIGN_RECORDED": "set below a recorded call, so that what it runs in turn is not recorded",
}


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {
        "study-file.md": study_file(),
        "results.md": results(),
        "options.md": options(),
        "exit-statuses.md": exit_statuses(),
        "environment.md": environment(),
        "findings.md": findings_page(),
    }


def study_file() -> str:
    """All tables and keys of a study, from its JSON Schema."""
    schema: Schema = study_schema()
    parents = _parents(schema)
    parts = [_STUDY_FILE, "## Top level", _keys(schema, "")]

    def add_children(parent: str, prefix: str) -> None:
        for name, ((first, key, is_list), *others) in parents.items():
            if first != parent:
                continue
            path = f"{prefix}{key}"
            table = schema["$defs"][name]
            kind = table["properties"].get("kind")
            of_kind = f" of kind `{kind['const']}`" if kind and "const" in kind else ""
            parts.append(f"## `{_header(path, is_list=is_list)}`{of_kind}")
            if others:
                where = (_elsewhere(parents, each) for each in others)
                parts.append(f"The same keys stand in {' and '.join(where)}.")
            parts.extend((cleandoc(table["description"]), _keys(table, f"{path}.")))
            add_children(name, f"{path}.")

    add_children("", "")
    return _page(parts)


def _parents(schema: Schema) -> dict[str, list[Place]]:
    """Where each kind of table stands: in which kind, under which key; the shortest way first."""
    found: dict[str, list[Place]] = {}
    waiting = [("", schema)]
    while waiting:
        parent, table = waiting.pop(0)
        for key, value in table["properties"].items():
            path = f"{key}.NAME" if "patternProperties" in value else key
            for name, is_list in _tables(value):
                if name not in found:
                    waiting.append((name, schema["$defs"][name]))
                found.setdefault(name, []).append((parent, path, is_list))
    return found


def _elsewhere(parents: Mapping[str, list[Place]], place: Place) -> str:
    parent, path, is_list = place
    while parent:
        parent, key, _ = parents[parent][0]
        path = f"{key}.{path}"
    return f"`{_header(path, is_list=is_list)}`"


def _header(path: str, *, is_list: bool) -> str:
    return f"[[{path}]]" if is_list else f"[{path}]"


def _tables(value: Schema, *, in_list: bool = False) -> Iterator[tuple[str, bool]]:
    """The kinds of tables that a key may hold, and whether it is a list of them."""
    if "$ref" in value:
        yield value["$ref"].removeprefix(_REFERENCE), in_list
    for one in _choices(value):
        yield from _tables(one, in_list=in_list)
    if "items" in value:
        yield from _tables(value["items"], in_list=True)
    for named in value.get("patternProperties", {}).values():
        yield from _tables(named)


def _choices(value: Schema) -> list[Schema]:
    choices = (*value.get("anyOf", ()), *value.get("oneOf", ()))
    return [one for one in choices if one.get("type") != "null"]


def _keys(table: Schema, prefix: str) -> str:
    required = table.get("required", ())
    rows = (
        (
            f"`{key}`",
            _type(value, f"{prefix}{key}"),
            "required" if key in required else _default(value),
            value["description"],
        )
        for key, value in table["properties"].items()
    )
    return _table(("key", "type", "default", "meaning"), rows)


def _default(value: Schema) -> str:
    default = value.get("default")
    if default is None or any(_tables(value)):
        return ""
    return f"`{json.dumps(default)}`"  # of these values TOML writes all as JSON does


def _type(value: Schema, path: str, *, in_list: bool = False) -> str:
    """The type in words; a table is its header."""
    if "$ref" in value:
        return f"table `{_header(path, is_list=in_list)}`"
    if choices := _choices(value):
        beside = {key: value[key] for key in ("examples",) if key in value}
        types = (_type({**beside, **one}, path, in_list=in_list) for one in choices)
        return " or ".join(dict.fromkeys(types))
    if "const" in value or "enum" in value:
        words = value.get("enum") or [value["const"]]
        return " or ".join(f"`{json.dumps(word)}`" for word in words)
    if value["type"] == "array":
        return _list_type(value, path)
    if value["type"] == "object":
        return "table of names and texts"
    such = " or ".join(f"`{json.dumps(one)}`" for one in value.get("examples", ()))
    return f"{value['type']}{_bounds(value)}{such and f' such as {such}'}"


def _list_type(value: Schema, path: str) -> str:
    if "prefixItems" in value:
        return f"list of {len(value['prefixItems'])} {value['prefixItems'][0]['type']}s"
    one = _type(value["items"], path, in_list=True)
    if one.startswith("table"):
        return one
    plural = re.sub(r"\b(list|string)\b", r"\1s", one, count=1)
    return f"list of {plural}"


def _bounds(value: Schema) -> str:
    least, most = value.get("minimum"), value.get("maximum")
    above, below = value.get("exclusiveMinimum"), value.get("exclusiveMaximum")
    words = (
        (least, "at least"),
        (above, "above"),
        (most, "at most"),
        (below, "below"),
    )
    said = ", ".join(f"{word} {number}" for number, word in words if number is not None)
    return said and f", {said}"


def results() -> str:
    """All keys of the results as JSON, from their schema."""
    schema: Schema = json.loads(results_schema_text())
    parts = [_RESULTS]
    for name, table in schema["$defs"].items():
        rows = _result_rows(table, "")
        parts += [f"## {name}", table["description"], _table(("key", "type", "meaning"), rows)]
    return _page(parts)


def _result_rows(table: Schema, prefix: str) -> Iterator[tuple[str, ...]]:
    for key, value in table["properties"].items():
        absent = "" if key in table.get("required", ()) else " (may be absent)"
        yield f"`{prefix}{key}`", _result_type(value), f"{value['description']}{absent}"
        if "properties" in value:
            yield from _result_rows(value, f"{prefix}{key}.")


def _result_type(value: Schema) -> str:
    if "$ref" in value:
        name = value["$ref"].removeprefix(_REFERENCE)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(map(_result_type, value["anyOf"]))
    if "enum" in value:
        return " or ".join(f"`{json.dumps(word)}`" for word in value["enum"])
    if value["type"] == "array":
        return f"list of {_result_type(value['items'])}"
    if isinstance(value.get("additionalProperties"), dict):
        return f"object of {_result_type(value['additionalProperties'])}"
    kinds = value["type"]
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def options() -> str:
    """All commands with their arguments and options, from the command line itself."""
    parts = ["# Command line", "`ensign COMMAND --help` says the same in the terminal."]
    for name, command in _commands().items():
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        given = [each for each in command.params if each.param_type_name == "option"]
        words = ("ensign", name, *(["[OPTIONS]"] if given else ()), *map(_argument, arguments))
        parts += [f"## ensign {name}", f"```text\n{' '.join(words)}\n```", _help(command)]
        if arguments:
            rows = ((f"`{_argument(each)}`", each.help) for each in arguments)
            parts.append(_table(("argument", "meaning"), rows))
        if given:
            lines = ((_names(each), _value(each), _given(each), each.help) for each in given)
            parts.append(_table(("option", "value", "default", "meaning"), lines))
    return _page(parts)


def _commands() -> Mapping[str, typing.Any]:
    group: typing.Any = typer.main.get_command(application())
    commands: Mapping[str, typing.Any] = group.commands
    return commands


def _help(command: typing.Any) -> str:
    return cleandoc(command.help or "")


def _argument(argument: typing.Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return f"{name}..." if argument.nargs == -1 else name


def _names(option: typing.Any) -> str:
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _value(option: typing.Any) -> str:
    kind: typing.Any = option.type_descriptor.annotation
    words = list(kind) if isinstance(kind, EnumType) else typing.get_args(kind)
    if option.is_flag or option.metavar:
        return str(option.metavar or "")
    if option.multiple:
        return "text, repeatable"
    if words:
        return " or ".join(f"`{word}`" for word in words)
    return {int: "integer", float: "number", Path: "file"}.get(kind, "text")


def _given(option: typing.Any) -> str:
    if option.secondary_opts and option.default:
        return f"`{option.opts[0]}`"
    absent = option.default is None or option.is_flag or option.default == ""
    return "" if absent else f"`{option.default}`"


def exit_statuses() -> str:
    """What the statuses mean, in general and of each command that says more."""
    said = (
        (f"`ensign {name}`", match[1])
        for name, command in _commands().items()
        if (match := re.search(r"Exit status: (.*?)\.?\Z", _help(command), re.DOTALL))
    )
    return _page(
        [
            "# Exit statuses",
            _table(
                ("status", "meaning"), ((str(key), EXIT_STATUSES[key]) for key in EXIT_STATUSES)
            ),
            "`ensign-meter` has the same, but for 1: see [its protocol](meter-protocol.md).",
            "## By command",
            "Commands that are not listed end with 0, 2, 4 or 5.",
            _table(("command", "statuses"), said),
        ]
    )


def environment() -> str:
    """Variables that are read, and those that programs under test find."""
    return _page(
        [
            "# Environment variables",
            "## Read by ensign",
            _variables({**FOR_USERS, **USUAL}),
            "## Set by ensign",
            "Programs under test find these in their environment. They are no settings.",
            _variables(FOR_PROGRAMS),
            "Builds inherit `PATH` alone; the [study file](study-file.md) adds `build.env`.",
        ]
    )


def _variables(meanings: Mapping[str, str]) -> str:
    return _table(("variable", "meaning"), ((f"`{name}`", meanings[name]) for name in meanings))


def findings_page() -> str:
    """Markdown with a table for each group."""
    return "\n".join([_FINDINGS, *(line for group in CATALOG for line in _group(group))])


def _group(group: Group) -> Iterator[str]:
    yield f"## {group.title}\n"
    yield f"{group.about}\n"
    yield _row(_FINDING_COLUMNS)
    yield _row("---" for _ in _FINDING_COLUMNS)
    by_code: dict[str, list[FindingKind]] = {}
    for kind in group.kinds:
        by_code.setdefault(kind.code, []).append(kind)
    for code, kinds in by_code.items():
        yield _row((f"`{code}`", _severities(kinds), kinds[0].meaning, kinds[0].remedy))
    yield ""


def _severities(kinds: Iterable[FindingKind]) -> str:
    return "<br>".join(
        f"{each.severity}: {each.when}" if each.when else each.severity for each in kinds
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    """In one line, without what would be taken for HTML or for the end of the cell."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Writes all pages beside this file."""
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
