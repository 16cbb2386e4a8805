"""A build cannot write the record of what it calls; one that tries has failed, and says so."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from build_fixtures import cache, ports, processes, project, recording_ports
from ensign.builders.build import build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.collector import Collector, RecordLimits
from ensign.builders.recorder import Changes, Place, Recorded, read_calls, set_up
from ensign.builders.request import BuildPorts
from ensign.meter.client import find_meter
from found_compilers import compilers_found_once, found_compilers
from real_processes import WithoutNamespaces
from small_studies import GCC_O2, GCC_O3, request

__all__ = [
    "cache",
    "compilers_found_once",
    "found_compilers",
    "ports",
    "processes",
    "project",
    "recording_ports",
]

MAKE = ["make", "-j{jobs}", "CC={cc}", "AR={ar}", "CFLAGS={cflags}", "LDFLAGS={ldflags}", "program"]
# Where the recorder is, whatever the sandbox; and where its log may be.
HERE = (
    'P=$(dirname "$ENSIGN_RECORDER"); LOGS="$P/*.jsonl $P/../*.jsonl $P/../../temporary/*/*.jsonl"'
)
CONNECT = """
import json, os, socket, time
place = os.path.dirname(os.environ["ENSIGN_RECORDER"])
os.chdir(place)
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect("socket")
record = json.dumps({"tool": "cc"}) + "\\n"
"""
ITS_WORDS = """
word = s.recv(100).decode().strip()
s.sendall(f"ensign-record 1 {word} {'0' * 64} {len(record)}\\n{record}".encode())
s.recv(100)
"""
# The recorder's own program runs there by then, but what is sent was written before.
ANOTHER_PROGRAM = """
s.sendall(f"ensign-record 1 0 0 {len(record)}\\n{record}".encode())
s.set_inheritable(True)
os.execv("recorder", ["ensign-meter", "probe"])
"""


def harmful(*commands: list[str]) -> dict[str, object]:
    """The usual build, behind something that only the variant with -O3 does."""
    return {"commands": [*commands, MAKE], "dependencies": [], "tools": {}, "tool_commands": []}


def only_o3(script: str) -> list[str]:
    return ["sh", "-c", f'case "$1" in *-O3*) {script};; esac', "sh", "{cflags}"]


EVIL = only_o3("python3 evil.py")


def failure(report: BuildReport) -> str:
    """Why a variant was not built; one line."""
    (text,) = [each.text for each in report.findings if each.code == "build-failed"]
    assert "\n" not in text
    return text


@pytest.fixture(params=["bubblewrap", "one-folder"])
def build_ports(request: pytest.FixtureRequest, recording_ports: BuildPorts) -> BuildPorts:
    if request.param == "one-folder":
        return replace(recording_ports, processes=WithoutNamespaces())
    return recording_ports


@pytest.mark.parametrize(
    "text",
    [
        's.recv(100); s.sendall(b"{}" + bytes([10]))',
        's.sendall(b"x" * 100_000); s.recv(100)',
        "time.sleep(0.5)",
        ITS_WORDS,
        ANOTHER_PROGRAM,
    ],
    ids=["a-line", "noise", "silence", "its-words", "another-program"],
)
def test_a_build_that_connects_to_the_collector_itself(
    tmp_path: Path, project: Path, build_ports: BuildPorts, text: str
) -> None:
    (project / "evil.py").write_text(CONNECT + text)
    asked = request(tmp_path, GCC_O2, GCC_O3, **harmful(EVIL))
    report = build_variants(asked, build_ports)
    usual, forger = (each.facts for each in report.results)
    assert usual.status == "built"
    assert forger.status == "failed"
    assert "the build's record is damaged: " in failure(report)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "script",
    [
        f'{HERE}; for f in $LOGS; do [ ! -e "$f" ] || echo forged >> "$f"; done',
        f'{HERE}; for f in $LOGS; do [ ! -e "$f" ] || : > "$f"; done',
        f'{HERE}; for f in $LOGS; do [ ! -e "$f" ] || (rm -f "$f"; mkdir "$f"); done',
    ],
    ids=["appends", "truncates", "removes"],
)
def test_a_build_that_writes_to_its_log(
    tmp_path: Path, build_ports: BuildPorts, script: str
) -> None:
    calls_first = ["sh", "-c", "{cc} --version >/dev/null"]
    asked = request(tmp_path, GCC_O2, GCC_O3, **harmful(calls_first, only_o3(script)))
    report = build_variants(asked, build_ports)
    usual, other = report.results
    assert usual.facts.status == "built"
    if other.facts.status == "failed":
        assert "the build's record is damaged: " in failure(report)
    else:  # it could not reach it
        assert other.files is not None
        calls = read_calls(other.files.parent / "calls.jsonl")
        assert calls[0].argv[-1] == "--version"
        assert len(calls) > 1


@pytest.mark.usefixtures("project")
def test_settings_and_programs_of_the_recorder_are_read_only(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    script = (
        f'{HERE}; for f in "$P/settings.json" "$P/recorder" "$P/bin/x" "$P/x"; do '
        'if (echo x > "$f") 2>/dev/null; then echo "wrote $f" >&2; exit 9; fi; done; '
        'rm -rf "$P" 2>/dev/null; mv "$P" "$P.old" 2>/dev/null; [ -e "$P/settings.json" ]'
    )
    report = build_variants(
        request(tmp_path, GCC_O2, **harmful(["sh", "-c", script])), recording_ports
    )
    assert report.results[0].facts.status == "built"


def test_a_recorder_with_other_settings_is_found_out(
    tmp_path: Path, project: Path, build_ports: BuildPorts
) -> None:
    (project / "evil.py").write_text(
        "import json, os, subprocess\n"
        "path = os.environ['ENSIGN_RECORDER']\n"
        "said = json.load(open(path))\n"
        "said['tools']['gcc-12']['program'] = '/bin/true'\n"
        "json.dump(said, open('s.json', 'w'))\n"
        "os.environ['ENSIGN_RECORDER'] = os.path.abspath('s.json')\n"
        "subprocess.run([os.path.dirname(path) + '/bin/gcc-12', '-O3', '-c', 'main.c'])\n"
    )
    asked = request(tmp_path, GCC_O2, GCC_O3, **harmful(EVIL))
    report = build_variants(asked, build_ports)
    assert report.results[0].facts.status == "built"
    assert report.results[1].facts.status == "failed"
    assert "damaged: the recorder was given other settings" in failure(report)


@pytest.mark.usefixtures("project")
def test_a_build_that_kills_what_it_can_see_has_no_proof_of_another_build(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    kill = f'{HERE}; rm -f "$P/socket"; "$P/bin/gcc-12" --version >/dev/null && exit 0; exit 7'
    asked = request(tmp_path, GCC_O2, GCC_O3, **harmful(only_o3(kill)))
    report = build_variants(asked, replace(recording_ports, processes=WithoutNamespaces()))
    facts = report.results[1].facts
    assert facts.status == "failed"
    assert "cannot be recorded: nobody collects records at" in facts.log_tail


@pytest.mark.usefixtures("project")
def test_a_compiler_that_was_called_past_the_recorder_is_not_proved(
    tmp_path: Path, build_ports: BuildPorts
) -> None:
    past = only_o3("ENSIGN_RECORDED=1 {cc} -O0 -c main.c -o main.o; touch -d 2100-01-01 main.o")
    asked = request(tmp_path, GCC_O2, GCC_O3, **harmful(past))
    report = build_variants(asked, build_ports)
    said = [line for line in report.results[1].facts.evidence if line.startswith("not judged")]
    assert any("no recorded call made them" in line and "main.o" in line for line in said)
    proved = [line for line in report.results[0].facts.evidence if "who compiled" in line]
    assert proved == []


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "recorder"
    programs = [Recorded("cc", "cc", "/bin/true")]
    set_up(Place(folder, str(folder)), find_meter(), programs, Changes())
    return folder


def call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ENSIGN_RECORDER": str(place / "settings.json")}
    argv = [str(place / "bin/cc"), *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def limits() -> RecordLimits:
    return RecordLimits(lines=3, line_bytes=10_000)


def test_a_flood_of_calls_ends(place: Path, tmp_path: Path, limits: RecordLimits) -> None:
    collector = Collector(place / "socket", tmp_path / "log", place, limits)
    with collector.listening():
        codes = [call(place, "--version").returncode for _ in range(6)]
    assert codes == [0, 0, 0, 127, 127, 127]
    assert "more than 3 calls" in collector.damage
    assert len((tmp_path / "log").read_text().splitlines()) == 3


def test_a_call_that_is_too_long_to_tell(place: Path, tmp_path: Path, limits: RecordLimits) -> None:
    collector = Collector(place / "socket", tmp_path / "log", place, limits)
    with collector.listening():
        done = call(place, "x" * 10_000)
    assert done.returncode == 127
    assert "bytes to tell" in collector.damage


def test_who_is_silent_holds_nobody_for_ever(place: Path, tmp_path: Path) -> None:
    limits = RecordLimits(patience_s=0.3)
    collector = Collector(place / "socket", tmp_path / "log", place, limits)
    collector._recorder = _own_program()  # this test stands for a recorder that was stopped
    with collector.listening(), socket.socket(socket.AF_UNIX) as silent:
        folder = os.open(place, os.O_PATH)
        silent.connect(f"/proc/self/fd/{folder}/socket")
        silent.settimeout(60)
        said = silent.makefile().read()
        os.close(folder)
    assert "never wholly told" in said
    assert "never wholly told" in collector.damage


def test_a_call_that_was_killed_while_it_was_told_is_no_damage(place: Path, tmp_path: Path) -> None:
    collector = Collector(place / "socket", tmp_path / "log", place)
    collector._recorder = _own_program()
    with collector.listening():
        with socket.socket(socket.AF_UNIX) as gone:
            folder = os.open(place, os.O_PATH)
            gone.connect(f"/proc/self/fd/{folder}/socket")
            word = gone.recv(100).decode().strip()
            gone.sendall(f"ensign-record 1 {word}".encode())
            os.close(folder)
        collector._recorder = _file(place / "recorder")
        assert call(place, "--version").returncode == 0
    assert collector.damage == ""


def test_deep_json_is_no_record(place: Path, tmp_path: Path) -> None:
    collector = Collector(place / "socket", tmp_path / "log", place)
    collector._recorder = _own_program()
    line = b"[" * 200_000 + b"]" * 200_000 + b"\n"
    with collector.listening(), socket.socket(socket.AF_UNIX) as sender:
        folder = os.open(place, os.O_PATH)
        sender.connect(f"/proc/self/fd/{folder}/socket")
        word = sender.recv(100).decode().strip()
        header = f"ensign-record 1 {word} {collector._settings} {len(line)}\n"
        sender.sendall(header.encode() + line)
        sender.settimeout(60)
        assert b"no line of JSON" in sender.recv(1000)
        os.close(folder)
    assert "no line of JSON" in collector.damage


def test_without_a_collector_a_call_fails_and_says_so(place: Path) -> None:
    done = call(place, "--version")
    assert done.returncode == 127
    assert "nobody collects records at" in done.stderr
    assert done.stderr.count("\n") == 1
    settings = json.loads((place / "settings.json").read_text())
    assert settings["socket"] in done.stderr


def _own_program() -> tuple[int, int]:
    return _file(Path("/proc/self/exe"))


def _file(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
