"""One file of the Redis benchmarks specification, as its author wrote it. Pure."""

from __future__ import annotations

import shlex
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ensign.model.errors import InputError
from ensign.workloads.plugin import SourceFile

# The safe loader, in C where libyaml is there: five times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Scalar = str | int | float | bool


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Table):
    """A load generator: its name and its arguments in one text, or settings of another kind."""

    tool: str
    arguments: str = ""
    run_image: str = ""
    timeout: int | None = None
    resources: dict[str, Any] = {}
    scalability: dict[str, Any] = {}
    datasets: Any = None
    engine: str = ""


class Checks(_Table):
    """What the specification's own runner does around a SAVE, or a load of what was saved."""

    operation: str
    keyspacelen: int
    value_size: int
    sample_keys: list[str]


class Database(_Table):
    """The server before the test: its configuration, and what it holds."""

    parameters: dict[str, Scalar] = Field(default={}, alias="configuration-parameters")
    preload: Tool | None = Field(default=None, alias="preload_tool")
    init_commands: list[str | list[Scalar]] | str = []
    init_lua: list[str] | str = []
    dataset: str | None = None
    dataset_name: str | None = None
    dataset_description: str | None = None
    check: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    rdb_checks: Checks | None = None
    wait_for_bgsave: bool = False
    preload_before_replica: bool = False
    skip_throughput_floor: bool = False
    low_throughput: str = Field(default="", alias="low-throughput-benchmark")


class SuiteFile(BaseModel):
    """A test of the specification. Keys that say nothing about the load are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    database: Database = Field(alias="dbconfig")
    groups: list[str] = Field(alias="tested-groups")
    commands: list[str] = Field(alias="tested-commands")
    topologies: list[str] = Field(alias="redis-topologies")
    client: Tool | None = Field(default=None, alias="clientconfig")
    clients: list[Tool] = Field(default=[], alias="clientconfigs")

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every load generator that runs in the test, at the same time."""
        return tuple(self.clients) or ((self.client,) if self.client is not None else ())


def parse_suite(source: SourceFile) -> SuiteFile:
    """The test of a file. InputError, naming file and key, where it is not one."""
    try:
        content = yaml.load(source.text, _LOADER)  # noqa: S506  # the safe one
    except (yaml.YAMLError, AttributeError, ValueError) as error:  # a date or number that is none
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error)
        raise InputError(f"{source.file}{line}: not YAML: {problem}") from None
    if not isinstance(content, dict):
        raise InputError(f"{source.file}: not a test: it has no keys")
    try:
        return SuiteFile.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(step) for step in first["loc"])
        said = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        raise InputError(f"{source.file}: '{key}': {said}") from None


def init_lines(database: Database, file: str) -> list[list[str]]:
    """The commands sent once before the test, as argument lists; scripts come last.

    Texts with quotes are taken apart as a shell would, others at blanks, as the specification's
    runner does. InputError where quotes are left open.
    """
    commands = database.init_commands
    texts = [commands] if isinstance(commands, str) else commands
    lines = [_line(text, file) for text in texts]
    scripts = database.init_lua
    return [*lines, *(["EVAL", text, "0"] for text in _listed(scripts))]


def _listed(texts: list[str] | str) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _line(text: str | list[Scalar], file: str) -> list[str]:
    if isinstance(text, list):
        return [str(word) for word in text]
    try:
        return shlex.split(text) if '"' in text else text.split()
    except ValueError as error:
        raise InputError(f"{file}: 'dbconfig.init_commands': {error}: {text[:60]}") from None
