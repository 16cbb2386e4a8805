"""The stages of builds, and all of them together as a plan. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ensign.builders.commands import Commands
from ensign.builders.layouts import Relinks
from ensign.builders.profiles import TrainingSteps
from ensign.builders.recorder import NO_CHANGES, Changes, Recorded
from ensign.toolchains.find import Toolchain
from ensign.toolchains.table import Flags

Kind = Literal["dependencies", "instrumented", "profile", "program"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the chain. `parent` is the key of another stage, or empty for the source.

    `profile` is the key of a profile whose files are laid into the tree before the commands;
    `training_steps` says how a profile is collected. `variants` is empty for what leads to others
    alone.

    Commands still hold `{jobs}`; `clean` comes before them, and only in the first stage of a chain;
    `tool_commands` follow, and are no part of the build time. `file_commands` are for each further
    file that can be loaded, and may fail. `artifact`, `tools` (name and path) and `runtime_files`
    (globs) are what is taken out of the tree at the end, all relative to it, and with
    `finds_libraries` those of the tree that they are linked with; dependencies keep the
    tree itself, and so does what has `keep_tree`, for the `check_commands` (which still hold what a
    check fills in). The first stage of a chain begins with the source at `revision`. `environment`
    is the root directory of the build, empty on this machine. `laid_over` is another revision and
    the sources (as `read_unit_choices` reads them) that are taken from it.
    """

    kind: Kind
    key: str
    parent: str
    label: str
    variants: tuple[str, ...]
    commands: Commands
    env: tuple[tuple[str, str], ...]
    deadline_ns: int
    disk_bytes: int
    clean: Commands = ()
    tool_commands: Commands = ()
    file_commands: Commands = ()
    artifact: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    runtime_files: tuple[str, ...] = ()
    finds_libraries: bool = False
    strip: bool = False
    recorded: tuple[Recorded, ...] = ()
    changes: Changes = NO_CHANGES
    relinks: Relinks | None = None
    profile: str = ""
    training_steps: TrainingSteps | None = None
    keep_tree: bool = False
    check_commands: Commands = ()
    environment: str = ""
    revision: str = ""
    laid_over: tuple[str, str] = ("", "")

    @property
    def takes_more_than_program(self) -> bool:
        """See `Study`."""
        return bool(self.runtime_files) or self.finds_libraries

    @property
    def inputs(self) -> tuple[str, ...]:
        """Keys of the stages that must be there before this one."""
        tools_from = "" if self.training_steps is None else self.training_steps.tools_from
        return tuple(key for key in (self.parent, self.profile, tools_from) if key)


@dataclass(frozen=True, slots=True)
class Plan:
    """All stages, parents before children; which stage makes which variant, and with what flags.

    `units_of` has the compiler and flags of sources with other choices, by variant.
    """

    stages: tuple[Stage, ...]
    stage_of: Mapping[str, str]
    flags_of: Mapping[str, Flags]
    units_of: Mapping[str, tuple[Toolchain, Flags]] = field(default_factory=dict)

    def stage(self, key: str) -> Stage:
        """Return the stage of that key; KeyError if there is none."""
        for stage in self.stages:
            if stage.key == key:
                return stage
        raise KeyError(key)

    def chain(self, key: str) -> tuple[Stage, ...]:
        """Return the stage of that key and all that it is made from, without dependencies."""
        stages_by_key: dict[str, Stage] = {}
        waiting = [key]
        while waiting:
            stage = self.stage(waiting.pop())
            if stage.kind != "dependencies":
                stages_by_key[stage.key] = stage
                waiting += [each for each in (stage.parent, stage.profile) if each]
        return tuple(stages_by_key.values())


def needed(stages: Iterable[Stage], there: Callable[[Stage], bool]) -> list[Stage]:
    """The stages that are of use: of each variant the last one, and what leads to missing ones.

    `there` says whether a stage's result is at hand, and is asked once for each stage of use.
    """
    by_key = {stage.key: stage for stage in stages}
    waiting = [stage.key for stage in by_key.values() if stage.variants]
    wanted: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in wanted:
            continue
        wanted.add(key)
        if not there(by_key[key]):
            waiting += by_key[key].inputs
    return [stage for stage in by_key.values() if stage.key in wanted]


def to_do(stages: Iterable[Stage], there: Callable[[Stage], bool]) -> list[Stage]:
    """The stages that are of use and missing; `there` is asked as by `needed`."""
    missing: set[str] = set()

    def is_there(stage: Stage) -> bool:
        stored = there(stage)
        if not stored:
            missing.add(stage.key)
        return stored

    return [stage for stage in needed(stages, is_there) if stage.key in missing]


def jobs_for(cores: int, stages_at_work: int) -> int:
    """Tell how many jobs a stage may use when so many run or could: all together, the cores."""
    return max(1, cores // max(1, min(cores, stages_at_work)))


def in_order(
    ready: Iterable[Stage], baseline_key: str, expected_s: Mapping[str, float]
) -> list[Stage]:
    """Sort stages that could start now: dependencies, the baseline, what others wait for.

    Among equals the longest is first.

    The baseline is early because nothing can be compared without it.
    """
    return sorted(
        ready,
        key=lambda stage: (
            stage.kind != "dependencies",
            stage.key != baseline_key,
            bool(stage.variants),
            -expected_s.get(stage.key, 0.0),
            stage.key,
        ),
    )
