"""Wrong use and wrong input: one clear line and exit status 2, before anything is measured."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from end_to_end.conftest import Line
from end_to_end.small_study import BATCH, write_study
from ensign.cli.main import run_command_line


@pytest.mark.parametrize(
    ("command_line", "said"),
    [
        ("compare", "commands"),
        ("compare true", "two commands or more"),
        ("compare true nosuchprogram", "nosuchprogram"),
        ("compare true ./nosuchprogram", "./nosuchprogram does not exist"),
        ("compare true /etc", "/etc is a folder"),
        ("compare true /etc/passwd", "/etc/passwd is not executable"),
        ("compare true 'no\\\\such'", "there is no program 'no\\such' on PATH"),
        ("compare true 'ls | wc'", "--shell"),
        ("compare true ''", "empty"),
        ("compare true true --budget 0", "--budget must be above 0"),
        ("compare true true --budget 0s", "--budget must be above 0"),
        ("compare true true --budget 30", "--budget: '30' is not a time"),
        ("compare true true --bugdet 3s", "--budget"),
        ("compare true true --mode fast", "'fast' is not one of 'interleaved', 'alternating'"),
        ("compare true true --slice 1us", "--slice"),
        ("compare true true --slice 2h", "--slice"),
        ("compare true true --warmup -1", "--warmup"),
        ("compare true true --precision 0", "--precision"),
        ("compare true true --margin 200%", "--margin"),
        ("compare true true --level 0.93", "0.95"),
        ("compare true true --seed 99999999999999999999", "--seed"),
        ("compare true true --cpus 4000", "4000"),
        ("compare true true --cpus 0-99999999999", "--cpus"),
        ("compare true true --env NAME", "--env"),
        ("compare true true --input nosuchfile", "nosuchfile"),
        ("compare true true --input .", "is a folder"),
        ("compare true true --output no/folder", "no/folder"),
        ("compare true true --deadline 0s", "--deadline"),
        ("compare true true --fail-on faster", "slower"),
        ("compare true true --operations 0", "--operations"),
        ("compare true true --export-json no/folder.json", "no/folder.json"),
        ("compare true true --export-csv .", "it is a folder"),
        ("compare true true --setup nosuchprogram", "nosuchprogram"),
        ("compare true true --prepare nosuchprogram", "nosuchprogram"),
        ("compare 'sleep {port}' 'sleep {port}'", "--load"),
        ("compare 'sleep {port}' 'sleep {port}' --load 'x {port}' --ports 9", "--ports"),
        ("compare 'sleep {port}' 'sleep {port}' --load 'nosuchload {port}'", "nosuchload"),
        ("compare 'sleep {port}' 'sleep {port}' --load 'true {port}' --ready soon", "--ready"),
        ("campare true true", "campare"),
        ("run", "STUDY"),
        ("run .", "is a folder"),
        ("run nosuch.toml", "there is no such file"),
        ("plan nosuch.toml", "there is no such file"),
        ("report nosuch.toml", "there is no such file"),
        ("doctor nosuch.toml", "there is no such file"),
        ("doctor nosuchprogram", "there is no 'nosuchprogram'"),
        ("doctor /etc/passwd", "is a text; name a program"),
        ("doctor true --fail-on always", "--fail-on knows note, warning, error"),
        ("clean --older-than soon", "soon"),
    ],
)
def test_one_line_says_what_is_wrong(complaint: Line, command_line: str, said: str) -> None:
    assert said in complaint(command_line)


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("artifact =", "artefakt =", "unknown key 'artefakt' in [build]; nearest is 'artifact'"),
        ('compiler = ["gcc-12"]', 'compiler = ["gcc-99"]', "compiler 'gcc-99' is not installed"),
        ('budget = "60s"', 'budget = "0s"', "'budget': '0s' must be above 0"),
        ('budget = "60s"', "budget = 0", "'budget'"),
        ("[race]", "[race", "not TOML"),
        ('path = "source"', 'path = "sauce"', "/sauce is not there"),
        ('"{artifact}", "100', '"nosuchprogram", "{artifact}", "100', "'nosuchprogram'"),
    ],
)
def test_a_wrong_study_is_named_with_its_line(
    complaint: Line, tmp_path: Path, command: str, before: str, after: str, said: str
) -> None:
    study = write_study(tmp_path)
    text = study.read_text()
    assert before in text
    study.write_text(text.replace(before, after, 1))
    line = text[: text.index(before)].count("\n") + 1
    told = complaint(f"{command} {study.name}")
    assert said in told
    assert f"{study.name}:{line}: " in told


DRIVEN = """\
[server]
command = ["{artifact}", "{port}"]

[race]
mode = "driven"

[[workloads]]
name = "scan"
drive = { pipeline = 1, commands = [
    { argv = ["SCAN", "{cursor}"], keys = { last = 99, width = 9 } },
] }
"""


@pytest.mark.parametrize("command", ["plan", "run", "doctor"])
@pytest.mark.parametrize(
    ("change", "line_of", "said"),
    [
        (("pipeline = 1,", "pipeline = 16,"), "{cursor}", "'pipeline' must be 1"),
        (("width = 9", "width = 70"), "width", "'width': 70 must be at most 64"),
        (("width = 9", "exponent = 9.5"), "exponent", "'exponent': 9.5 must be at most 5"),
        (("width = 9", "exponent = 2"), "exponent", "'exponent' is for the pattern \"zipf\""),
        (("width = 9", 'pattern = "gauss"'), "pattern", "'gauss' is not valid"),
        (
            ('"{port}"]', '"{port}"]\nready.output = "("'),
            "ready.output",
            "not a usable regular expression",
        ),
    ],
)
def test_a_drive_that_cannot_be_is_named_before_anything_is_built(
    complaint: Line, tmp_path: Path, command: str, change: tuple[str, str], line_of: str, said: str
) -> None:
    text = BATCH[: BATCH.index("[race]")] + DRIVEN
    study = write_study(tmp_path, text, change)
    place = next(
        number
        for number, line in enumerate(study.read_text().splitlines(), start=1)
        if line_of in line
    )
    told = complaint(f"{command} {study.name}")
    assert said in told
    assert f"{study.name}:{place}: " in told
    # The cache is opened, and stays empty.
    made = [each for part in ("entries", "logs") for each in (tmp_path / "cache" / part).glob("*")]
    assert made == []


@pytest.mark.parametrize("command", ["plan small.toml", "run small.toml", "clean"])
def test_an_impossible_cache(complaint: Line, tmp_path: Path, command: str) -> None:
    write_study(tmp_path).rename(tmp_path / "small.toml")
    (tmp_path / "cache").write_text("no folder")
    assert "ENSIGN_CACHE" in complaint(command)


def test_an_unknown_workload_gets_the_nearest_name(complaint: Line, tmp_path: Path) -> None:
    study = write_study(tmp_path)
    for command in ("plan", "run"):
        told = complaint(f"{command} {study.name} --workload shrot")
        assert "no workload called 'shrot'; nearest is 'short'" in told


def test_there_is_no_report_before_a_run(complaint: Line, tmp_path: Path) -> None:
    study = write_study(tmp_path)
    assert f"ensign run {study.name}" in complaint(f"report {study.name}")


def test_a_study_that_is_no_text(complaint: Line, tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_bytes(b"\x7fELF\x02\x01\xff")
    assert "UTF-8" in complaint("run program.toml")


def test_no_free_port(complaint: Line) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = complaint(
            "compare 'sleep {port}' 'sleep {port}' --load 'true {port}' "
            f"--ports {port}-{port}"
        )
    assert "port" in told


def test_help_without_arguments(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([]) == 2
    assert "compare" in capfd.readouterr().err
    assert run_command_line(["--version"]) == 0
    assert capfd.readouterr().out.startswith("ensign ")
