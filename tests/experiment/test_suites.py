from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from ensign.experiment.ports import Ports
from ensign.experiment.suites import find_tests
from ensign.host.cache import Cache
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.errors import InputError
from ensign.model.study_suite import Suite
from ensign.report.as_suites import as_json, terminal
from ensign.sources.archive import fetch_wheel
from ensign.sources.downloads import Fetcher
from ensign_redis.plugin import RedisSpecification
from fakes import FakeProcesses
from suite_sources import source

KIND = "redis-benchmarks-specification"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def wheel(folder: Path) -> tuple[Path, str]:
    path = folder / "redis_benchmarks_specification-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a", "defaults"):
            text = source("--ratio 0:1").text
            archive.writestr(f"redis_benchmarks_specification/test-suites/{name}.yml", text)
        archive.writestr("redis_benchmarks_specification/setups/b.yml", "not: a test")
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def fetcher(tmp_path: Path, cache: Cache, answer: Outcome, file: Path | None = None) -> Fetcher:
    work = tmp_path / "work"
    work.mkdir()

    def download(request: ProcessRequest) -> Outcome:
        assert "specification==1.0" in request.argv[-1]
        if file is not None:
            (work / file.name).write_bytes(file.read_bytes())
        return answer

    return Fetcher(FakeProcesses(download), cache, {}, tmp_path / "s.toml", work, {})


DONE = Outcome(0, None, "exited")


def test_a_wheel_is_downloaded_once_and_read_as_data(tmp_path: Path, cache: Cache) -> None:
    path, digest = wheel(tmp_path)
    with cache:
        fetch_wheel(KIND, "1.0", digest, fetcher(tmp_path, cache, DONE, path))
        suite = Suite(kind=KIND, version="1.0", sha256=digest, tests=["*"])
        found = find_tests(suite, tmp_path / "s.toml", cache, Ports(env={}))
    assert list(found) == ["a"]


def test_another_wheel_and_a_failed_download_are_errors(tmp_path: Path, cache: Cache) -> None:
    path, _ = wheel(tmp_path)
    with cache, pytest.raises(InputError, match="has the SHA-256"):
        fetch_wheel(KIND, "1.0", "0" * 64, fetcher(tmp_path, cache, DONE, path))


def test_a_download_that_fails_says_why(tmp_path: Path, cache: Cache) -> None:
    failed = Outcome(1, None, "exited", tail="ERROR: No matching distribution found\n")
    with cache, pytest.raises(InputError, match=r"cannot fetch .*: ERROR: No matching"):
        fetch_wheel(KIND, "1.0", "0" * 64, fetcher(tmp_path, cache, failed))


def in_folder(folder: Path, cache: Cache) -> dict[str, object]:
    suite = Suite(kind=KIND, path=str(folder), tests=["*"])
    return dict(find_tests(suite, folder / "s.toml", cache, Ports(env={})))


def test_a_checkout_its_package_and_a_folder_of_tests(tmp_path: Path, cache: Cache) -> None:
    place = tmp_path / "checkout/redis_benchmarks_specification/test-suites"
    place.mkdir(parents=True)
    (place / "a.yml").write_text(source("").text)
    with cache:
        for folder in (tmp_path / "checkout", place.parent, place):
            assert list(in_folder(folder, cache)) == ["a"]
        with pytest.raises(InputError, match="has no tests"):
            in_folder(tmp_path, cache)


def test_the_listing_counts_and_gives_reasons() -> None:
    tests = {
        "get": source("--ratio 0:1 --pipeline 4 --key-maximum 9"),
        "later": source('--command "HSETEX __key__ FIELDS 1 a __data__" -d 64'),
        "no": source("--reconnect-interval 1"),
        "wrong": source("--pipelin 1", name="wrong"),
    }
    found = RedisSpecification().list_tests(tests, "7.0.15")
    assert found.mistakes == ("wrong.yml: 'clientconfig.arguments': unknown argument --pipelin",)
    text = terminal(found.rows, "redis 7.0.15").splitlines()
    assert text[1].split() == ["memtier_benchmark-a", "string", "4", "10", "runnable"]
    assert text[2].endswith("64 B  10000001  not runnable: HSETEX came with Redis 8.0")
    assert text[3].endswith("not expressible: connects anew again and again")
    assert text[-1] == "2 of 3 expressible, 1 runnable on redis 7.0.15"
    assert '"follows_replies": false' in as_json(found.rows, "redis 7.0.15")
