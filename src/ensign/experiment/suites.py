"""Published suites and a project's tests, taken into studies as workloads."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ensign.experiment.ports import Ports
from ensign.host.archive_errors import archive_errors
from ensign.host.cache import Cache
from ensign.host.json_text import read_json
from ensign.host.regular_file import open_sized
from ensign.host.text import read_text
from ensign.model.errors import InputError
from ensign.model.listing import Listed
from ensign.model.quoting import quoted
from ensign.model.study import Study
from ensign.model.study_suite import Suite
from ensign.sources.downloads import Fetcher
from ensign.sources.wheel import fetch_wheel
from ensign.workloads.project_tests import project_tests, with_placeholders, workload_tables
from ensign.workloads.redis_specification.expand import expanded
from ensign.workloads.redis_specification.listing import listed
from ensign.workloads.redis_specification.published import FOLDERS, PACKAGE, PINNED, is_test
from ensign.workloads.redis_specification.redis_versions import Version, parse_version
from ensign.workloads.redis_specification.suite_file import Source
from ensign.workloads.redis_specification.translate import translate

_SUITES = {"redis": PINNED}
_LARGEST_FILE_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class SuiteList:
    """The tests of a suite by name, and the lines about files that are wrong."""

    rows: tuple[Listed, ...]
    mistakes: tuple[str, ...]


def pinned_suite(name: str) -> Suite:
    """The version of a published suite that ensign was written against. InputError."""
    if name not in _SUITES:
        raise InputError(f"there is no suite '{name}'; there is {', '.join(_SUITES)}")
    return _SUITES[name]


def expand_study(study: Study, path: Path, cache: Cache, ports: Ports) -> Study:
    """The study with its suite's tests as workloads. InputError, see `expanded`."""
    return expanded(study, lambda suite: find_tests(suite, path, cache, ports))


def list_tests(tests: Mapping[str, Source], version: Version) -> SuiteList:
    """Every test as it stands to a server of that version. Pure."""
    rows: list[Listed] = []
    mistakes: list[str] = []
    for name in sorted(tests):
        try:
            rows.append(listed(translate(tests[name]), version))
        except InputError as error:
            mistakes.append(str(error))
    return SuiteList(tuple(rows), tuple(mistakes))


def list_suite(suite: Suite, server_version: str, cache: Cache, ports: Ports) -> SuiteList:
    """Every test of a suite. InputError for no version, or where its files cannot be had."""
    version = parse_version(server_version)
    return list_tests(find_tests(suite, Path.cwd() / "study", cache, ports), version)


def find_tests(suite: Suite, study: Path, cache: Cache, ports: Ports) -> dict[str, Source]:
    """The files of a suite by the tests' names. InputError where they cannot be had.

    `study` is the file that relative paths start at.
    """
    if suite.path is not None:
        return dict(_in_folder(study.parent / suite.path))
    if suite.version is None or suite.sha256 is None:
        raise InputError("a suite needs 'version' and 'sha256', or 'path'")
    with cache.temporary() as work:
        processes = ports.processes()
        fetcher = Fetcher(processes, cache, ports.env, study, work, {})
        wheel = fetch_wheel(suite.kind, suite.version, suite.sha256, fetcher)
    found = dict(_in_wheel(wheel))
    if not found:
        raise InputError(f"{suite.kind} {suite.version} has no tests in it")
    return found


def _in_wheel(wheel: Path) -> Iterator[tuple[str, Source]]:
    with (
        archive_errors("the wheel cannot be read"),
        open_sized(wheel) as file,
        zipfile.ZipFile(file) as archive,
    ):
        for member in archive.infolist():
            path = PurePosixPath(member.filename)
            if not is_test(path) or path.parent.name not in FOLDERS:
                continue
            if member.file_size > _LARGEST_FILE_BYTES:
                raise InputError(f"{path.name} is larger than any test should be")
            yield path.stem, Source(path.name, archive.read(member).decode())


def _in_folder(folder: Path) -> Iterator[tuple[str, Source]]:
    """A checkout, its package, or a folder of test files."""
    places = [
        place / each
        for place in (folder, folder / PACKAGE)
        for each in FOLDERS
        if (place / each).is_dir()
    ] or [folder]
    files = [file for place in places for file in sorted(place.glob("*.y*ml")) if is_test(file)]
    if not files:
        raise InputError(f"{folder} has no tests: it needs a folder 'test-suites', or .yml files")
    for file in files:
        yield file.stem, Source(str(file), read_text(file))


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
