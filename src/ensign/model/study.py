"""A study as its author writes it: the shape of a study file, whose sections are beside this. Pure.

Rules that compare several keys are in `study_rules`; the words for errors in `study_problems`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field, model_validator

from ensign.model.cluster import Cluster
from ensign.model.study_axes import NATURAL, AskedLayouts, Axes, Choice, Layouts
from ensign.model.study_build import Build, CheckSection, SandboxSection, Ship
from ensign.model.study_environment import Environment, EnvironmentName
from ensign.model.study_explain import Explain
from ensign.model.study_race import Cpus, Race
from ensign.model.study_source import InputFile, Source
from ensign.model.study_suite import Suite, Tests
from ensign.model.study_values import Duration, InputPath, Inside, Name
from ensign.model.study_workload import Server, Workload
from ensign.model.training_choice import read_training_choice
from ensign.model.units import parse_duration_ns
from ensign.model.validation import Section
from ensign.model.variants import OWN_COMPILER

# A run this much of the budget cannot be raced by three variants in three rounds.
_FEWEST_RUNS = 9
_SECOND_NS = 10**9


class Training(Section):
    """Workloads that PGO and BOLT are trained on; they should differ from those measured.

    Each profile is collected by running every workload once, on servers that are asked to stop.
    """

    workloads: list[Workload] = Field(default_factory=list, description="runs that train")
    tests: Tests | None = Field(
        default=None, description="tests of the suite to train on, names or glob patterns"
    )
    requests: int = Field(default=100_000, gt=0, description="sent for each of these tests")
    runtime_files: list[Inside] = Field(
        default_factory=list,
        description="files that only training needs, besides build.runtime_files (globs)",
    )
    profiles: int = Field(
        default=1, ge=1, le=20, description="profiles collected independently, one build for each"
    )
    deadline: Duration = Field(default="10m", description="for collecting one profile")


class Study(Section):
    """Builds of one program that are compared, on which workloads, how surely."""

    name: Name = Field(description="names the results folder; small letters, digits and _.+-")
    title: str = Field(default="", description="the heading of reports")
    question: str = Field(default="", description="what the study is to answer")
    source: Source = Field(description="where the program's source comes from")
    build: Build = Field(description="how it is built")
    environments: dict[EnvironmentName, Environment] = Field(
        default_factory=dict, description="root directories, by name: another release or libc"
    )
    axes: Axes = Field(description="what is varied")
    exclude: list[Choice] = Field(default_factory=list, description="combinations left out")
    include: list[Choice] = Field(default_factory=list, description="variants added")
    baseline: Choice = Field(description="the variant that all others are compared with")
    sandbox: SandboxSection = Field(
        default=SandboxSection(), description="what its programs may reach of the machine"
    )
    training: Training | None = Field(default=None, description="what PGO and BOLT are trained on")
    check: CheckSection | None = Field(default=None, description="what a variant must pass")
    layouts: AskedLayouts = Field(
        default=Layouts(),
        description='relinks of each variant, which rounds take in turn; "natural" races programs '
        "as they were linked",
    )
    ship: Ship | None = Field(default=None, description="how the best build becomes the project's")
    server: Server | None = Field(default=None, description="the program is a server")
    cpus: Cpus = Field(default=Cpus(), description="which CPUs do what")
    race: Race = Field(default=Race(), description="how it is measured")
    suite: Suite | None = Field(default=None, description="published tests as workloads")
    inputs: dict[InputPath, InputFile] = Field(
        default_factory=dict,
        description="files for workloads that are made or fetched, by their paths in the study's "
        "folder",
    )
    explain: Explain | None = Field(
        default=None, description="which part of a difference comes from what"
    )
    cluster: Cluster | None = Field(
        default=None, description="hosts on which 'ensign run STUDY --on STUDY' races"
    )
    workloads: list[Workload] = Field(default_factory=list, description="the tests")

    @model_validator(mode="before")
    @classmethod
    def _looked_at_as_they_come(cls, said: object) -> object:
        """Rounds that are looked at one by one count by themselves, so nothing takes turns."""
        if isinstance(said, Mapping) and "layouts" not in said:
            race = said.get("race")
            stopping = race.get("stopping") if isinstance(race, Mapping) else ""
            if stopping == "sequential":
                return {**said, "layouts": NATURAL}
        return said

    @property
    def finds_libraries(self) -> bool:
        """True if libraries of a build that its program is linked with are taken with it."""
        return self.build.system is not None or OWN_COMPILER in self.axes.compiler

    def trained_on(self, choice: str) -> tuple[Workload, ...]:
        """What a profile is trained on, by what a variant says of it; nothing without training.

        A test of the name of a training workload trains as `test-NAME`: recordings go by names.
        """
        if self.training is None:
            return ()
        trained, read = self.training.workloads, read_training_choice(choice)
        if read.without:
            return tuple(workload for workload in trained if workload.name not in read.names)
        also = (workload for workload in self.workloads if workload.name in read.names)
        tests = (workload.of_length(self.training.requests) for workload in also)
        known = [workload.name for workload in (*trained, *self.workloads)]
        named = (
            workload.model_copy(update={"name": _own_name(workload.name, known)})
            for workload in tests
        )
        return (*trained, *named)

    @property
    def training_choices(self) -> tuple[str, ...]:
        """What variants say of their training, each once."""
        rules = (*self.include, self.baseline)
        choices = (*self.axes.training, *(choice.training or "" for choice in rules))
        return tuple(dict.fromkeys(choices))

    @property
    def training_workloads(self) -> tuple[Workload, ...]:
        """All that the profile of some variant is trained on; once for each way to be trained."""
        return tuple(
            workload for choice in self.training_choices for workload in self.trained_on(choice)
        )

    @property
    def takes_more_than_program(self) -> bool:
        """True if files that the program runs with are named, or libraries of the build found."""
        return bool(self.build.runtime_files) or self.finds_libraries


def study_schema() -> dict[str, object]:
    """The JSON Schema of a study file, for editors and for `ensign schema`."""
    schema = Study.model_json_schema()
    layouts = schema["properties"]["layouts"]
    # A word is as good as the table.
    word = {"const": NATURAL, "type": "string"}
    layouts["anyOf"] = [{"$ref": layouts.pop("$ref")}, word]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "ensign study",
    }


def longest_run_ns(study: Study, workload: Workload) -> int:
    """The longest that one run of a workload may take: its deadline.

    Of a command, if the study gives none, it is no longer than could be raced within the budget.
    """
    deadline_ns = parse_duration_ns(workload.deadline)
    if "deadline" in workload.model_fields_set or workload.command is None:
        return deadline_ns
    return min(deadline_ns, max(parse_duration_ns(study.race.budget) // _FEWEST_RUNS, _SECOND_NS))


def _own_name(name: str, known: Sequence[str]) -> str:
    """The name, where only one is known; else another one."""
    others = [*known]
    others.remove(name)
    while name in others:
        name = f"test-{name}"
    return name
