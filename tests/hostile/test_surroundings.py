"""Homes and temporary folders that are missing, full, read-only or somebody else's; stops; clocks.

Each is one clear line, or no matter at all.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import ensign
from ensign.meter.client import find_meter

NOBODY = 65534
_CALL = "from ensign.cli.main import main; main()"
_QUICK = ("compare", "true", "sh -c :", "--budget", "20s", "--precision", "90%")
_METER = Path(__file__).parents[2] / "meter"

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give folders away")


def run_ensign(
    cwd: Path, *argv: str, before: Sequence[str] = (), **env: str | None
) -> subprocess.CompletedProcess[str]:
    """`env` changes the environment; None takes a variable away."""
    changed = {**os.environ, **env}
    return subprocess.run(
        [*before, sys.executable, "-c", _CALL, *(argv or _QUICK)],
        env={name: value for name, value in changed.items() if value is not None},
        cwd=cwd, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ensign: ")]
    return line


@pytest.mark.parametrize("home", [None, "/missing/home", "/proc"])
def test_a_home_that_is_of_no_use_is_no_matter(tmp_path: Path, home: str | None) -> None:
    done = run_ensign(tmp_path, HOME=home)
    assert done.returncode == 0, done.stderr


def test_a_temporary_folder_that_is_missing_or_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("missing", "file"):
        done = run_ensign(tmp_path, TMPDIR=str(tmp_path / name))
        assert done.returncode == 2, done.stderr
        assert f"cannot make a folder in {tmp_path / name}: " in complaint(done)
        assert "TMPDIR names another" in complaint(done)


@only_root
def test_a_temporary_folder_of_another_user_is_told_or_used_safely(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    theirs.chmod(0o1777)
    done = run_ensign(tmp_path, TMPDIR=str(theirs))
    assert done.returncode == 0, done.stderr
    assert list(theirs.iterdir()) == []
    as_another = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    theirs.chmod(0o700)
    request = json.dumps({"schema": 1, "process": {"argv": ["true"]}})
    refused = subprocess.run(
        [*as_another, str(find_meter()), "exec"], input=request, env={"TMPDIR": str(theirs)},
        capture_output=True, text=True, timeout=60, check=False, cwd="/",
    )  # fmt: skip
    if refused.stdout:  # ensign may lie where others cannot read it
        assert refused.returncode == 2
        assert "Permission denied" in json.loads(refused.stdout.splitlines()[0])["text"]


@pytest.fixture
def passable() -> Iterator[Path]:
    """A folder that other users reach; that of a test lets nobody through."""
    folder = Path(f"/tmp/ensign-test-passable-{os.getpid()}-{time.monotonic_ns()}")  # noqa: S108
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@only_root
def test_programs_of_another_user_reach_their_own_folder_below_ours(passable: Path) -> None:
    script = "touch {tmp}/x && id -u && ls {tmp}/.. 2>/dev/null | wc -l"
    request = {
        "schema": 1,
        "containment": {"user": {"uid": NOBODY, "gid": NOBODY}},
        "process": {"argv": ["sh", "-c", script]},
    }
    done = subprocess.run(
        [str(find_meter()), "exec"], input=json.dumps(request),
        env={**os.environ, "TMPDIR": str(passable)}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    (said,) = [record for record in map(json.loads, done.stdout.splitlines())
               if record["type"] == "outcome"]  # fmt: skip
    assert said["stdout_tail"].split() == [str(NOBODY), "0"]  # and list no others
    assert list(passable.iterdir()) == []


def test_a_small_temporary_folder_that_fills_is_told_as_a_full_disk(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    inside = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--size", "32768",
              "--tmpfs", str(small)]  # fmt: skip
    if shutil.which("bwrap") is None or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("no bubblewrap here")
    then = ["sh", "-c", '"$@"; status=$?; ls -A "$TMPDIR"; exit $status', "sh"]
    done = run_ensign(tmp_path, before=[*inside, *then], TMPDIR=str(small))
    assert done.returncode == 3, done.stderr
    assert "the disk is full" in complaint(done)
    assert str(small) in complaint(done)
    assert done.stdout == ""  # nothing is left in it


def test_a_meter_that_stood_still_goes_on(tmp_path: Path) -> None:
    """As after the suspension of a laptop, or Ctrl-Z."""
    (tmp_path / "scratch").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _CALL, "compare", "sh -c 'sleep 0.01'", "true", "--runs", "40",
         "--budget", "60s"],
        env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    stopped = 0
    until = time.monotonic() + 60
    while stopped < 3 and process.poll() is None and time.monotonic() < until:
        for pid in below(process.pid, "ensign-meter"):
            try:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.3)
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
            stopped += 1
        time.sleep(0.05)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert stopped
    assert list((tmp_path / "scratch").iterdir()) == []


def below(pid: int, name: str) -> list[int]:
    """Processes of that name below another one."""
    found = []
    for child in children(pid):
        try:
            if Path(f"/proc/{child}/comm").read_text().strip() == name:
                found.append(child)
        except OSError:
            continue
        found += below(child, name)
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def test_no_deadline_is_kept_by_a_clock_that_somebody_may_set() -> None:
    """The wall clock is for people and for the age of what is stored."""
    of_python = re.compile(r"\btime\.time(_ns)?\(|datetime\.(now|today|utcnow)\(")
    users = {
        str(path.relative_to(Path(ensign.__file__).parent))
        for path in Path(ensign.__file__).parent.rglob("*.py")
        if of_python.search(path.read_text())
    }
    # The other two say when a result was made.
    assert users <= {"host/clock.py", "experiment/compare/run.py", "experiment/study/record.py"}
    of_rust = re.compile(r"SystemTime|CLOCK_REALTIME|UNIX_EPOCH")
    users = {
        str(path.relative_to(_METER))
        for path in _METER.glob("*/src/**/*.rs")
        if of_rust.search(path.read_text())
    }
    assert users <= {"host/src/clock.rs"}
