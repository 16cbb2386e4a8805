"""Records, programs and processes of strangers, before `ensign record` and `ensign doctor`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ensign.builders.record_file import RECORD_FILE, RecordedRun, write_record

ENSIGN = str(Path(sys.executable).parent / "ensign")
CALL = (
    '{{"schema":2,"tool":"cc","program":"gcc","argv":["gcc"],"ran":["gcc","-o","app","{name}"],'
    '"cwd":"/","started_unix_ns":1,"wall_ns":1,"exit":0,"signal":null,'
    '"inputs":[{{"path":"{name}","kind":"object","sha256":"{sha}","members":[]}}],'
    '"outputs":[{{"path":"{name}","sha256":"{sha}","size_bytes":1}}],'
    '"line":{{"compiles":true,"links":true,"output":"{app}","sources":[],"files":[],'
    '"output_words":[],"folders":[],"inputs":[{{"text":"{name}","static":false,"whole":false,'
    '"grouped":false}}]}}}}\n'
)


def ensign(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ENSIGN_CACHE": str(folder.parent / "cache")}
    return subprocess.run(
        [ENSIGN, *words], cwd=folder, env=env, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("what", ["/dev/zero", "pipe", "/proc/kcore"])
def test_a_record_that_names_what_never_ends(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    subprocess.run(["gcc-12", "-x", "c", "-", "-o", "app"], input=b"int main(){}", cwd=folder,
                   check=True)  # fmt: skip
    os.mkfifo(folder / "pipe")
    name = str(folder / what)
    line = CALL.format(name=name, sha="0" * 64, app=folder / "app").encode()
    record = folder / RECORD_FILE
    write_record(record, RecordedRun(("make",), folder, 1, 0), [line])
    found = ensign(folder, "doctor", ".")
    assert found.returncode == 0, found.stderr
    done = ensign(folder, "record", "true")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in found.stderr + done.stderr


def test_names_in_a_record_do_not_steer_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    run = RecordedRun(("make\x1b[2J",), Path("/\x1b[31m"), 1, 0)
    line = CALL.format(name="\\u001b[2J.o", sha="0" * 64, app="app").encode()
    write_record(folder / RECORD_FILE, run, [line])
    found = ensign(folder, "doctor", ".")
    assert "\x1b" not in found.stdout + found.stderr


def test_looking_at_a_program_runs_neither_it_nor_its_loader(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    marker, loader = folder / "ran", folder / "ld-linux-trap"
    loader.write_text(f"#!/bin/sh\ntouch {marker}\n")
    loader.chmod(0o755)
    for name in ("gcc", "gcc-99", "clang", "llvm-nm"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (folder / name).chmod(0o755)
    source = f'#include <stdlib.h>\nint main() {{ return system("touch {marker}"); }}'
    argv = ["gcc-12", "-x", "c", "-", "-o", "app", f"-Wl,--dynamic-linker={loader}"]
    subprocess.run(argv, input=source.encode(), cwd=folder, check=True)
    env = {**os.environ, "PATH": f"{folder}:.:{os.environ['PATH']}"}
    argv = [ENSIGN, "doctor", "app"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False)
    assert done.returncode == 0
    assert not marker.exists()
    assert b"gcc-99" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_process_of_somebody_else_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    code = (
        "from ensign.tools.doctor.running_process import read_process\n"
        "from ensign.model.errors import InputError\n"
        "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try:\n    read_process(int(sys.argv[1]))\n"
        "except InputError as error:\n    print(error)\n"
    )
    argv = [sys.executable, "-c", code, str(os.getpid())]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "may not be looked at" in done.stdout, done.stderr
