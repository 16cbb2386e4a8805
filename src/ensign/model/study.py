"""A study as its author writes it: the shape of a study file, checked from a parsed mapping. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ensign.model.errors import InputError
from ensign.model.units import parse_duration_ns, parse_share, parse_size_bytes


def _checked(parse: object) -> AfterValidator:
    def check(text: str) -> str:
        try:
            parse(text)  # type: ignore[operator]
        except InputError as error:
            raise ValueError(str(error)) from None
        return text

    return AfterValidator(check)


Duration = Annotated[str, _checked(parse_duration_ns)]
Share = Annotated[str, _checked(parse_share)]
SizeText = Annotated[str, _checked(parse_size_bytes)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.+-]*$", max_length=60)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Argv = Annotated[list[str], Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DebianSource(_Section):
    """A Debian source package, pinned by the checksum of its upstream (`orig`) archive."""

    kind: Literal["debian"]
    package: str
    version: str = Field(description="upstream version; any Debian revision that carries it")
    sha256: Sha256 = Field(description="of the orig archive")
    patches: bool = Field(default=False, description="apply Debian's patches")


class PathSource(_Section):
    """A folder of this machine; its content is hashed, it is copied before it is built."""

    kind: Literal["path"]
    path: str = Field(description="relative to the study file")
    exclude: list[str] = Field(default_factory=list, description="glob patterns left out")


class GitSource(_Section):
    """A git repository at a commit."""

    kind: Literal["git"]
    url: str
    commit: str = Field(description="commit, tag or branch; the lock file pins the commit")


class ArchiveSource(_Section):
    """An archive by address or path, pinned by its checksum."""

    kind: Literal["archive"]
    url: str = Field(description="https address, file address, or a path relative to the study")
    sha256: Sha256
    strip: int = Field(default=1, ge=0, description="leading path components to drop")


Source = Annotated[
    DebianSource | PathSource | GitSource | ArchiveSource, Field(discriminator="kind")
]


class Build(_Section):
    """How a variant is built. Commands are argument lists, run in the source folder.

    Placeholders: `{cc}` `{cxx}` `{ar}` `{ranlib}` `{nm}` `{ld}` (the variant's toolchain),
    `{cflags}` `{ldflags}` (one argument each, flags joined by blanks), `{jobs}`.
    `dependencies` sees the toolchain but not the variant's flags: it is run once per compiler.
    `tool_commands` is run after `commands` for the baseline alone, and makes `tools`.
    """

    dependencies: list[Argv] = Field(default_factory=list)
    commands: list[Argv] = Field(min_length=1)
    tool_commands: list[Argv] = Field(
        default_factory=list, description="run for the baseline alone, to build its tools"
    )
    artefact: str = Field(description="the program, relative to the source folder")
    tools: dict[Name, str] = Field(
        default_factory=dict,
        description="other programs of the baseline's build, usable as {NAME} in workloads",
    )
    keep: list[str] = Field(
        default_factory=list, description="more files that the program needs when it runs (globs)"
    )
    env: dict[str, str] = Field(default_factory=dict)
    deadline: Duration = "30m"
    disk: SizeText = "4GiB"


class Axes(_Section):
    """What is varied; every combination is a variant unless excluded."""

    compiler: list[str] = Field(min_length=1, description="programs, such as gcc-12 or clang-19")
    optimization: list[str] = Field(default_factory=lambda: ["-O2"], min_length=1)
    lto: list[Literal["off", "full"]] = Field(default_factory=lambda: ["off"], min_length=1)
    flags: list[str] = Field(default_factory=lambda: [""], min_length=1)


class Choice(_Section):
    """One value per axis named; an axis left out matches any value (in rules)."""

    compiler: str | None = None
    optimization: str | None = None
    lto: Literal["off", "full"] | None = None
    flags: str | None = None


class Ready(_Section):
    """When a server is ready: it listens on its port, or it printed `output` (a pattern)."""

    output: str | None = None
    deadline: Duration = "20s"


class Server(_Section):
    """The program under test as a server; `{artefact}` is the variant's program.

    Further placeholders: `{port}` `{tmp}` `{arm}` and the names in `build.tools`.
    """

    command: Argv
    ready: Ready = Ready()
    env: dict[str, str] = Field(default_factory=dict)


class Cpus(_Section):
    """Which CPUs do what; sensible defaults come from the machine."""

    server: list[int] | None = Field(default=None, min_length=1)
    load: list[int] | None = Field(default=None, min_length=1)


class Workload(_Section):
    """One test. With a server: `load` is the generator; without: `command` is the program's run.

    `{requests}` in `load` is replaced by the number of requests, which is chosen from a pilot so
    that one execution takes its share of the budget, unless `requests` fixes it. `rounding` makes
    it a multiple of that.
    """

    name: Name
    load: Argv | None = None
    command: Argv | None = None
    preload: list[Argv] = Field(default_factory=list)
    requests: int | None = Field(default=None, gt=0)
    rounding: int = Field(default=1000, gt=0)
    input: str | None = None
    deadline: Duration = "60s"

    @model_validator(mode="after")
    def _one_of_load_and_command(self) -> Workload:
        if (self.load is None) == (self.command is None):
            raise ValueError(f"workload '{self.name}' needs exactly one of 'load' and 'command'")
        return self


class Race(_Section):
    """How it is measured. `budget` is racing time; sweeps are fixed before the first one."""

    margin: Share | None = "1%"
    budget: Duration = "5m"
    sweeps: int = Field(default=8, ge=3, le=1000)
    slice: Duration = "5ms"
    mode: Literal["gated", "whole"] = "gated"
    metric: Literal["cpu", "wall"] = "cpu"
    level: Literal[0.9, 0.95, 0.975, 0.99] = 0.95
    seed: int = 1
    ports: tuple[int, int] = (20_000, 29_999)


class Study(_Section):
    """A whole study file."""

    name: Name
    title: str = ""
    question: str = ""
    source: Source
    build: Build
    axes: Axes
    exclude: list[Choice] = Field(default_factory=list)
    include: list[Choice] = Field(default_factory=list)
    baseline: Choice
    server: Server | None = None
    cpus: Cpus = Cpus()
    race: Race = Race()
    workloads: list[Workload] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        names = [workload.name for workload in self.workloads]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two workloads are called '{name}'")
        for workload in self.workloads:
            if workload.load is not None and self.server is None:
                raise ValueError(f"workload '{workload.name}' has a load but there is no [server]")
        return self
