"""Workloads that a study's variants are run on. Pure.

What a workload of each kind needs, and which processes it becomes, is in `ensign.workloads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from ensign.model.curves import AskedCurve
from ensign.model.drive import Drive
from ensign.model.placeholders import names_in, shown
from ensign.model.study_ends import End, Network
from ensign.model.study_parameter import Parameter
from ensign.model.study_values import (
    Argv,
    Duration,
    Inputs,
    Name,
    Pattern,
    ScoreName,
    Sha256,
)
from ensign.model.trials import Better, Score, better_by, contradiction
from ensign.model.validation import Section


class Ready(Section):
    """Readiness of a server: it listens on its port, or it printed `output` (a pattern)."""

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


_LATER_KEYS = (
    *("env", "drive", "server_args", "output", "score", "scores", "benchmarks", "operations"),
    *("expected", "expected_sha256", "folder"),
    *("setup", "prepare", "cleanup", "ignore_failure", "ends", "network", "one_cpu"),
)


class ScoreSection(Section):
    """Score that a program or a load generator prints of its own speed; compared as the cost.

    With a group `(?P<name>…)` in the pattern, beside `(?P<value>…)`, each name that it matches is
    a test.
    """

    pattern: Pattern = Field(
        description="regular expression; the last match of its group `value`, or of the first, is "
        "the number"
    )
    unit: str = Field(default="", description="of the number, such as ms, MB/s or points")
    better: Literal["higher", "lower"] | None = Field(
        default=None,
        description="which number is the better one; without it the unit says it: lower of a "
        "time, higher of a rate",
    )

    @model_validator(mode="after")
    def _is_said(self) -> Self:
        if self.better is None and better_by(self.unit) is None:
            raise ValueError(
                'add better = "higher" or better = "lower": the unit is neither a time nor a rate'
            )
        wrong = "" if self.better is None else contradiction(self.unit, Better(self.better))
        if wrong:
            raise ValueError(f"better = \"{self.better}\": {wrong}; leave 'better' out")
        return self

    @property
    def asked(self) -> Score:
        """As it is asked of the meter."""
        better = better_by(self.unit) if self.better is None else Better(self.better)
        return Score(self.pattern, self.unit, better or Better.HIGHER)


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

    Further placeholders: `{artifact}`, `{artifact_dir}` (its folder), `{input}`, `{port}` `{tmp}`
    `{variant}` `{files}` and the names in `build.tools`. A workload with several inputs becomes a
    test for each, called by its own name and the file's: `parse-small.json`.
    """

    name: Name = Field(description="unique in the study; small letters, digits and _.+-")
    load: Argv | None = Field(default=None, description="the load generator's command")
    drive: Drive | None = Field(default=None, description="what ensign's own generator sends")
    command: Argv | None = Field(default=None, description="the program's own command")
    ends: list[End] = Field(
        default_factory=list, max_length=8, description="programs that work together, raced as one"
    )
    network: Network | None = Field(
        default=None, description="between two ends; without it they share a loopback"
    )
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
    setup: Argv | None = Field(
        default=None,
        description="a command run once before the first race, not measured; with {variant} once "
        "for each variant and the twin",
    )
    prepare: Argv | None = Field(
        default=None, description="a command run before each execution, not measured"
    )
    cleanup: Argv | None = Field(
        default=None, description="a command run once after the last race, as `setup`"
    )
    ignore_failure: bool = Field(
        default=False, description="a program, or a load, that fails is measured all the same"
    )
    input: Inputs | None = Field(
        default=None,
        description="file given as standard input, or as {input}; of several each is a test",
    )
    one_cpu: bool = Field(
        default=False,
        description="its tasks share one CPU: so it can be raced in slices, by CPU time, though "
        "several are busy at a time",
    )
    env: dict[str, str] = Field(
        default_factory=dict,
        description="added to the environment of the program, of a server after its own `env`",
    )
    folder: str | None = Field(
        default=None,
        description="where a command runs, such as {files}/tests (default: the study's folder)",
    )
    output: str | None = Field(
        default=None,
        description="where a command's standard output goes: pipe (drained), null, or a file",
    )
    score: ScoreSection | None = Field(
        default=None, description="compared instead of time, for what runs for a fixed time"
    )
    scores: dict[ScoreName, ScoreSection] = Field(
        default_factory=dict,
        description="several of them, by name: each is a test, called WORKLOAD/NAME",
    )
    benchmarks: Literal["google-benchmark", "pyperf", "criterion", "libtest"] | None = Field(
        default=None,
        description="the program is made with this framework: each of its benchmarks is a test",
    )
    expected: Inputs | None = Field(
        default=None,
        description="file with what a command must print, in the check; a variant that prints "
        "otherwise is out. One for each of several inputs",
    )
    expected_sha256: Sha256 | list[Sha256] | None = Field(
        default=None, description="SHA-256 of what a command must print, as `expected`"
    )
    operations: Annotated[int, Field(gt=0)] | Pattern | None = Field(
        default=None,
        description="how many operations one run completes: a number, or a pattern in its output",
    )
    deadline: Duration = Field(default="60s", description="running time of one execution")
    parameter: Parameter | None = Field(
        default=None, description="a parameter with several values, each of which is a test"
    )

    @property
    def by_turns(self) -> bool:
        """True if whole executions take turns whatever the mode: it says what it achieved."""
        return self.scored or isinstance(self.operations, str)

    @property
    def scored(self) -> bool:
        """True if what it says of its own speed is compared, whatever the metric."""
        return self.score is not None or bool(self.scores) or self.benchmarks is not None

    @property
    def expected_file(self) -> str | None:
        """The file with what it must print; of a study as read, which has one input at most."""
        return self.expected if isinstance(self.expected, str) else None

    @property
    def has_expectation(self) -> bool:
        """True if the study says what it prints."""
        return self.expected is not None or self.expected_sha256 is not None

    @property
    def stdin(self) -> str | None:
        """The file given as standard input; of a study as read, which has one input at most."""
        return self.input if isinstance(self.input, str) else None

    @property
    def own_texts(self) -> tuple[str, ...]:
        """All that a program's own run is told: command, input, environment."""
        return (*(self.command or ()), self.stdin or "", self.folder or "", *self.env.values())

    @property
    def race_only(self) -> str:
        """Why no check can run it, as what it uses or has; empty where one can."""
        if {name for text in self.own_texts for name in names_in(text)} & {"port", "variant"}:
            return "uses {port} or {variant}"
        keys = ("ends", "setup", "prepare", "cleanup", "ignore_failure")
        return next((f"has '{key}'" for key in keys if getattr(self, key)), "")

    @property
    def commands_around(self) -> dict[str, list[str]]:
        """The commands before and after executions, or all of them, by their keys."""
        commands = {"setup": self.setup, "prepare": self.prepare, "cleanup": self.cleanup}
        return {key: argv for key, argv in commands.items() if argv}

    @property
    def fixed_requests(self) -> int | None:
        """The number of requests, where the study says it."""
        drive = None if self.drive is None else self.drive.operations
        return self.requests or drive

    @property
    def sends_requests(self) -> bool:
        """True if a number of requests changes what is sent."""
        argvs = [self.load or [], *self.preload_commands]
        asked = any("requests" in names_in(word) for argv in argvs for word in argv)
        return self.drive is not None or asked

    def of_length(self, requests: int) -> Workload:
        """The workload with so many requests, where it says no number and sends some."""
        known = self.fixed_requests is not None or not self.sends_requests
        return self if known else self.model_copy(update={"requests": requests})

    @property
    def identity(self) -> dict[str, object]:
        """Everything that a run depends on, as JSON; later keys only where they say something."""
        keys: dict[str, object] = self.model_dump(mode="json", exclude={"parameter"})
        return {key: keys[key] for key in keys if key not in _LATER_KEYS or keys[key]}

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
        """The command or the requests, as one would type them."""
        if self.drive is not None:
            return self.drive.shown
        if self.ends:
            over = "" if self.network is None else f", {self.network.shown}"
            return " & ".join(shown(end.command) for end in self.ends) + over
        return shown(self.load or self.command or ())


def asked_curves(workloads: Sequence[Workload]) -> tuple[AskedCurve, ...]:
    """The curves of a study as read, whose workloads have one value each."""
    curves: dict[tuple[str, str, str], dict[float, str]] = {}
    for workload in workloads:
        if workload.parameter is not None:
            key = (
                workload.parameter.curve or workload.name,
                workload.parameter.name,
                workload.parameter.unit,
            )
            curves.setdefault(key, {})[workload.parameter.values[0]] = workload.name
    return tuple(
        AskedCurve(*key, tuple(sorted(points)), tuple(points[value] for value in sorted(points)))
        for key, points in curves.items()
    )
