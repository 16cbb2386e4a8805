"""Studies with PGO: the training through the real meter."""

from __future__ import annotations

import json

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, SERVER, write_study

_PGO = """
[[include]]
optimization = "-O2"
pgo = "on"

[[training.workloads]]
name = "learn"
"""
_POLITE = ('"{artifact}", "{port}"]', '"{artifact}", "{port}", "polite"]')


def test_a_server_is_trained_with_the_baselines_tools_and_asked_to_stop(ensign: Ensign) -> None:
    learn = f'{_PGO}requests = 500\nload = ["{{load}}", "{{port}}", "{{requests}}"]\n'
    # The measured server is killed, the trained one never.
    text = SERVER.replace("[server]", '[server]\nstop = "kill"')
    write_study(ensign.folder, text + learn, _POLITE)
    planned = ensign("plan", "study.toml")
    assert planned.status == 0, planned.err
    assert ["builds", "5", "0"] in [line.split()[:3] for line in planned.out.splitlines()]
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = json.loads(ensign("report", "study.toml", "--json", "-").out)
    assert [build["status"] for build in said["builds"]] == ["built"] * 3
    # The same load as the test: what is gained is gained on what was seen.
    assert said["findings"][0]["code"] == "training-overlaps-tests"
    assert said["findings"][0]["severity"] == "error"
    again = ensign("run", "study.toml")
    assert again.status == 0, again.err
    assert again.err.count("already there") == 3


def test_a_server_that_leaves_without_its_profile_is_a_failed_variant(ensign: Ensign) -> None:
    learn = f'{_PGO}requests = 500\nload = ["{{load}}", "{{port}}", "{{requests}}"]\n'
    write_study(ensign.folder, SERVER + learn)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "the profile is empty" in done.said


def test_a_batch_program_that_fails_in_training_is_a_failed_variant(ensign: Ensign) -> None:
    learn = f'{_PGO}command = ["{{artifact}}", "1000000000000"]\ndeadline = "300ms"\n'
    write_study(ensign.folder, BATCH + learn)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "training 'learn':" in done.said


def test_a_missing_training_is_named_with_its_line(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH + '\n[[include]]\noptimization = "-O2"\npgo = "on"\n')
    done = ensign("plan", "study.toml")
    assert done.status == 2
    assert "'pgo' needs a profile: add [[training.workloads]] to train it on" in done.err
