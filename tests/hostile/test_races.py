"""Programs of a race that mean harm: contained, ended within limits, and a later run unharmed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ensign.experiment.confinement import ProgramRules, Sandboxed
from ensign.host.confinement_probe import probe_confinement
from ensign.host.processes import ProcessLimits
from ensign.meter.client import LocalMeter, find_meter
from ensign.meter.processes import MeterProcesses
from ensign.model.errors import CommandFailed

_CONFINEMENT = probe_confinement(MeterProcesses(LocalMeter()), os.environ, find_meter())
pytestmark = pytest.mark.skipif(not _CONFINEMENT.works, reason=_CONFINEMENT.reason)

_ROOT = os.geteuid() == 0
_SECOND_NS = 10**9
_PATIENCE_S = 60.0
_FLOOD_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Arena:
    """A study's folder, a home folder with a secret, and a meter in a sandbox for both."""

    study: Path
    home: Path
    temporary: Path
    sandboxed: Sandboxed
    mark: str

    def records(self, verb: Any, request: Mapping[str, object]) -> list[Any]:
        meter = LocalMeter(surroundings=self.sandboxed)
        with closing(meter.run(verb, request)) as records:
            return list(records)

    def exec(self, script: str, shell: str = "sh", deadline_s: float = 30) -> Any:
        process = {
            "argv": [shell, "-c", script, "{tmp}"],
            "cwd": str(self.study),
            "deadline_ns": int(deadline_s * _SECOND_NS),
        }
        found = self.records("exec", {"schema": 1, "process": process})
        (outcome,) = [each for each in found if each["type"] == "outcome"]
        return outcome

    def race(self, *variants: Mapping[str, object], **more: object) -> list[Any]:
        return self.records("race", {"schema": 1, "variants": list(variants), **more})

    def is_unharmed(self) -> None:
        """Nothing is left of what ran, and the next run goes well."""
        assert _await(lambda: not _running(self.mark)), _running(self.mark)
        assert list(self.temporary.iterdir()) == []
        assert self.exec("echo fine")["stdout_tail"] == "fine\n"
        assert (self.home / "secret").read_text() == "secret"
        assert sorted(path.name for path in self.study.iterdir()) == ["input"]


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arena]:
    study, home, temporary = tmp_path / "study", tmp_path / "home", tmp_path / "t"
    for folder in (study, home, temporary):
        folder.mkdir()
    (study / "input").write_text("given")
    (home / "secret").write_text("secret")
    (home / "secret").chmod(0o600)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ENSIGN_TOKEN": "token",
        "GITHUB_TOKEN": "token",
    }
    limits = ProcessLimits(tree_processes=64, tree_memory_bytes=128 * 2**20)
    rules = ProgramRules(read=(study,), limits=limits, tmp_bytes=32 * 2**20)
    mark = f"7{os.getpid() % 10**6:06}.{time.monotonic_ns() % 10**6:06}"
    arena = Arena(study, home, temporary, Sandboxed(_CONFINEMENT, env, rules), mark)
    yield arena
    arena.is_unharmed()


def _await(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _running(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in words and words.startswith("sleep"):
            found.append(words)
    return found


def _plain(script: str, name: str = "one", **more: object) -> dict[str, object]:
    return {"name": name, "program": {"argv": ["sh", "-c", script, "{tmp}"], **more}}


def _texts(records: list[Any], kind: str) -> list[str]:
    return [each["text"] for each in records if each["type"] == kind]


def test_nothing_but_its_own_folder_can_be_written(arena: Arena) -> None:
    places = f"{arena.study} {arena.home} / /etc /usr /var /sys/fs/cgroup /proc/sys/kernel"
    said = arena.exec(
        f"for place in {places}; do touch $place/planted && echo wrote $place; done 2>/dev/null;"
        "rm -f input; touch $0/mine && cat input"
    )
    assert said["stdout_tail"] == "given"


def test_private_files_are_not_seen(arena: Arena) -> None:
    said = arena.exec("cat ../home/secret; ls -A ../home /home /run /mnt; cd; ls -A ..; exit 0")
    assert "secret" not in said["stdout_tail"]


@pytest.mark.skipif(not _ROOT, reason="of another user's files")
def test_a_private_file_in_the_studys_folder_stays_roots(arena: Arena) -> None:
    private = arena.study / "input"
    private.chmod(0o600)
    said = arena.exec("cat input; exit 0")
    assert said["stdout_tail"] == ""
    assert "Permission denied" in said["stderr_tail"]
    private.chmod(0o644)


def test_the_machines_ports_are_not_reached(arena: Arena) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; exit 0"
        said = arena.exec(connect, shell="bash")
    assert "reached" not in said["stdout_tail"]
    assert "refused" in said["stderr_tail"]


def test_other_processes_are_not_seen(arena: Arena) -> None:
    with subprocess.Popen(["sleep", f"{arena.mark}1"]) as other:
        try:
            said = arena.exec(
                "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /proc | grep -c '^[0-9]'"
            )
        finally:
            other.kill()
    *_, count = said["stdout_tail"].split()
    assert f"{arena.mark}1" not in said["stdout_tail"]
    assert int(count) < 12


def test_what_kills_all_it_can_kills_nobody_else(arena: Arena) -> None:
    """As another user it cannot kill the meter; as the same it ends its own race alone."""
    script = f"sleep {arena.mark} & kill -9 -1; exit 0"
    with subprocess.Popen(["sleep", arena.mark]) as other:
        if _ROOT:
            arena.exec(script)
        else:
            with pytest.raises(CommandFailed, match="the sandbox of the race was ended"):
                arena.exec(script)
        assert other.poll() is None
        other.kill()


def test_a_program_that_stops_itself_meets_its_deadline(arena: Arena) -> None:
    assert arena.exec("kill -STOP $$", deadline_s=1)["reason"] == "deadline"


def test_what_forks_away_is_ended(arena: Arena) -> None:
    away = f"setsid sh -c 'trap \"\" TERM HUP; setsid sleep {arena.mark} & sleep {arena.mark}' &"
    outcome = arena.exec(f"{away} sleep 0.2; echo gone")
    assert outcome["stdout_tail"] == "gone\n"


def test_a_fork_bomb_meets_its_limit(arena: Arena) -> None:
    outcome = arena.exec(
        f"bomb() {{ sleep {arena.mark} & bomb | bomb & }}; bomb; wait", deadline_s=5
    )
    assert outcome["reason"] in ("processes", "deadline", "exited")
    # Where nobody but the meter counts, what lives for less than a look is not seen.
    assert "processes" in outcome.get("limits_met", ()) or outcome["reason"] == "deadline"


def test_what_eats_memory_meets_its_limit(arena: Arena) -> None:
    assert arena.exec("x=0123456789; while :; do x=$x$x; done")["reason"] == "memory"


def test_what_fills_tmp_meets_its_limit(arena: Arena) -> None:
    outcome = arena.exec("cd $0; i=0; while head -c 4000000 /dev/zero >$i; do i=$((i+1)); done")
    assert outcome["reason"] == "disk"


def test_a_flood_of_output_fills_nothing(arena: Arena) -> None:
    """Of servers, too, whose output is looked through until they are ready."""
    before = shutil.disk_usage(arena.temporary).free
    assert arena.exec("exec yes", deadline_s=2)["reason"] == "deadline"
    flood = {"argv": ["sh", "-c", "yes & exec yes >&2"]}
    server = {
        "name": "flood",
        "program": flood,
        "load": {"process": {"argv": ["true"]}, "operations": 1},
        "ready": {"output": "never", "deadline_ns": 2 * _SECOND_NS},
    }
    records = arena.race(server)
    assert [each["code"] for each in records if each["type"] == "error"] == ["not-ready"]
    # Others write there, too.
    assert before - shutil.disk_usage(arena.temporary).free < 100 * _FLOOD_BYTES


def test_a_server_that_ignores_sigterm_is_killed(arena: Arena) -> None:
    deaf = f"trap '' TERM; echo ready; while :; do sleep {arena.mark}; done"
    server = {
        "name": "deaf",
        "program": {"argv": ["sh", "-c", deaf]},
        "load": {"process": {"argv": ["true"]}, "operations": 1},
        "ready": {"output": "ready", "deadline_ns": 20 * _SECOND_NS},
    }
    records = arena.race(server)
    assert records[-1] == {"type": "end", "status": "complete", "executions": 1}
    (ended,) = [each for each in records if each.get("role") == "server"]
    assert ended["signal"] == 9


def test_what_removes_its_own_folder_harms_itself_alone(arena: Arena) -> None:
    vanishing = _plain('cd "$0"; rm -rf "$0"; mkdir "$0" 2>/dev/null; pwd', cwd="{tmp}")
    records = arena.race(vanishing, _plain("true", "two"), executions=2)
    assert records[-1]["status"] == "complete"


def test_links_in_the_place_of_its_files_lead_nowhere(arena: Arena) -> None:
    """What the meter reads after a program is what it opened before, or a plain file."""
    swapped = _plain(
        "echo 5 operations; rm $0/out; ln -s /etc/passwd $0/out",
        stdout="{tmp}/out",
    )
    records = arena.race({**swapped, "operations_pattern": "(\\d+) operations"})
    assert [each["operations"] for each in records if each["type"] == "variant"] == [5]
    count = {"file": "{tmp}/count", "pointer": "/n"}
    load = {"argv": ["sh", "-c", "mkfifo $0/fifo; ln -s $0/fifo $0/count", "{tmp}"]}
    server = {
        "name": "server",
        "program": {"argv": ["sh", "-c", f"echo ready; sleep {arena.mark}"]},
        "load": {"process": load, "operations_json": count},
        "ready": {"output": "ready"},
    }
    said = _texts(arena.race(server), "error")
    assert len(said) == 1
    assert "wrote no number '/n'" in said[0]


def test_a_pipe_as_input_does_not_hang_the_meter(arena: Arena) -> None:
    prepared = {
        **_plain("cat", stdin="{tmp}/in"),
        "prepare": [{"argv": ["sh", "-c", "mkfifo $0/in", "{tmp}"]}],
    }
    assert arena.race(prepared)[-1]["status"] == "complete"


def test_privileges_cannot_be_raised(arena: Arena) -> None:
    outcome = arena.exec(
        "nice -n -5 true 2>/dev/null; mount -t tmpfs none /mnt 2>/dev/null && echo mounted;"
        "grep NoNewPrivs /proc/self/status; exit 0"
    )
    assert outcome["stdout_tail"].split() == ["NoNewPrivs:", "1"]


def test_limits_cannot_be_raised(arena: Arena) -> None:
    outcome = arena.exec(
        "ulimit -f unlimited 2>/dev/null; ulimit -H -f;"
        "head -c 40000000 /dev/zero >$0/big; wc -c <$0/big; sleep 20"
    )
    # It is ended for what it wrote, before or after it says how much that was.
    assert outcome["limits_met"] == ["disk"]
    blocks, *written = map(int, outcome["stdout_tail"].split())
    assert blocks * 512 == 32 * 2**20
    assert all(each <= 32 * 2**20 for each in written)


@pytest.mark.skipif(not _ROOT, reason="a user's own groups may be the user's to write")
def test_control_groups_cannot_be_changed(arena: Arena) -> None:
    outcome = arena.exec(
        "for each in $(find /sys/fs/cgroup -name 'cgroup.procs' -o -name 'cgroup.freeze' "
        "2>/dev/null); do echo 0 >$each && echo wrote $each; done 2>/dev/null; exit 0"
    )
    assert outcome["stdout_tail"] == ""


def test_nothing_in_the_environment_tells_of_a_measurement_or_a_secret(arena: Arena) -> None:
    one = _plain("env >$0/env; ! grep -iE 'ensign|meter|variant|token|bench' $0/env")
    records = arena.race(one, executions=2)
    assert records[-1]["status"] == "complete", _texts(records, "error")
    names = arena.exec("env | cut -d= -f1 | sort | tr '\\n' ' '")["stdout_tail"].split()
    assert {"HOME", "PATH", "TMPDIR"} <= set(names)
    shells = {"OLDPWD", "PWD", "SHLVL", "_"}
    assert set(names) - shells - {"HOME", "PATH", "TMPDIR"} == set()


def test_the_environment_of_the_meter_holds_no_secret_either(arena: Arena) -> None:
    outcome = arena.exec("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; exit 0")
    assert "token" not in outcome["stdout_tail"]


def test_a_hostile_variant_is_out_and_the_others_race_on(arena: Arena) -> None:
    eater = _plain("x=0123456789; while :; do x=$x$x; done", "eater")
    fine = _plain("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", "fine")
    records = arena.race(fine, eater)
    assert records[-1]["status"] == "complete"
    failed = [(each["variant"], each["code"]) for each in records if each["type"] == "failure"]
    assert failed == [("eater", "limit")]


def test_what_a_race_may_write_it_writes(arena: Arena) -> None:
    """What is named is not in the way of honest programs."""
    given = arena.home / "given"
    given.mkdir()
    given.chmod(0o777)
    rules = replace(arena.sandboxed.rules, write=(given,))
    open_arena = replace(arena, sandboxed=replace(arena.sandboxed, rules=rules))
    assert open_arena.exec(f"echo kept >{given}/file")["exit"] == 0
    assert (given / "file").read_text() == "kept\n"
    shutil.rmtree(given)
