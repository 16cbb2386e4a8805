"""What others left, or planted, in folders that are shared: not opened, not followed, not removed.

A run takes away what is its own user's and unlocked, whatever namespace made it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ensign.meter.client import find_meter
from hostile.opened import counted

NOBODY = 65534
_PATIENCE_S = 120.0
_CALL = "from ensign.cli.main import main; main()"
_GROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give folders away")


def name_of(number: int) -> str:
    return f"ensign-meter-0000123-{number:016x}"


def run_meter(
    script: str, *, before: Sequence[str] = (), **more: object
) -> subprocess.CompletedProcess[str]:
    """One command under the meter; `more` goes into the request, `tmpdir` into the environment."""
    env = {**os.environ, "TMPDIR": str(more.pop("tmpdir", tempfile.gettempdir()))}
    request = {"schema": 1, "process": {"argv": ["sh", "-c", script]}, **more}
    return subprocess.run(
        [*before, str(find_meter()), "exec"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env=env,
        timeout=_PATIENCE_S,
        check=False,
    )


def give_away(folder: Path) -> None:
    """A folder of another user; a meter nearby may remove it while it is still this user's."""
    for _ in range(100):
        folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            os.chown(folder, NOBODY, NOBODY)
            return
    raise AssertionError(f"{folder} cannot be given away")


@contextmanager
def under_way(scratch: Path, before: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """A meter whose command runs until its standard input is closed."""
    request = {
        "schema": 1,
        "hold": True,
        "scratch": str(scratch),
        "process": {
            "argv": ["sh", "-c", "touch {tmp}/there; while [ -e {tmp}/there ]; do sleep 0.05; done"]
        },
    }
    process = subprocess.Popen(
        [*before, str(find_meter()), "exec"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        until = time.monotonic() + _PATIENCE_S
        while not list(scratch.glob("ensign-meter-*/tmp-*/there")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        yield process
    finally:
        process.stdin.close()
        process.wait(_PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


def own_group() -> Path | None:
    """A folder of the second version of control groups in which groups can be made."""
    probe = subprocess.run([str(find_meter()), "probe"], capture_output=True, check=True)
    said = json.loads(probe.stdout)
    return Path(said["cgroup"]) if said["freezer"] == "cgroup" else None


@only_root
def test_fifty_leftovers_of_another_user_are_neither_opened_nor_tried(tmp_path: Path) -> None:
    folders = [tmp_path / name_of(number) for number in range(50)]
    parent = own_group()
    groups = [] if parent is None else [parent / f"ensign-0000123-{n:015x}f" for n in range(3)]
    own = tmp_path / name_of(99)
    log = tmp_path / "opened"
    watched = ("strace", "-f", "--seccomp-bpf", "-o", str(log), "-e", "trace=open,openat,openat2")
    try:
        for folder in (*folders, *groups):
            give_away(folder)
        own.mkdir()
        with counted(folders) as theirs:
            done = run_meter("true", scratch=str(tmp_path), before=watched)
            assert done.returncode == 0, done.stdout
            assert theirs.times() == 0
            next(iter(folders)).stat()
            os.close(os.open(folders[0], os.O_RDONLY))
            assert theirs.times() == 1  # which shows that it counts
        # Whoever else is at work here may look through the control groups, so the calls tell.
        opened = log.read_text()
        assert "ensign-" in opened
        assert not any(group.name in opened for group in groups)
        assert all(folder.is_dir() for folder in (*folders, *groups))
        assert not own.exists()
    finally:
        for group in groups:
            group.rmdir()


@only_root
def test_a_comparison_does_not_open_what_another_user_left_in_the_temporary_folder(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    theirs = shared / f"ensign-{NOBODY}"
    folders = [
        theirs,
        *(theirs / name_of(n) for n in range(50)),
        *(shared / name_of(n) for n in range(50)),
    ]
    for folder in folders:
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
    argv = ["compare", "true", "sh -c :", "--budget", "20s", "--precision", "90%"]
    with counted(folders) as opened:
        done = subprocess.run(
            [sys.executable, "-c", _CALL, *argv],
            env={**os.environ, "TMPDIR": str(shared)},
            cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert opened.times() == 0
    left = {path.name for path in shared.iterdir()}
    assert left == {theirs.name, *(name_of(n) for n in range(50))}


def test_a_run_in_another_pid_namespace_is_no_leftover(tmp_path: Path) -> None:
    inside = [
        "bwrap",
        "--die-with-parent",
        "--dev-bind",
        "/",
        "/",
        "--unshare-pid",
        "--proc",
        "/proc",
    ]
    if shutil.which("bwrap") is None or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("no bubblewrap here")
    for first, second in ((inside, []), ([], inside), (inside, inside)):
        with under_way(tmp_path, first) as living:
            folders = list(tmp_path.glob("ensign-meter-*"))
            done = run_meter("true", before=second, scratch=str(tmp_path))
            assert done.returncode == 0, done.stdout
            assert list(tmp_path.glob("ensign-meter-*")) == folders
            assert list(tmp_path.glob("ensign-meter-*/tmp-*/there"))
            assert living.poll() is None
    assert not list(tmp_path.iterdir())


def test_planted_links_are_not_followed(tmp_path: Path) -> None:
    victim, base = tmp_path / "victim", tmp_path / "base"
    base.mkdir()
    victim.mkdir()
    (victim / "precious").touch()
    victim.chmod(0o755)
    for name in (name_of(1), f"ensign-{os.geteuid()}"):
        (base / name).symlink_to(victim)
    done = run_meter("touch {tmp}/x", tmpdir=base)
    assert done.returncode == 0, done.stdout
    done = run_meter("touch {tmp}/x", scratch=str(base))
    assert done.returncode == 0, done.stdout
    assert [path.name for path in victim.iterdir()] == ["precious"]
    assert victim.stat().st_mode & 0o777 == 0o755
    assert all(path.is_symlink() for path in base.iterdir())


@only_root
def test_a_folder_of_somebody_else_is_not_taken_for_ours(tmp_path: Path) -> None:
    theirs = tmp_path / f"ensign-{os.geteuid()}"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    theirs.chmod(0o777)
    done = run_meter("touch {tmp}/x; stat -c %a {tmp}/..", tmpdir=tmp_path)
    assert done.returncode == 0, done.stdout
    assert list(theirs.iterdir()) == []
    assert list(tmp_path.iterdir()) == [theirs]


def test_a_folder_of_ours_that_others_could_write_to_is_closed(tmp_path: Path) -> None:
    own = tmp_path / f"ensign-{os.geteuid()}"
    own.mkdir()
    own.chmod(0o777)
    (own / "kept").touch()
    assert run_meter("true", tmpdir=tmp_path).returncode == 0
    # To pass through may have been allowed to programs of another user; to list and write, never.
    assert own.stat().st_mode & 0o666 == 0o600
    assert [path.name for path in own.iterdir()] == ["kept"]


def test_what_cannot_be_removed_costs_no_waiting_and_harms_nothing(tmp_path: Path) -> None:
    deep = tmp_path / name_of(1) / "a"
    deep.mkdir(parents=True)
    deep.chmod(0o000)
    other = tmp_path / "ensign-meter-old-name"
    other.mkdir()
    assert run_meter("true", scratch=str(tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == [other]
