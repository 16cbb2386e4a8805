"""The interface of build systems: how one is recognized, and how it builds a variant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ensign.model.study_build import Build, Rewrite, SystemName
from ensign.model.study_problems import Problem

# Builds happen here, inside the copy of the source folder: it is part of `build.artifact`.
BUILD_FOLDER = "ensign-build"


@dataclass(frozen=True, slots=True)
class Listing:
    """The top folder of a source tree: the names in it, and the texts of files that tell more.

    `folders` are those in which projects put a build system's file, by their paths in the tree.
    """

    names: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, Listing] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Content of a file; empty where it is not there or was not read."""
        return self.texts.get(name, "")


@dataclass(frozen=True, slots=True)
class Recognized:
    """A build system of a tree.

    `keys` are what `[build]` needs besides `system` and `artifact`, by their names; `programs` what
    must be installed; `notes` sentences for the author of the study.
    """

    system: SystemName
    keys: Mapping[str, object] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class BuildSystem(Protocol):
    """One build system."""

    name: SystemName
    texts: tuple[str, ...]
    """Files of the top folder whose texts `recognized` looks at."""

    def recognized(self, listing: Listing) -> Recognized | None:
        """Keys for a tree with this top folder; None where it has another system."""
        ...

    def problems(self, build: Build) -> Iterator[Problem]:
        """Keys of `[build]` that mean nothing to this system, each with its place."""
        ...

    def recipe(self, build: Build) -> Build:
        """The same with `clean`, `commands`, `env` and `rewrite` as the study could have said."""
        ...


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
        return tuple(target for target in self.targets if target.kind == "program")


# The recorder removes the project's own levels, and nothing else.
_LEVELS = ("-O", "-O[0-3gsz]", "-Ofast")


def build_folder(build: Build) -> str:
    """Folder of the build, relative to the source folder."""
    return build.folder if build.in_source else BUILD_FOLDER


def by_variables(build: Build) -> bool:
    """True if the system itself passes the flags; else the recorder does."""
    return build.flags_by != "recorder"


def flags(build: Build, name: str) -> str:
    """`{cflags}` or `{ldflags}`; empty where the recorder passes them."""
    return f"{{{name}}}" if by_variables(build) else ""


def with_recipe(build: Build, clean: Sequence[list[str]], commands: Sequence[list[str]]) -> Build:
    """The study's build with these commands; its own `clean` comes first."""
    changes: dict[str, object] = {
        "clean": [*build.clean, *clean],
        "commands": list(commands),
    }
    if build.flags_by == "recorder":
        rewrite = build.rewrite
        changes["rewrite"] = Rewrite(
            compile=[*rewrite.compile, "{cflags}"],
            link=[*rewrite.link, "{ldflags}"],
            remove=[*rewrite.remove, *_LEVELS],
        )
    return build.model_copy(update=changes)


def not_for(build: Build, *keys: str) -> Iterator[Problem]:
    """A problem for each of these keys that the study gives."""
    for key in keys:
        if key in build.model_fields_set:
            yield Problem(("build", key), f"'{key}' means nothing to system '{build.system}'")


def only_by_variables(build: Build) -> Iterator[Problem]:
    """A problem where flags are to go by the environment."""
    if build.flags_by == "environment":
        text = "'flags_by': 'environment' is for system 'make' or 'autotools', "
        text += f"not for '{build.system}'"
        yield Problem(("build", "flags_by"), text)
