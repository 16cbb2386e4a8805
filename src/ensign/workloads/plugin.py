"""A package that brings kinds of workloads, or a suite that others published. Pure.

Such a package names its `Plugin` as an entry point of the group `ensign.workloads`;
`ensign_redis` is a model of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from ensign.model.study import Study
from ensign.model.study_suite import Listed, Suite
from ensign.workloads.kind import WorkloadKind


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a suite: where it lies, for messages too, and its text."""

    file: str
    text: str

    @property
    def name(self) -> str:
        """The test's name: that of the file."""
        return PurePath(self.file).stem


@dataclass(frozen=True, slots=True)
class SuiteList:
    """The tests of a suite by name, and the lines about files that are wrong."""

    rows: tuple[Listed, ...]
    mistakes: tuple[str, ...]


class PublishedSuite(Protocol):
    """Tests that others published, and how they become workloads."""

    @property
    def name(self) -> str:
        """The suite in `ensign suites NAME`."""
        ...

    @property
    def pinned(self) -> Suite:
        """The version that the plugin was written for; its `kind` is that of `[suite]`."""
        ...

    @property
    def package(self) -> str:
        """The folder of a checkout, or of a wheel, that has `folders`."""
        ...

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of test files."""
        ...

    def is_test(self, path: PurePath) -> bool:
        """True if a file is a test, by its name."""
        ...

    def expand(self, study: Study, tests: Mapping[str, SourceFile]) -> Study:
        """The study with the tests that it names as workloads, and without suite. InputError."""
        ...

    def list_tests(self, tests: Mapping[str, SourceFile], server_version: str) -> SuiteList:
        """Every test as it stands to a server of that version. InputError for no version."""
        ...


@dataclass(frozen=True, slots=True)
class Plugin:
    """Kinds and suites of the package. Its kinds come before the general ones."""

    kinds: tuple[WorkloadKind, ...] = ()
    suites: tuple[PublishedSuite, ...] = ()
