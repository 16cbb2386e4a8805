"""What a build system tells of a tree: targets, tests and benchmarks. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ensign.builders.systems.build_system import Recognized

TargetKind = Literal["program", "shared library"]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that the build makes. `path` is relative to the source, as `build.artifact` is.

    `by_default` tells that it is built where no targets are named; `installed` that users get it.
    """

    name: str
    kind: TargetKind
    path: str
    by_default: bool = True
    installed: bool = False


@dataclass(frozen=True, slots=True)
class SuiteCommand:
    """A test or a benchmark of the project, as the build system would run it.

    Paths in `argv` that lie in the tree are relative to the source folder, and so is `folder`.
    """

    name: str
    argv: tuple[str, ...]
    folder: str = "."
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Inspected:
    """A tree as its build system sees it.

    `notes` say what could not be found out, and why: without it, targets come from a guess or are
    missing.
    """

    recognized: Recognized
    targets: tuple[Target, ...] = ()
    tests: tuple[SuiteCommand, ...] = ()
    benchmarks: tuple[SuiteCommand, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[Target, ...]:
        """The targets that can be run."""
        return tuple(each for each in self.targets if each.kind == "program")
