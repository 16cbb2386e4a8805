from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ensign.host.race_lock import Holder, RaceLock, default_path

_HOLD = """
import sys, time
from pathlib import Path
from ensign.host.race_lock import RaceLock
with RaceLock(Path(sys.argv[1])).held():
    print("held", flush=True)
    time.sleep(60)
"""


def hold(path: Path) -> subprocess.Popen[str]:
    """Another process, no ancestor of this one, that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_waits_is_told_for_whom_and_goes_on_when_the_first_dies(tmp_path: Path) -> None:
    path, told = tmp_path / "lock", list[Holder]()
    first = hold(path)

    def tell(holder: Holder) -> None:
        told.append(holder)
        # However it dies, the kernel lets go of its lock.
        first.kill()
        first.communicate()

    with RaceLock(path, on_wait=tell).held() as findings:
        assert findings == ()
        assert str(os.getpid()) in path.read_text()
    assert [each.pid for each in told] == [first.pid]
    assert f"process {first.pid} (-c {path})" in str(told[0])
    assert path.read_text() == ""


def test_who_shares_does_not_wait_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = hold(path)
    try:
        with RaceLock(path, share=True).held() as findings:
            assert [each.code for each in findings] == ["shared-machine"]
            assert f"process {first.pid}" in findings[0].text
    finally:
        first.kill()
        first.communicate()
    with RaceLock(path, share=True).held() as alone:
        assert alone == ()


def test_ctrl_c_ends_the_waiting(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = hold(path)

    def press(_: Holder) -> None:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    try:
        with pytest.raises(KeyboardInterrupt), RaceLock(path, on_wait=press).held():
            pass
    finally:
        first.kill()
        first.communicate()


def test_a_process_below_the_holder_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    nested = [sys.executable, "-c", _HOLD.replace("time.sleep(60)", "pass"), str(path)]
    with RaceLock(path).held():
        for argv in (nested, ["sh", "-c", 'exec "$@"; :', "sh", *nested]):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
            assert done.stdout == "held\n"
        # In the same process, too: the phases of one study.
        with RaceLock(path).held() as inner:
            assert inner == ()
        assert str(os.getpid()) in path.read_text()


@pytest.mark.parametrize("stale", ["", "not JSON", '{"pid": 1}', '{"pid": 0, "command": 3}', "[]"])
def test_stale_words_in_the_file_do_no_harm(tmp_path: Path, stale: str) -> None:
    path = tmp_path / "lock"
    path.write_text(stale)
    with RaceLock(path).held() as findings:
        assert findings == ()


def test_a_file_of_another_user_is_locked_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch(0o444)
    with RaceLock(path).held() as findings:
        assert findings == ()


def test_where_nothing_can_be_locked_it_races_and_says_so(tmp_path: Path) -> None:
    with RaceLock(tmp_path / "missing" / "lock").held() as findings:
        assert [each.code for each in findings] == ["no-race-lock"]
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with RaceLock(tmp_path / "link").held() as findings:
        assert [each.code for each in findings] == ["no-race-lock"]


def test_all_users_agree_on_the_file_and_the_environment_names_another() -> None:
    assert default_path("/x/y") == Path("/x/y")
    assert default_path("") == default_path(None)
    assert default_path(None).parent in (Path("/run/lock"), Path("/tmp"))  # noqa: S108


def test_waiting_takes_no_time_where_nobody_races(tmp_path: Path) -> None:
    told: list[Holder] = []
    for _ in range(3):
        with RaceLock(tmp_path / "lock", on_wait=told.append).held():
            time.sleep(0)
    assert told == []
