"""Programs that work together, as they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.study.record import commands_of
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.errors import StudyError

STUDY = """\
name = "s"

[source]
kind = "path"
path = "."

[build]
commands = [["make"]]
artifact = "program"

[axes]
compiler = ["gcc-12"]

[baseline]
compiler = "gcc-12"

[[workloads]]
name = "send"
ends = [
  { command = ["{artifact}", "take", "{address}", "5555"], listens = "5555", serves = true },
  { command = ["{artifact}", "{address}:5555"], cpus = [0, 1] },
]
network = { rate = "1Gbit/s" }
operations = 9
"""
SHARED = ('network = { rate = "1Gbit/s" }\n', "")


def read(*changes: tuple[str, str]) -> StudyFile:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_study(text, Path("s.toml"))


def test_ends_are_a_command_that_the_meter_runs() -> None:
    study = read().study
    (workload,) = study.workloads
    assert workload.command == [
        "{meter}", "ends",
        "--words=4", "--cpus=", "--port=5555", "--serves=true",
        "--words=2", "--cpus=0,1", "--port=0", "--serves=false",
        "--rate=1000000000", "--mtu=1500", "--",
        "{artifact}", "take", "10.77.0.1", "5555",
        "{artifact}", "10.77.0.1:5555",
    ]  # fmt: skip
    assert workload.race_only == "has 'ends'"
    ((_, shown),) = commands_of(study, {})
    assert shown == (
        "{artifact} take {address} 5555 & {artifact} {address}:5555, over a network of 1Gbit/s, "
        "packets of 1500 B, segments offloaded"
    )


def test_without_a_network_they_share_the_loopback() -> None:
    (workload,) = read(SHARED, ("5555", "{port}")).study.workloads
    command = workload.command or []
    assert "--port={port}" in command
    assert not any(word.startswith("--rate") for word in command)
    assert command[-1] == "127.0.0.1:{port}"


def test_a_network_may_be_as_fast_as_it_goes() -> None:
    (workload,) = read(('{ rate = "1Gbit/s" }', "{ mtu = 9000 }")).study.workloads
    assert {"--rate=0", "--mtu=9000"} <= {*(workload.command or [])}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (SHARED, r"write {port}, which is each variant's own"),
        (("1Gbit/s", "1Gb/s"), "is not a rate such as 100Mbit/s"),
        (("1Gbit/s", "40Gbit/s"), "at most 34Gbit/s"),
        (("1Gbit/s", "0Gbit/s"), "is not a rate"),
        (('"{artifact}"', '"program"'), "no end of workload 'send' has {artifact}"),
        (("{address}:5555", "{adress}"), "nearest is {address}"),
        (('listens = "5555"', 'listens = "http"'), "'http' is neither a port nor {port}"),
        (("cpus = [0, 1]", "serves = true"), "all ends of workload 'send' serve"),
        (("operations = 9", 'operations = 9\ncommand = ["{artifact}"]'), "needs exactly one of"),
        (("operations = 9", 'operations = 9\ninput = "x"'), "'input' of workload 'send' is not"),
        (
            ('  { command = ["{artifact}", "{address}:5555"], cpus = [0, 1] },\n', ""),
            "is between two ends, and there are 1",
        ),
    ],
)
def test_mistakes(change: tuple[str, str], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        read(change)


def test_a_network_needs_ends() -> None:
    start = STUDY.index("ends = [")
    text = STUDY[:start] + 'command = ["{artifact}"]\nnetwork = {}\n'
    with pytest.raises(StudyError, match="which it lacks"):
        parse_study(text, Path("s.toml"))
