"""What a build system is here: how it is recognized, and how it builds a variant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ensign.model.study_build import Build, SystemName
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
        """What a file says; empty where it is not there or was not read."""
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
        """What to write for a tree with this top folder; None where it has another system."""
        ...

    def problems(self, build: Build) -> Iterator[Problem]:
        """Keys of `[build]` that mean nothing to this system, each with its place."""
        ...

    def recipe(self, build: Build) -> Build:
        """The same with `clean`, `commands`, `env` and `rewrite` as the study could have said."""
        ...
