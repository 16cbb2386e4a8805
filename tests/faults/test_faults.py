"""A few of the faults that `make faults` and `make kills` try by the hundred."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.calls import Launcher
from faults.campaign import Campaign
from faults.injection import Fault
from faults.kills import Shot, shoot
from faults.meter import faults as faults_of_meter
from faults.meter import inject as inject_into_meter
from faults.scenarios import SCENARIOS


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as started:
        yield started


@pytest.fixture(scope="module")
def study(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(SCENARIOS["study"], launcher, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def compare(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(SCENARIOS["compare"], launcher, tmp_path_factory.mktemp("compare"))


def site(campaign: Campaign, file: str, operation: str) -> str:
    """The first call site of that operation in a file."""
    found = [
        each
        for each in campaign.counts
        if each.startswith(f"{file}:") and each.endswith(f" {operation}")
    ]
    assert found, f"{file} does no {operation} any more: name another one"
    return found[0]


@pytest.mark.parametrize(
    ("file", "operation", "kind"),
    [
        ("host/files.py", "sync", "ENOSPC"),
        ("host/files.py", "rename", "EIO"),
        ("host/cache.py", "read", "EIO"),
        ("builders/build.py", "thread", "EAGAIN"),
        ("store/folder.py", "make", "ENOSPC"),
        ("meter/client.py", "fork", "EAGAIN"),
    ],
)
def test_a_study_goes_on_after_a_fault(
    study: Campaign, file: str, operation: str, kind: str
) -> None:
    finding = study.inject(Fault(site(study, file, operation), 1, kind))
    assert finding.struck
    assert finding.wrong == ()
    assert finding.status in (0, 2, 3), finding.said


@pytest.mark.parametrize(
    ("file", "operation", "kind"),
    [("host/files.py", "write", "ENOSPC"), ("meter/client.py", "pipe", "EMFILE")],
)
def test_a_comparison_says_what_was_refused(
    compare: Campaign, file: str, operation: str, kind: str
) -> None:
    finding = compare.inject(Fault(site(compare, file, operation), 1, kind))
    assert finding.struck
    assert finding.wrong == ()
    assert finding.status == 3, finding.said


def test_a_disk_that_stays_full(study: Campaign) -> None:
    finding = study.inject(Fault("", study.total // 2, "ENOSPC", lasting=True))
    assert finding.wrong == ()
    assert finding.status == 3


def test_the_meter_says_what_was_refused(compare: Campaign) -> None:
    possible = list(faults_of_meter(compare))
    for call, kind in (("mkdir", "ENOSPC"), ("pipe2", "EMFILE")):
        # Another libc makes a folder by another call.
        fault = next(f for f in possible if f.call.startswith(call) and f.kind == kind)
        finding = inject_into_meter(compare, fault)
        assert finding.struck, fault
        assert finding.wrong == ()


@pytest.mark.parametrize("role", ["ensign", "worker"])
def test_a_kill_leaves_nothing_to_the_next_run(compare: Campaign, role: str) -> None:
    kill = shoot(compare, Shot(role, "KILL"))
    assert kill.hit
    assert kill.status in (3, -9), kill.said
    assert kill.wrong == ()


def test_strays_are_found(launcher: Launcher, tmp_path: Path) -> None:
    """What the other tests rely on: a process, a file and a wrong claim do not go unseen."""
    from faults.oracle import wrong_with_fault  # noqa: PLC0415

    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("home", "tmp", "run"):
        (folder / name).mkdir()
    done = launcher.run(folder, ["schema", "--no-such-option"])
    assert done.status == 2
    assert list(wrong_with_fault(done, folder, "")) == []
    (folder / "results.json").write_text('{"comparisons": [')
    assert list(wrong_with_fault(done, folder, "ENOSPC")) == [
        "the reason (ENOSPC) is not told",
        "half a results.json",
    ]
    claim = '{"comparisons": [{"variant": "dear", "direction": "faster"}]}'
    (folder / "results.json").write_text(claim)
    assert list(wrong_with_fault(done, folder, "")) == ["dear is said to be faster"]
