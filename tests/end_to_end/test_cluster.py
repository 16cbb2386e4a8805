"""A small study on a Slurm of its own: two nodes of this machine, started and stopped here."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from end_to_end.conftest import Ensign, Line, wait_for
from end_to_end.small_study import write_study
from local_slurm import LocalSlurm, local_slurm

_CLUSTER = """\
time_limit = "30m"
builds = { cpus = 1 }
[hosts.milan]
nodes = ["n1"]
[hosts.genoa]
constraint = "genoa"
count = 1
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[LocalSlurm]:
    with local_slurm({"n1": "milan", "n2": "genoa"}) as here:
        yield here


@pytest.fixture
def in_cluster(
    ensign: Ensign, slurm: LocalSlurm, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ensign]:
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    write_study(ensign.folder)
    (ensign.folder / "cluster.toml").write_text(_CLUSTER)
    yield ensign
    assert slurm.ask("squeue", "-h").split() == [], "no job is left"


def test_a_study_on_two_hosts(in_cluster: Ensign, complaint: Line) -> None:
    ensign = in_cluster
    said = ensign("plan", "study.toml", "--on", "cluster.toml").said
    assert "Races: 2 hosts of 2 kinds (milan 1, genoa 1)" in said
    assert "A single host says nothing of its kind: milan, genoa" in said
    done = ensign("run", "study.toml", "--on", "cluster.toml")
    assert done.status == 0, done.err
    assert "n1: done" in done.err
    assert "genoa-1: done" in done.err
    assert "Nothing is claimed of the fleet" in done.said
    assert "n1 " in done.said
    assert "genoa-1 (n2)" in done.said
    again = ensign("run", "study.toml", "--on", "cluster.toml")
    assert "queued" not in again.err
    said = json.loads(ensign("report", "study.toml", "--json", "-").out)
    assert [(host["kind"], host["rounds"], len(host["jobs"])) for host in said["hosts"]] == [
        ("milan", 3, 1),
        ("genoa", 3, 1),
    ]
    assert ensign("report", "study.toml", "--html", "f.html").status == 0
    assert "<svg" in (ensign.folder / "f.html").read_text()
    assert "gcc-12-O2, by workload" in ensign("report", "study.toml", "--workloads").said
    own = ensign("report", "study.toml", "--host", "genoa-1")
    assert "gcc-12-O2" in own.said
    assert "there are local, n1, genoa-1" in complaint("report study.toml --host n2")
    assert "nothing of study.toml has been measured" in complaint("report study.toml --host local")
    assert "has no --csv" in complaint("report study.toml --csv -")
    assert "name it by --host" in complaint("report study.toml --fail-on slower")


def test_an_interrupted_coordinator_leaves_jobs_to_the_next(
    in_cluster: Ensign, slurm: LocalSlurm
) -> None:
    ensign = in_cluster
    running = ensign.start("run", "study.toml", "--on", "cluster.toml")
    wait_for(lambda: bool(slurm.ask("squeue", "-h").split()), "a job is submitted", running)
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 4, err
    assert "takes them up again" in err
    done = ensign("run", "study.toml", "--on", "cluster.toml")
    assert done.status == 0, done.err
    assert "Each host" in done.said
    for name in ("run", "plan"):
        gone = ensign(name, "study.toml", "--on", "nowhere.toml")
        assert gone.status == 2


def test_jobs_are_cancelled_as_asked(in_cluster: Ensign, slurm: LocalSlurm) -> None:
    ensign = in_cluster
    running = ensign.start("run", "study.toml", "--on", "cluster.toml")
    wait_for(lambda: bool(slurm.ask("squeue", "-h").split()), "a job is submitted", running)
    os.kill(running.pid, signal.SIGTERM)
    running.communicate(timeout=120)
    done = ensign("run", "study.toml", "--on", "cluster.toml", "--cancel")
    assert done.status == 0, done.err
    assert "Cancelled 1 job" in done.said
    wait_for(lambda: not slurm.ask("squeue", "-h").split(), "the job is gone")


def test_wrong_files_say_what_is_wrong(in_cluster: Ensign, complaint: Line) -> None:
    path = in_cluster.folder / "cluster.toml"
    for text, said in (
        ('hosts.a.nods = ["n1"]', "unknown key 'nods'"),
        ("hosts.a = {}", "say one of 'nodes', which names them, and 'count'"),
        ('hosts.a.nodes = ["n1"]\nhosts.b.nodes = ["n1"]', "'n1' is two hosts"),
        ("hosts.a = { count = 1, share = 0.5 }\nhosts.b.count = 1", "give each kind a 'share'"),
        ("patience = 3\nhosts.a.count = 1", "cluster.toml:1"),
        ("x =", "not TOML"),
        ('partition = "a\\ntouch x"\nhosts.a.count = 1', "'partition'"),
        ('hosts.a = { count = 1, constraint = "a;b" }', "must be features joined by & or |"),
        ('hosts.a.nodes = ["../n1"]', "must be the name of one node"),
    ):
        path.write_text(text)
        assert said in complaint("run study.toml --on cluster.toml")
    assert "no table [cluster]" in complaint("run study.toml --on study.toml")
    assert "--cancel needs --on" in complaint("run study.toml --cancel")
    path.write_text("hosts.a.count = 1")
    for option in ("--fail-on slower", "--share-machine"):
        said = complaint(f"run study.toml --on cluster.toml {option}")
        assert f"{option.split()[0]} is for a run on this machine" in said
    assert "no --csv" in complaint("run study.toml --on cluster.toml --csv f.csv")


def test_without_slurm_it_says_what_is_missing(in_cluster: Ensign, complaint: Line) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(in_cluster.folder))
        assert "--on needs Slurm's commands" in complaint("run study.toml --on cluster.toml")
