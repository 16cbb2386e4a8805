"""Time that others take is told per slice, per variant and in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.conftest import SOON, Ensign, Programs

_SPIN = "import os; os.sched_setaffinity(0, {CPU})\nwhile True: pass"


@pytest.fixture
def contended_cpu() -> Iterator[int]:
    """A CPU on which two processes spin."""
    cpu = min(os.sched_getaffinity(0))
    program = _SPIN.replace("CPU", str(cpu))
    busy = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    yield cpu
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.skipif(not Path("/proc/pressure/cpu").exists(), reason="the kernel counts no pressure")
@pytest.mark.parametrize("mode", ["interleaved", "alternating"])
def test_time_taken_by_others_is_told(
    ensign: Ensign, programs: Programs, contended_cpu: int, mode: str
) -> None:
    done = ensign(
        "compare", f"{programs.cheap} 20000000", f"{programs.cheap} 20000000 0",
        "--mode", mode, "--metric", "cpu", "--cpus", str(contended_cpu), *SOON,
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    variants = [variant for trial in said["trials"] for variant in trial["variants"]]
    assert sum(variant["cpu_wait_ns"] for variant in variants) > 0.2 * sum(
        variant["wall_ns"] for variant in variants
    )
    column = said["slice_columns"].index("cpu_wait_ns")
    slices = [part[column] for trial in said["trials"] for part in trial["slices"]]
    assert any(slices)
    assert all(trial["steal_ns"] >= 0 for trial in said["trials"])
    assert "cpu-taken" in {finding["code"] for finding in said["findings"]}
    assert said["comparisons"][0]["other_metric"]["variant"]["taken"] > 0.2
