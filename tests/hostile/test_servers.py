"""Servers that mean harm to the load generator: each ends the drive within its deadline.

By an error of one line that says what the server did; nothing that it sends is kept, and a signal
is heeded whatever it sends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ensign.meter.client import find_meter

_SERVER = Path(__file__).parent / "programs" / "resp_server.py"
_DEADLINE_NS = 500_000_000
_PATIENCE_S = 120.0
# Far more than a drive needs, far less than a reply that is kept would take.
_MOST_MEMORY_KIB = 200_000
_CALL = "from ensign.cli.main import main; main()"

# What the error says: of replies that are wrong at once, and of those that never become whole.
WRONG = {
    "array-too-large": "an array too large or too deep",
    "closes-in-a-reply": "the connection ended inside a reply",
    "deep-nesting": "an array too large or too deep",
    "endless-line": "a line without end",
    "error": "got an error: ERR ",
    "flood": "a reply that nobody asked for",
    "flood-of-bytes": "malformed reply",
    "huge-length": "a string of 9223372036854775807 bytes",
    "many-digits": "too many digits",
    "negative-array": "a length is -7",
    "negative-length": "a length is -2",
    "no-digits": "malformed reply",
    "speaks-first": "",
    "wrong-type": "got an integer; wanted a status",
}
LATE = {
    "drip": "bytes and no whole reply for 0.5 s",
    "drip-of-lines": "bytes and no whole reply for 0.5 s",
    "drip-of-pushes": "bytes and no whole reply for 0.5 s",
    "endless-array": "bytes and no whole reply for 0.5 s",
    "large-length": "bytes and no whole reply for 0.5 s",
    "never-accepts": "failed: connection timed out",
    "never-reads": "within 0.5 s",
    "says-nothing": "the server sent nothing for 0.5 s",
    "slow-accept": "within 0.5 s",
}
EITHER = ("endless-push",)


@contextmanager
def hostile_server(kind: str) -> Iterator[int]:
    """Its port."""
    argv = [sys.executable, str(_SERVER), kind, "0"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().split()[1])
    finally:
        process.kill()
        process.communicate()


def asked(port: int, **more: object) -> str:
    drive = {
        "connections": 4,
        "operations": 1000,
        "pipeline": 2,
        "deadline_ns": _DEADLINE_NS,
        "commands": [{"argv": ["SET", "k", "v"], "reply": "status"}],
        **more,
    }
    request = {"schema": 1, "address": f"127.0.0.1:{port}", "drive": drive, "hold": True}
    return json.dumps(request) + "\n"


def start_drive(port: int, **more: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [str(find_meter()), "drive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(asked(port, **more))
    process.stdin.flush()
    return process


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, object] | None]:
    """Exit status and error of a drive that ends by itself; its memory was bounded."""
    assert process.stdout is not None
    peak = 0
    for line in process.stdout:
        record = json.loads(line)
        if record["type"] == "start":
            worker = Path(f"/proc/{record['pid']}/status")
            peak = max(peak, _peak_kib(worker))
        if record["type"] == "error":
            process.communicate(timeout=_PATIENCE_S)
            return process.returncode, record
    process.communicate(timeout=_PATIENCE_S)
    return process.returncode, None


def _peak_kib(status: Path) -> int:
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def assert_one_line(error: dict[str, object] | None, part: str) -> None:
    assert error is not None
    text = str(error["text"])
    assert part in text
    assert text.isprintable(), text
    assert len(text) < 1000


@pytest.mark.parametrize("kind", sorted(WRONG))
def test_a_wrong_reply_ends_the_drive(kind: str) -> None:
    with hostile_server(kind) as port:
        status, error = ended(start_drive(port))
        assert_one_line(error, WRONG[kind])
        assert error is not None
        assert (status, error["code"]) == (3, "reply")


@pytest.mark.parametrize("kind", sorted(LATE))
@pytest.mark.parametrize("protocol", [2, 3])
def test_what_never_becomes_a_whole_reply_ends_by_the_deadline(kind: str, protocol: int) -> None:
    with hostile_server(kind) as port:
        status, error = ended(start_drive(port, protocol=protocol))
        assert_one_line(error, "" if protocol == 3 else LATE[kind])
        assert error is not None
        assert (status, error["code"]) in {(3, "deadline"), (3, "reply"), (3, "not-ready")}
        if protocol == 2 and kind != "never-accepts":
            assert error["code"] == "deadline"


@pytest.mark.parametrize("kind", EITHER)
def test_a_flood_of_pushes_ends_by_its_number_or_by_the_deadline(kind: str) -> None:
    with hostile_server(kind) as port:
        status, error = ended(start_drive(port))
        assert_one_line(error, "SET k v")
        assert status == 3


@pytest.mark.parametrize("kind", ["drip", "endless-array", "endless-push", "never-reads"])
@pytest.mark.parametrize("how", ["signal", "end of input"])
def test_a_drive_can_be_ended_whatever_is_sent(kind: str, how: str) -> None:
    hour_ns = 3_600_000_000_000
    with hostile_server(kind) as port:
        process = start_drive(port, deadline_ns=hour_ns, operations=1 << 40)
        assert process.stdout is not None
        assert process.stdin is not None
        start = json.loads(process.stdout.readline())
        time.sleep(0.3)
        worker = Path(f"/proc/{start['pid']}/status")
        peak_kib = _peak_kib(worker)
        assert peak_kib < _MOST_MEMORY_KIB
        # A flood of pushes may have come to its own end by then.
        assert peak_kib > 0 or kind == "endless-push"
        if how == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        said = process.stdout.read()
        process.wait(_PATIENCE_S)
        floods = kind == "endless-push" and "pushes without end" in said
        assert process.returncode == 4 or floods
        process.stdout.close()
        if not process.stdin.closed:
            process.stdin.close()


@pytest.mark.parametrize("kind", ["drip-of-pushes", "endless-array", "error"])
def test_a_comparison_says_in_one_line_what_the_server_did(kind: str, tmp_path: Path) -> None:
    drive = 'connections = 2\noperations = 100\n[[commands]]\nargv = ["PING", "x"]\n'
    (tmp_path / "drive.toml").write_text(drive)
    server = f"{sys.executable} {_SERVER} {kind} {{port}}"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _CALL, "compare", server, server, "--drive", "drive.toml",
         "--budget", "60s", "--deadline", "1s"],
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b]" not in done.stderr + done.stdout
    assert "\x07" not in done.stderr + done.stdout
    assert any(line.startswith("ensign: ") for line in done.stderr.splitlines())
    assert list(scratch.iterdir()) == []
