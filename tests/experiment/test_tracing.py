"""Traced executions by the real meter: identities, and what is not judged."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from ensign.experiment.tracing import MeterTracer, TraceOptions
from ensign.meter.client import LocalMeter
from ensign.meter.requests import Load, ProcessSpec, VariantFiles, VariantSpec
from ensign.model.traced_execution import TracedExecution, Way


def trace(*argv: str, **more: str) -> TracedExecution:
    program = ProcessSpec(argv=argv, **more)  # type: ignore[arg-type]  # texts alone are given
    return MeterTracer(LocalMeter()).trace(VariantSpec(name="a", program=program))


def test_each_file_that_ran_has_an_identity_and_the_status_is_kept() -> None:
    seen = trace("sh", "-c", "cat /dev/null; exit 3")
    assert seen.exit_status == 3
    assert not seen.not_judged
    assert all(file.sha256 and file.inode for file in seen.mapped)
    names = {Path(file.path).name for file in seen.mapped}
    assert "cat" in names
    assert seen.identities is not None


def test_identity_is_of_bytes_not_of_names(tmp_path: Path) -> None:
    true = shutil.which("true")
    assert true is not None
    copy = tmp_path / "copy"
    shutil.copy(true, copy)
    assert trace(true).identities == trace(str(copy)).identities
    assert trace(true).identities != trace("false").identities


def test_what_lies_in_its_own_tmp_is_not_written_where_others_write(tmp_path: Path) -> None:
    seen = trace("sh", "-c", "echo a > {tmp}/mine; echo b >> ours", cwd=str(tmp_path))
    assert seen.written == (str(tmp_path.resolve() / "ours"),)
    assert seen.ways[0].ways == {Way.APPENDED}


def test_files_that_the_meter_copied_are_named_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    (folder / "bin").mkdir(parents=True)
    shutil.copy("/bin/sh", folder / "bin" / "program")
    program = ProcessSpec(argv=("{files}/bin/program", "-c", "echo > {files}/left; exit 0"))
    variant = VariantSpec(name="a", program=program, files=VariantFiles((str(folder),)))
    seen = MeterTracer(LocalMeter()).trace(variant)
    assert str(folder / "bin" / "program") in {file.path for file in seen.mapped}
    assert (seen.not_judged, seen.written) == ("", ())


def test_a_script_is_what_ran_as_much_as_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    identities = set()
    for text in ("#!/bin/sh\n:\n", "#!/bin/sh\n: :\n"):
        script.write_text(text)
        script.chmod(0o755)
        identities.add(trace(str(script)).identities)
    assert len(identities) == 2


def test_a_program_that_removes_itself_is_not_judged(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy("/bin/sh", program)
    seen = trace(str(program), "-c", f"rm {program}; exit 0")
    assert "program" in seen.not_judged
    assert seen.identities is None
    assert seen.followed


def test_a_program_that_cannot_be_executed_is_not_judged() -> None:
    seen = trace("no-such-program")
    assert not seen.followed
    assert seen.not_judged


def test_a_server_is_followed_and_asked_to_stop(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    code = (
        "import signal, socket, sys, pathlib\n"
        "def stop(*_): pathlib.Path(sys.argv[2]).touch(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "server = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "while True: server.accept()[0].close()\n"
    )
    python = os.path.realpath(sys.executable)
    server = ProcessSpec(argv=(python, "-c", code, "{port}", str(stopped)))
    load = Load(ProcessSpec(argv=("true",)), operations=1)
    seen = MeterTracer(LocalMeter()).trace(VariantSpec(name="a", program=server, load=load))
    assert stopped.exists()
    assert not seen.not_judged
    assert str(stopped.resolve()) in seen.written
    assert seen.signal != signal.SIGKILL
    assert "true" not in {Path(file.path).name for file in seen.mapped}


@pytest.mark.parametrize("rate", [1, 50])
def test_the_cpu_clock_may_run_faster(rate: int, tmp_path: Path) -> None:
    code = (
        "import time, sys, resource\n"
        "while time.process_time() < 0.5: pass\n"
        "ticks = open('/proc/self/stat').read().rsplit(')', 1)[1].split()[11:13]\n"
        "open(sys.argv[1], 'w').write(str(sum(map(int, ticks))))\n"
    )
    out = tmp_path / "ticks"
    python = os.path.realpath(sys.executable)
    variant = VariantSpec(name="a", program=ProcessSpec(argv=(python, "-c", code, str(out))))
    seen = MeterTracer(LocalMeter()).trace(variant, TraceOptions(cpu_clock_rate=rate))
    assert seen.cpu_clock_reads > 0
    enough = int(out.read_text()) >= 40
    assert enough == (rate == 1)
