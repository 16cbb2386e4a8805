"""Machines on which something is not as it should be: clocks that jump, small and full disks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from faults.calls import Launcher, Trouble, new_place
from faults.campaign import Campaign
from faults.scenarios import SCENARIOS
from faults.surroundings import temporary_files

_NOBODY = 65534


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as started:
        yield started


@pytest.fixture(scope="module")
def study(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    scratch = tmp_path_factory.mktemp("study")
    return Campaign(SCENARIOS["study"], launcher, scratch, counted=False)


@pytest.mark.parametrize("jump_s", [-86400.0, 86400.0])
def test_a_clock_that_jumps_changes_nothing(study: Campaign, jump_s: float) -> None:
    """At each tenth look the time of day is another one."""
    with new_place(study.scratch) as folder:
        shutil.copytree(study.template, folder, symlinks=True, dirs_exist_ok=True)
        for _ in range(2):
            done = study.launcher.run(folder, study.scenario.argv, trouble=Trouble(jump_s=jump_s))
            assert done.status == 0, done.err
            assert done.left == ()
            outcome = study.scenario.outcome(folder)
            assert outcome["trials"] == study.reference["trials"]
            assert outcome["claims"] == []
            assert temporary_files(folder) == []
