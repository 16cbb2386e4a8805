"""Published suites and a project's tests, taken into studies as workloads."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ensign.experiment.ports import Ports
from ensign.host.cache import Cache
from ensign.host.regular_file import archive_errors, open_sized, read_json, read_text
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.study import Study
from ensign.model.study_suite import Suite
from ensign.sources.archive import fetch_wheel
from ensign.sources.downloads import Fetcher
from ensign.workloads.plugin import PublishedSuite, SourceFile, SuiteList
from ensign.workloads.project_tests import project_tests, with_placeholders, workload_tables
from ensign.workloads.registry import suite_named, suite_of_kind

_LARGEST_FILE_BYTES = 8 * 2**20


def expand_study(study: Study, path: Path, cache: Cache, ports: Ports) -> Study:
    """The study with its suite's tests as workloads. InputError."""
    if study.suite is None:
        return study
    published = suite_of_kind(study.suite.kind)
    return published.expand(study, find_tests(study.suite, path, cache, ports))


def list_suite(
    name: str, folder: Path | None, server_version: str, cache: Cache, ports: Ports
) -> SuiteList:
    """Every test of a suite: of its pinned version, or of a folder. InputError."""
    published = suite_named(name)
    suite = published.pinned
    if folder is not None:
        changes = {"version": None, "sha256": None, "path": str(folder.absolute())}
        suite = suite.model_copy(update=changes)
    tests = find_tests(suite, Path.cwd() / "study", cache, ports)
    return published.list_tests(tests, server_version)


def find_tests(suite: Suite, study: Path, cache: Cache, ports: Ports) -> dict[str, SourceFile]:
    """The files of a suite by the tests' names. InputError where they cannot be had.

    `study` is the file that relative paths start at.
    """
    published = suite_of_kind(suite.kind)
    if suite.path is not None:
        return dict(_in_folder(study.parent / suite.path, published))
    if suite.version is None or suite.sha256 is None:
        raise InputError("a suite needs 'version' and 'sha256', or 'path'")
    with cache.temporary() as work:
        processes = ports.processes()
        fetcher = Fetcher(processes, cache, ports.env, study, work, {})
        wheel = fetch_wheel(suite.kind, suite.version, suite.sha256, fetcher)
    files = dict(_in_wheel(wheel, published))
    if not files:
        raise InputError(f"{suite.kind} {suite.version} has no tests in it")
    return files


def _in_wheel(wheel: Path, suite: PublishedSuite) -> Iterator[tuple[str, SourceFile]]:
    with (
        archive_errors("the wheel cannot be read"),
        open_sized(wheel) as file,
        zipfile.ZipFile(file) as archive,
    ):
        for member in archive.infolist():
            path = PurePosixPath(member.filename)
            if not suite.is_test(path) or path.parent.name not in suite.folders:
                continue
            if member.file_size > _LARGEST_FILE_BYTES:
                raise InputError(f"{path.name} is larger than any test should be")
            yield path.stem, SourceFile(path.name, archive.read(member).decode())


def _in_folder(folder: Path, suite: PublishedSuite) -> Iterator[tuple[str, SourceFile]]:
    """A checkout, its package, or a folder of test files."""
    places = [
        place / each
        for place in (folder, folder / suite.package)
        for each in suite.folders
        if (place / each).is_dir()
    ] or [folder]
    files = [
        file for place in places for file in sorted(place.glob("*.y*ml")) if suite.is_test(file)
    ]
    if not files:
        raise InputError(f"{folder} has no tests: it needs a folder 'test-suites', or .yml files")
    for file in files:
        yield file.stem, SourceFile(str(file), read_text(file))


def project_workloads(path: Path, source: str, artifact: str = "") -> str:
    """The [[workloads]] of a study file. Nothing of the project is run. InputError with the path.

    `source` is the source folder as it stands in that list, `artifact` the program below it.
    """
    try:
        tests = project_tests(read_json(read_text(path)))
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {quoted(str(error))[1:-1]}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not tests:
        raise InputError(f"{path}: it lists no test")
    return workload_tables(with_placeholders(tests, source, artifact))
