"""A study as its author writes it: the shape of a study file. Pure.

Rules that compare several keys are in `study_rules`; the words for errors in `study_problems`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from ensign.model.drive import Drive
from ensign.model.placeholders import names_in, shown
from ensign.model.study_axes import Axes, Choice, Layouts, Section
from ensign.model.study_suite import Suite, Tests
from ensign.model.study_values import (
    AllocatorWords,
    Argv,
    CpuList,
    Duration,
    GroupSize,
    Inside,
    Level,
    Name,
    OptionalShare,
    Pattern,
    PortRange,
    Reference,
    Sha256,
    Share,
    SizeText,
    SliceText,
)
from ensign.model.trials import Metric, Mode
from ensign.model.units import parse_duration_ns

# A run this much of the budget cannot be raced by three variants in three rounds.
_FEWEST_RUNS = 9
_SECOND_NS = 10**9


class _Origin(Section):
    """What all sources have."""

    apply: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="the study's own patches (patch -p1), relative to the study file",
    )


class DebianSource(_Origin):
    """A Debian source package, pinned by the checksum of its upstream (`orig`) archive."""

    kind: Literal["debian"] = Field(description="a Debian source package")
    package: Reference = Field(description="name of the source package")
    version: str = Field(description="upstream version; any Debian revision that carries it")
    sha256: Sha256 = Field(description="of the orig archive")
    patches: bool = Field(default=False, description="apply Debian's patches")


class PathSource(_Origin):
    """A folder of this machine; its content is hashed, it is copied before it is built.

    Of a git work tree the files that git ignores are left out: they are what was built there.
    """

    kind: Literal["path"] = Field(description="a folder of this machine")
    path: str = Field(min_length=1, description="relative to the study file")
    exclude: list[str] = Field(default_factory=list, description="glob patterns left out")
    ignored: bool = Field(
        default=False, description="take files, too, that git ignores; else they stay behind"
    )


class GitSource(_Origin):
    """A git repository at a commit."""

    kind: Literal["git"] = Field(description="a git repository")
    url: Reference = Field(description="address or path of the repository")
    commit: Reference = Field(description="commit, tag or branch; the lock file pins the commit")


class ArchiveSource(_Origin):
    """An archive by address or path, pinned by its checksum."""

    kind: Literal["archive"] = Field(description="an archive")
    url: Reference = Field(
        description="https address, file address, or a path relative to the study"
    )
    sha256: Sha256 = Field(description="of the archive")
    strip: int = Field(default=1, ge=0, description="leading path components to drop")


Source = Annotated[
    DebianSource | PathSource | GitSource | ArchiveSource, Field(discriminator="kind")
]


class Rewrite(Section):
    """What the recorder changes in calls, for projects that do not listen to their variables.

    `{cflags}` and `{ldflags}` stand for the variant's flags. `compile` is added at the end of
    calls that compile, `link` of calls that link; `remove` drops flags that match a glob pattern.
    """

    compile: list[str] = Field(default_factory=list, description="flags added when compiling")
    link: list[str] = Field(default_factory=list, description="flags added when linking")
    remove: list[str] = Field(default_factory=list, description="flags dropped (glob patterns)")


class Build(Section):
    """How a variant is built. Commands are argument lists, run in the source folder.

    Placeholders: `{cc}` `{cxx}` `{ar}` `{ranlib}` `{nm}` `{ld}` (the variant's toolchain),
    `{cflags}` `{ldflags}` (one argument each, flags joined by blanks), `{allocator}`, `{jobs}`.
    `dependencies` sees the toolchain and is run once per compiler. Its `{dependency_cflags}` and
    `{dependency_ldflags}` are empty, but for variants whose `dependencies` are `flags`.
    `tool_commands` is run after `commands` for the baseline alone, and makes `tools`.
    """

    clean: list[Argv] = Field(
        default_factory=list,
        description="commands run before all others, to remove what was built in the tree earlier",
    )
    prebuilt: list[Inside] = Field(
        default_factory=list,
        description="objects and libraries of the source that are linked as they are (globs)",
    )
    own_flags: list[Inside] = Field(
        default_factory=list,
        description="sources that the project compiles with flags of its own, on purpose (globs)",
    )
    dependencies: list[Argv] = Field(
        default_factory=list, description="commands run once per compiler, without {cflags}"
    )
    commands: list[Argv] = Field(min_length=1, description="commands run for each variant")
    tool_commands: list[Argv] = Field(
        default_factory=list, description="run for the baseline alone, to build its tools"
    )
    artifact: Inside = Field(description="the program, relative to the source folder")
    tools: dict[Name, Inside] = Field(
        default_factory=dict,
        description="other programs of the baseline's build, usable as {NAME} in workloads",
    )
    allocators: AllocatorWords = Field(
        default_factory=dict, description="the project's own words for allocators: {allocator}"
    )
    rewrite: Rewrite = Field(
        default=Rewrite(), description="changes to recorded compiler and linker calls"
    )
    runtime_files: list[Inside] = Field(
        default_factory=list, description="more files that the program needs when it runs (globs)"
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="environment of all build commands, without {cflags}"
    )
    deadline: Duration = Field(default="30m", description="for one variant's build")
    disk: SizeText = Field(default="4GiB", description="most that one build may write")


class Ready(Section):
    """When a server is ready: it listens on its port, or it printed `output` (a pattern)."""

    output: str | None = Field(
        default=None, description="regular expression; without it the server's port is awaited"
    )
    deadline: Duration = Field(default="20s", description="a later server is a failed one")


class Server(Section):
    """The program under test as a server; `{artifact}` is the variant's program.

    Further placeholders: `{port}` `{tmp}` `{variant}` and the names in `build.tools`.
    """

    command: Argv = Field(description="the server's command, in the foreground")
    ready: Ready = Field(default=Ready(), description="how its readiness is known")
    env: dict[str, str] = Field(default_factory=dict, description="added to its environment")
    stop: Literal["term", "kill"] = Field(
        default="term",
        description="how it is ended after an execution: asked, and killed 2 s later, or killed",
    )


class Cpus(Section):
    """Which CPUs do what; sensible defaults come from the machine."""

    server: CpuList | None = Field(default=None, description="of the program under test")
    load: CpuList | None = Field(default=None, description="of the load generators")


_LATER_KEYS = ("drive", "server_args", "output", "score", "operations")


class ScoreSection(Section):
    """What a program, or a load generator, says of its own speed; it is compared as the cost."""

    pattern: Pattern = Field(
        description="regular expression; the last match of its first group is the number"
    )
    unit: str = Field(default="", description="of the number, for reports")
    better: Literal["higher", "lower"] = Field(description="which number is the better one")


class DriveStep(Section):
    """A part of a preload that ensign's own load generator carries out."""

    drive: Drive = Field(description="what is sent, once and to its end")


def _step_kind(value: object) -> str:
    return "drive" if isinstance(value, DriveStep | dict) else "command"


PreloadStep = Annotated[
    Annotated[Argv, Tag("command")] | Annotated[DriveStep, Tag("drive")],
    Discriminator(_step_kind),
]


class Workload(Section):
    """One test: a load or a drive of the server, or the program's own run.

    `load` is a generator's command, `drive` what ensign's own generator sends.

    `{requests}` in `load` and `preload` is replaced by the number of requests, which is chosen
    from a pilot so that one execution takes its share of the budget, unless `requests` fixes it;
    a drive's `operations` are such a number.
    """

    name: Name = Field(description="unique in the study; small letters, digits and _.+-")
    load: Argv | None = Field(default=None, description="the load generator's command")
    drive: Drive | None = Field(default=None, description="what ensign's own generator sends")
    command: Argv | None = Field(default=None, description="the program's own command")
    preload: list[PreloadStep] = Field(
        default_factory=list, description="commands or drives on the ready server, not measured"
    )
    server_args: list[str] = Field(
        default_factory=list, description="added to the server's command"
    )
    requests: int | None = Field(default=None, gt=0, description="fixed number of requests")
    rounding: int = Field(
        default=1000, gt=0, description="a chosen number of requests is a multiple of it"
    )
    input: str | None = Field(default=None, description="file given as standard input")
    output: str | None = Field(
        default=None,
        description="where a command's standard output goes: pipe (drained), null, or a file",
    )
    score: ScoreSection | None = Field(
        default=None, description="compared instead of time, for what ends by the clock"
    )
    operations: Annotated[int, Field(gt=0)] | Pattern | None = Field(
        default=None,
        description="how many operations one run completes: a number, or a pattern in its output",
    )
    deadline: Duration = Field(default="60s", description="running time of one execution")

    @property
    def by_turns(self) -> bool:
        """Whether whole executions take turns whatever the mode: it says what it achieved."""
        return self.score is not None or isinstance(self.operations, str)

    @property
    def may_end_by_the_clock(self) -> bool:
        """Whether nothing says how much it does: neither a count, a score, nor a drive."""
        counted = self.by_turns or self.operations is not None or counts_itself(self.load or ())
        return self.drive is None and not counted

    @property
    def fixed_requests(self) -> int | None:
        """The number of requests, where the study says it."""
        drive = None if self.drive is None else self.drive.operations
        return self.requests or drive

    @property
    def sends_requests(self) -> bool:
        """Whether a number of requests changes what is sent."""
        argvs = [self.load or [], *self.preload_commands]
        asked = any("requests" in names_in(word) for argv in argvs for word in argv)
        return self.drive is not None or asked

    @property
    def identity(self) -> dict[str, object]:
        """What a run depends on, as JSON; later keys are there where they say something."""
        said: dict[str, object] = self.model_dump(mode="json")
        return {key: said[key] for key in said if key not in _LATER_KEYS or said[key]}

    @property
    def preload_commands(self) -> list[list[str]]:
        """The commands among the steps of the preload."""
        return [step for step in self.preload if isinstance(step, list)]

    @property
    def preload_shown(self) -> list[str]:
        """Each step of the preload, as one would type it."""
        return [
            shown(step) if isinstance(step, list) else step.drive.shown for step in self.preload
        ]

    @property
    def shown(self) -> str:
        """What is sent or run, as one would type it."""
        if self.drive is not None:
            return self.drive.shown
        return shown(self.load or self.command or ())


def counts_itself(load: Sequence[str]) -> bool:
    """Whether the load generator writes down how many requests it sent: memtier_benchmark does."""
    return bool(load) and PurePosixPath(load[0]).name == "memtier_benchmark"


class Confirm(Section):
    """The best variants of the rounds are raced again, afresh; claims rest on that alone."""

    finalists: int = Field(default=3, ge=1, le=3, description="most variants that are confirmed")
    rounds: int | None = Field(
        default=None, ge=5, le=9999, description="without it as many as the budget holds"
    )

    relinks: bool = Field(
        default=False,
        description="each round on fresh relinks, also where the study's rounds have none",
    )


class Race(Section):
    """How it is measured. `budget` is for all racing: pilots, rounds, checks, confirmation.

    With `confirm` the rounds explore only; without numbers half of the time is to confirm.
    """

    margin: OptionalShare = Field(
        default="1%", description='a smaller difference does not matter; "none" for no margin'
    )
    budget: Duration = Field(
        default="5m", description="racing time of the whole study, builds and checks excluded"
    )
    precision: Share | None = Field(
        default=None,
        description="half-width of the geometric means that suffices: rounds until it is reached",
    )
    stopping: Literal["fixed", "sequential"] = Field(
        default="fixed",
        description="fixed: rounds until the time is used or widths suffice, judged once; "
        "sequential: looked at as they come, ended when every variant is decided",
    )
    rounds: int | None = Field(
        default=None,
        ge=3,
        le=9999,
        description="executions of every workload: so many, with `precision` at least; without it "
        "as many as the budget holds",
    )
    confirm: Confirm | None = Field(
        default=None, description="explore with the rounds, then confirm the best afresh"
    )
    group_size: GroupSize = Field(
        default="auto",
        description="variants that race at a time, besides the baseline and its twin: the number "
        "that gives the narrowest intervals for the time, all, or so many",
    )
    slice_check: list[str] = Field(
        default_factory=list,
        description="workloads raced again at four times the slice, to see whether ratios move",
    )
    slice: SliceText = Field(default="5ms", description="how long one variant runs at a time")
    slice_connections: Literal["fit", "all"] = Field(
        default="fit",
        description="of a drive's connections as many send in a slice as fill it, or all",
    )
    mode: Literal["interleaved", "driven", "alternating"] | None = Field(
        default=None,
        description="slices of loads or commands, slices of drives, or whole executions in turn; "
        "without it as the program's behavior asks for",
    )
    metric: Literal["cpu", "wall"] | None = Field(
        default=None,
        description="the cost compared; without it as the program's behavior asks for",
    )
    level: Level = Field(default=0.95, description="confidence level of intervals")
    seed: int = Field(default=1, ge=0, description="decides all random orders")
    ports: PortRange = Field(
        default=(20_000, 29_999), description="first and last port that servers may get"
    )

    @property
    def cost(self) -> Metric:
        """The cost compared, where nothing asks for another."""
        return Metric(self.metric or Metric.CPU)

    @property
    def turns(self) -> Mode:
        """How variants take turns, where nothing asks for another way."""
        return Mode(self.mode or Mode.INTERLEAVED)


class Training(Section):
    """What PGO and BOLT learn from; not what the tests measure.

    Each profile is collected by running every workload once, on servers that are asked to stop.
    """

    workloads: list[Workload] = Field(default_factory=list, description="runs to learn from")
    tests: Tests | None = Field(
        default=None, description="tests of the suite to learn from, names or glob patterns"
    )
    requests: int = Field(default=100_000, gt=0, description="sent for each of these tests")
    profiles: int = Field(
        default=1, ge=1, le=20, description="profiles collected independently, one build for each"
    )
    deadline: Duration = Field(default="10m", description="for collecting one profile")


class CheckSection(Section):
    """What a variant must pass to be allowed to win.

    `commands` run in a copy of the source folder that has the variant's program and the baseline's
    tools at their places (or, `in_build_tree`, in a copy of the tree in which the variant was
    built, with the environment and the placeholders of its build); each must exit with 0.
    `same_output` names workloads with a `command` whose standard output must equal the baseline's,
    up to `tolerance` in its numbers; without it, all whose output the baseline prints twice alike.
    """

    commands: list[Argv] = Field(default_factory=list, description="the program's own tests")
    in_build_tree: bool = Field(
        default=False,
        description="commands run in the tree of each build, as it was afterwards",
    )
    same_output: list[str] | None = Field(
        default=None,
        description="workloads whose output must be the baseline's (default: all with a command)",
    )
    tolerance: float = Field(
        default=0.0, ge=0.0, lt=1.0, description="relative difference of numbers that is allowed"
    )
    deadline: Duration = Field(default="10m", description="for all checks of one variant")


class Edit(Section):
    """One change of a file of the source, at the one place where `line` or `pattern` matches.

    In `replace` stand `{cc}` `{cxx}` `{ar}` `{ranlib}` `{nm}` `{ld}` (names of programs), `{opt}`
    (the level), `{cflags}`, `{ldflags}`, `{link_only}` (of the latter those that are not in
    `{cflags}`), `{lto}` and `{allocator}`; `${NAME}` is left as it is.
    """

    file: Inside = Field(description="the file, relative to the source folder")
    line: str | None = Field(default=None, min_length=1, description="a whole line, literally")
    pattern: str | None = Field(default=None, min_length=1, description="a regular expression")
    replace: str = Field(description="what comes in its place; \\1 is a group of `pattern`")


class Ship(Section):
    """How a build that won becomes the project's own: a change of its files, and its plain build.

    `commands` are what the project's users type; they know the toolchain, but get no flags.
    """

    edits: list[Edit] = Field(min_length=1, description="the change of the project's files")
    commands: list[Argv] = Field(
        min_length=1, description="the project's own build, without {cflags}, to verify the change"
    )


class Study(Section):
    """Which builds of one program are compared, on which workloads, how surely."""

    name: Name = Field(description="names the results folder; small letters, digits and _.+-")
    title: str = Field(default="", description="the heading of reports")
    question: str = Field(default="", description="what the study is to answer")
    source: Source = Field(description="where the program's source comes from")
    build: Build = Field(description="how it is built")
    axes: Axes = Field(description="what is varied")
    exclude: list[Choice] = Field(default_factory=list, description="combinations left out")
    include: list[Choice] = Field(default_factory=list, description="variants added")
    baseline: Choice = Field(description="the variant that all others are compared with")
    training: Training | None = Field(default=None, description="what PGO and BOLT learn from")
    check: CheckSection | None = Field(default=None, description="what a variant must pass")
    layouts: Layouts | None = Field(default=None, description="relinks of a variant")
    ship: Ship | None = Field(default=None, description="how the best build becomes the project's")
    server: Server | None = Field(default=None, description="the program is a server")
    cpus: Cpus = Field(default=Cpus(), description="which CPUs do what")
    race: Race = Field(default=Race(), description="how it is measured")
    suite: Suite | None = Field(default=None, description="published tests as workloads")
    workloads: list[Workload] = Field(default_factory=list, description="the tests")


def study_schema() -> dict[str, object]:
    """The JSON Schema of a study file, for editors and for `ensign schema`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Study.model_json_schema(),
        "title": "ensign study",
    }


def longest_run_ns(study: Study, workload: Workload) -> int:
    """How long one run of a workload may take: its deadline.

    Of a command, if the study gives none, it is no longer than could be raced within the budget.
    """
    deadline_ns = parse_duration_ns(workload.deadline)
    if "deadline" in workload.model_fields_set or workload.command is None:
        return deadline_ns
    return min(deadline_ns, max(parse_duration_ns(study.race.budget) // _FEWEST_RUNS, _SECOND_NS))
