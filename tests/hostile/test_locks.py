"""The race lock among users, containers and people who mean harm: waiting, told, never a hang."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ensign.host.race_lock import Holder, RaceLock
from ensign.meter.client import find_meter

NOBODY = 65534
_PATIENCE_S = 120.0
_CALL = "from ensign.cli.main import main; main()"
_HOLD = """
import sys
from pathlib import Path
from ensign.host.race_lock import RaceLock
def tell(holder):
    print("waiting for", holder, flush=True)
with RaceLock(Path(sys.argv[1]), on_wait=tell).held() as findings:
    print("held", *[each.text for each in findings], flush=True)
    sys.stdin.readline()
"""
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
CONTAINER = (
    "bwrap",
    "--die-with-parent",
    "--dev-bind",
    "/",
    "/",
    "--unshare-pid",
    "--proc",
    "/proc",
)

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become another user")


def works(before: Sequence[str]) -> bool:
    found = not before or shutil.which(before[0]) is not None
    argv = [*before, sys.executable, "-c", "import ensign.host.race_lock"]
    return found and not subprocess.run(argv, check=False, capture_output=True).returncode


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp, which other users reach."""
    folder = Path(f"/tmp/ensign-test-locks-{os.getpid()}-{time.monotonic_ns()}")  # noqa: S108
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


class Racer:
    """Another process that takes the lock, and says what happens."""

    def __init__(self, path: Path, before: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*before, sys.executable, "-c", _HOLD, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip

    def says(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def ends(self) -> None:
        """Orderly, and lets go."""
        self._process.communicate("\n", timeout=_PATIENCE_S)

    def stops(self) -> None:
        """And holds on."""
        self._process.send_signal(signal.SIGSTOP)

    def dies(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def racing(path: Path, before: Sequence[str] = ()) -> Iterator[Racer]:
    racer = Racer(path, before)
    try:
        yield racer
    finally:
        racer.dies()


@only_root
@pytest.mark.parametrize("turns", [((), AS_NOBODY), (AS_NOBODY, ()), (AS_NOBODY, AS_NOBODY)])
def test_two_users_wait_for_each_other(shared: Path, turns: Sequence[Sequence[str]]) -> None:
    if not works(AS_NOBODY):
        pytest.skip("another user cannot read ensign here")
    path = shared / "race.lock"
    with racing(path, turns[0]) as first:
        assert first.says() == "held"
        with racing(path, turns[1]) as second:
            assert second.says().startswith("waiting for process ")
            first.ends()
            assert second.says() == "held"
    assert path.stat().st_mode & 0o777 == 0o666
    # However the last one died: its words are stale, and nobody waits.
    with racing(path, turns[0]) as third:
        assert third.says() == "held"


@pytest.mark.parametrize("turns", [((), CONTAINER), (CONTAINER, ()), (CONTAINER, CONTAINER)])
def test_containers_that_share_the_file_wait_for_each_other(
    shared: Path, turns: Sequence[Sequence[str]]
) -> None:
    if not works(CONTAINER):
        pytest.skip("no bubblewrap here")
    path = shared / "race.lock"
    with racing(path, turns[0]) as first:
        assert first.says() == "held"
        with racing(path, turns[1]) as second:
            said = second.says()
            assert said.startswith("waiting for a race in another container (-c ")
            assert ", racing since " in said
            first.ends()
            assert second.says() == "held"


def test_a_process_number_of_another_namespace_is_no_ancestor(shared: Path) -> None:
    """In a fresh namespace everybody has the same small numbers."""
    if not works(CONTAINER):
        pytest.skip("no bubblewrap here")
    path = shared / "race.lock"
    inside = (*CONTAINER, "sh", "-c", 'exec "$@"', "sh")
    with racing(path, inside) as first:
        assert first.says() == "held"
        below = (*CONTAINER, "sh", "-c", '"$@"; :', "sh", "sh", "-c", '"$@"; :', "sh")
        with racing(path, below) as second:
            assert second.says().startswith("waiting for a race in another container")


def test_the_first_process_of_a_container_is_an_ancestor(shared: Path) -> None:
    if not works((*CONTAINER, "--as-pid-1")):
        pytest.skip("no bubblewrap here")
    nested = _HOLD.replace("sys.stdin.readline()", "pass")
    outer = _HOLD.replace(
        "sys.stdin.readline()",
        "import subprocess; subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]])",
    )
    argv = [*CONTAINER, "--as-pid-1", sys.executable, "-c", outer, str(shared / "lock"), nested]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["held", "held"]


def told_by(path: Path) -> str:
    """What a race says that goes on at once."""
    with RaceLock(path).held() as findings:
        assert [each.code for each in findings] == ["no-race-lock"]
        return findings[0].text


def test_what_is_no_plain_file_costs_a_finding(shared: Path) -> None:
    (shared / "folder").mkdir()
    assert "it is a folder" in told_by(shared / "folder")
    os.mkfifo(shared / "pipe")
    assert "it is no regular file" in told_by(shared / "pipe")
    victim = shared / "victim"
    victim.write_text("precious")
    (shared / "link").symlink_to(victim)
    assert "it is a link" in told_by(shared / "link")
    os.link(victim, shared / "second-name")
    assert "it has other names" in told_by(shared / "second-name")
    assert "cannot be locked" in told_by(shared / "missing" / "lock")
    assert victim.read_text() == "precious"


@only_root
def test_what_another_user_may_not_open_costs_a_finding(shared: Path) -> None:
    if not works(AS_NOBODY):
        pytest.skip("another user cannot read ensign here")
    path = shared / "race.lock"
    path.touch()
    path.chmod(0)
    with racing(path, AS_NOBODY) as racer:
        said = racer.says()
        assert said.startswith("held ")
        assert "Permission denied" in said
    # Those who may only read it lock it all the same.
    path.chmod(0o444)
    with racing(path, AS_NOBODY) as first:
        assert first.says() == "held"
        with racing(path) as second:
            assert second.says() == "waiting for another race, of an unknown owner"


HOSTILE_WORDS = [
    "",
    "[" * 4096,
    "9" * 4096,
    '{"pid": ' + "9" * 4000 + "}",
    '{"pid": -1, "command": "x", "since": "", "started": null, "namespace": ""}',
    '{"pid": true, "command": "x", "since": "", "started": "1", "namespace": 3}',
    "\udcff\x00\x1b]0;x\x07",
]


@pytest.mark.parametrize("words", HOSTILE_WORDS)
def test_words_that_mean_nothing_name_nobody(shared: Path, words: str) -> None:
    assert said_with(shared / "lock", words) == "another race, of an unknown owner"


def test_words_of_a_stranger_are_made_visible_and_short(shared: Path) -> None:
    words = {
        "pid": os.getpid(), "command": "\x1b]52;c;Zm9v\x07\u202e\n" + "x" * 3000,
        "since": "\x1b[2J", "started": "1", "namespace": "pid:[1]",
    }  # fmt: skip
    said = said_with(shared / "lock", json.dumps(words))
    assert said.startswith("a race in another container (")
    assert said.isprintable()
    assert len(said) < 400
    # Nor does a number of ours make them those of an ancestor.
    own = str(Path("/proc/self/ns/pid").readlink())
    said = said_with(shared / "lock", json.dumps({**words, "namespace": own}))
    assert said == "another race, of an unknown owner"


def said_with(path: Path, words: str) -> str:
    """Whom a race waits for, while somebody else holds a file with these words."""
    path.write_bytes(words.encode(errors="surrogateescape"))
    told: list[Holder] = []
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        def tell(holder: Holder) -> None:
            told.append(holder)
            fcntl.flock(file, fcntl.LOCK_UN)

        with RaceLock(path, on_wait=tell).held() as findings:
            assert findings == ()
    assert len(told) == 1
    return str(told[0])


def test_who_changes_the_words_all_the_time_is_told_of_once(shared: Path) -> None:
    path, told = shared / "lock", list[Holder]()
    path.touch()
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        until = time.monotonic() + 3
        over = threading.Event()

        def change() -> None:
            number = 0
            while time.monotonic() < until:
                number += 1
                words = {
                    "pid": 1, "command": str(number), "since": "", "started": "1",
                    "namespace": "pid:[1]",
                }  # fmt: skip
                os.pwrite(file.fileno(), json.dumps(words).encode(), 0)
                time.sleep(0.05)
            fcntl.flock(file, fcntl.LOCK_UN)
            over.set()

        threading.Thread(target=change).start()
        with RaceLock(path, on_wait=told.append).held():
            over.wait(_PATIENCE_S)
    assert len(told) == 1


def test_a_file_that_was_removed_meanwhile_is_left_for_the_new_one(shared: Path) -> None:
    path = shared / "race.lock"
    with racing(path) as first:
        assert first.says() == "held"
        with racing(path) as second:
            assert second.says().startswith("waiting for process ")
            path.unlink()
            with racing(path) as third:
                assert third.says() == "held"
                first.ends()
                assert second.says().startswith("waiting for process ")
                third.ends()
            assert second.says() == "held"


def test_a_file_named_by_mistake_keeps_its_content(shared: Path) -> None:
    path = shared / "notes.txt"
    path.write_text("not of ours\n")
    with RaceLock(path).held() as findings:
        assert findings == ()
        assert path.read_text() == "not of ours\n"
    assert path.read_text() == "not of ours\n"


def test_a_comparison_goes_on_without_a_lock_that_was_spoilt(shared: Path) -> None:
    os.mkfifo(shared / "lock")
    argv = ["compare", "true", "sh -c :", "--budget", "20s", "--precision", "90%", "--details"]
    done = subprocess.run(
        [sys.executable, "-c", _CALL, *argv],
        env={**os.environ, "ENSIGN_RACE_LOCK": str(shared / "lock")},
        cwd=shared, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "it is no regular file" in " ".join(done.stdout.split())


def test_a_holder_that_stands_still_is_waited_for_until_ctrl_c(shared: Path) -> None:
    path = shared / "race.lock"
    with racing(path) as first:
        assert first.says() == "held"
        first.stops()

        def press(_: Holder) -> None:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

        with pytest.raises(KeyboardInterrupt), RaceLock(path, on_wait=press).held():
            pass


@pytest.mark.parametrize("freezer", ["auto", "signal"])
def test_who_shares_no_lock_file_is_told_by_what_waited_for_a_cpu(freezer: str) -> None:
    """As two containers with a /tmp of their own, with control groups and without."""
    cpu = min(os.sched_getaffinity(0))
    argv = ["sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"]
    program = {"argv": argv, "cpus": [cpu]}
    request = {
        "schema": 1, "freezer": freezer, "executions": 1,
        "variants": [{"name": name, "program": program} for name in ("a", "b")],
    }  # fmt: skip
    other = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
    try:
        done = subprocess.run(
            [str(find_meter()), "race"], input=json.dumps(request), capture_output=True,
            text=True, timeout=_PATIENCE_S, check=True,
        )  # fmt: skip
    finally:
        other.kill()
        other.wait()
    records = [json.loads(line) for line in done.stdout.splitlines()]
    for each in (record for record in records if record["type"] == "variant"):
        assert each["cpu_wait_ns"] is not None
        assert each["cpu_wait_ns"] > 0.05 * each["wall_ns"]
