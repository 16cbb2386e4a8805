"""Workloads with a network, where none can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.ports import Ports
from ensign.experiment.study import networks
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.host.confinement_probe import Confinement
from ensign.host.programs import Answer
from ensign.model.errors import InputError
from fakes import FakePrograms

WHY = "no network: this user may make no user and network namespaces here (EPERM)"
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
name = "alone"
command = ["{artifact}"]

[[workloads]]
name = "far"
ends = [{ command = ["{artifact}"] }, { command = ["{artifact}", "{address}"] }]
network = {}
"""


def read(text: str = STUDY) -> StudyFile:
    return parse_study(text, Path("s.toml"))


def refuse(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    monkeypatch.setattr(networks, "network_obstacle", lambda *_: why)


def test_what_the_meter_says_is_the_reason() -> None:
    refused = FakePrograms(
        answers={"ensign-meter": Answer(success=False, line=f"ensign-meter ends: {WHY}")}
    )
    assert networks.network_obstacle(refused, Confinement(), {}) == WHY
    allowed = FakePrograms(answers={"ensign-meter": Answer(success=True, line="")})
    assert networks.network_obstacle(allowed, Confinement(), {}) == ""


def test_the_rest_is_raced_with_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, WHY)
    file, (finding,) = networks.without_networks(read(), Ports())
    assert [each.name for each in file.study.workloads] == ["alone"]
    assert finding.code == "workloads-left-out"
    assert finding.text == f"left out: far: {WHY}; {networks.NETWORKS_REMEDY}"


def test_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, WHY)
    start, end = (
        STUDY.index('[[workloads]]\nname = "alone"'),
        STUDY.index('[[workloads]]\nname = "far'),
    )
    with pytest.raises(InputError, match=r"no workload of s\.toml can be raced here"):
        networks.without_networks(read(STUDY[:start] + STUDY[end:]), Ports())


def test_where_networks_are_allowed_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "")
    file = read()
    assert networks.without_networks(file, Ports()) == (file, ())
