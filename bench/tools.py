"""The tools side by side: each compares two commands within a given time, and says low and high."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy import stats

ENSIGN = Path(sys.executable).parent / "ensign"


@dataclass(frozen=True)
class Verdict:
    """What a tool said of B against A: cost ratio with its 95 % interval, and the time it took."""

    tool: str
    ratio: float
    low: float
    high: float
    runs: int
    seconds: float
    running_share: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low > 1 or self.high < 1

    @property
    def half_width(self) -> float:
        """Half the interval."""
        return (self.high - self.low) / 2

    def as_json(self) -> dict[str, object]:
        """For the results file."""
        return asdict(self)


def ensign(a: str, b: str, *options: str) -> Verdict:
    """`ensign compare A B`, with `options`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        start = time.monotonic()
        subprocess.run(
            [ENSIGN, "compare", a, b, "--race-same", "--export-json", path, *options],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.monotonic() - start
        result = json.loads(path.read_text())
    row = result["comparisons"][0]
    return Verdict(
        "ensign",
        row["ratio"],
        row["low"] or 0.0,
        math.inf if row["high"] is None else row["high"],
        row["executions"],
        seconds,
        result["experiment"]["running_share"],
    )


def hyperfine(a: str, b: str, runs: int) -> Verdict:
    """All runs of A, then all of B; the ratio of means by Welch's t interval (delta method)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        start = time.monotonic()
        subprocess.run(
            ["hyperfine", "-N", "--warmup", "1", "--runs", str(runs), "--export-json", path, a, b],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seconds = time.monotonic() - start
        results = json.loads(path.read_text())["results"]
    return _of_samples("hyperfine", results[0]["times"], results[1]["times"], seconds)


def pyperf(a: str, b: str, processes: int) -> Verdict:
    """`pyperf command` for A, then for B; each value is one run."""
    samples = []
    start = time.monotonic()
    for command in (a, b):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pyperf",
                    "command",
                    "--processes",
                    str(processes),
                    "--values",
                    "1",
                    "--warmups",
                    "0",
                    "--loops",
                    "1",
                    "-q",
                    "-o",
                    path,
                    "--",
                    *shlex.split(command),
                ],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            runs = json.loads(path.read_text())["benchmarks"][0]["runs"]
        samples.append([value for run in runs for value in run.get("values", [])])
    return _of_samples("pyperf", samples[0], samples[1], time.monotonic() - start)


def _of_samples(tool: str, a: list[float], b: list[float], seconds: float) -> Verdict:
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    variance = [
        stats.tvar(sample) / len(sample) / mean**2 for sample, mean in ((a, mean_a), (b, mean_b))
    ]
    total = sum(variance)
    freedom = total**2 / sum(v**2 / (len(s) - 1) for v, s in zip(variance, (a, b), strict=True))
    reach = stats.t.ppf(0.975, freedom) * math.sqrt(total)
    ratio = mean_b / mean_a
    return Verdict(
        tool, ratio, ratio * math.exp(-reach), ratio * math.exp(reach), len(a) + len(b), seconds
    )
