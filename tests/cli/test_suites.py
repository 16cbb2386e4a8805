from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensign.cli.main import run_command_line
from suite_sources import source


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ENSIGN_CACHE", str(tmp_path / "cache"))
    tests = tmp_path / "test-suites"
    tests.mkdir()
    (tests / "a.yml").write_text(source("--pipeline 3").text)
    return str(tmp_path)


def test_a_folder_is_listed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["suites", "redis", "--path", folder]) == 0
    assert capsys.readouterr().out.endswith("1 of 1 expressible, 1 runnable on redis 7.0.15\n")
    said = ["suites", "redis", "--path", folder, "--json", "-", "--group", "string"]
    assert run_command_line(said) == 0
    (test,) = json.loads(capsys.readouterr().out)["tests"]
    assert (test["name"], test["pipeline"], test["runnable"]) == ("a", 3, True)


def test_a_wrong_file_is_a_line_and_the_others_are_listed(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Path(folder) / "test-suites/b.yml"
    wrong.write_text(source("--pipelin 3").text)
    assert run_command_line(["suites", "redis", "--path", folder]) == 2
    out, err = capsys.readouterr()
    assert "1 of 1 expressible" in out
    line = f"ensign: {wrong}: 'clientconfig.arguments': unknown argument --pipelin\n"
    assert err == line


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--group", "nonesuch"], "no test is of the group nonesuch; there are string"),
        (["--server-version", "new"], "'new' is not a version of Redis"),
    ],
)
def test_wrong_use(
    folder: str, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert run_command_line(["suites", "redis", "--path", folder, *more]) == 2
    assert said in capsys.readouterr().err
    assert run_command_line(["suites", "mysql"]) == 2
