"""The calibration: how honest ensign is, beside other tools.

Writes docs/background/calibration.md.

    python bench/calibrate.py              everything, more than an hour; nothing else may run
    python bench/calibrate.py --only aa    one section; the others keep their last results

Each run of each comparison is reported; none is repeated. Raw results: bench/results/*.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis_slices
import redis_twins
import statistics_speed
from calibration_page import render
from material import write_inputs
from tools import Verdict, ensign, hyperfine, pyperf

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
BUDGET_S = 5.0

Rows = list[dict[str, object]]


@dataclass(frozen=True)
class Bench:
    """What every section gets: the input files, and how many repetitions a full run has."""

    inputs: dict[str, Path]
    repetitions: int

    def gzip(self, name: str) -> str:
        """Compress one of the inputs."""
        return f"gzip -6 -c {self.inputs[name]}"

    @property
    def python(self) -> str:
        """An interpreter, of another kind than gzip: its hash seed makes each execution differ."""
        return "/usr/bin/python3 -S -c 'sum(hash(str(i)) & 7 for i in range(600000))'"


def runs_that_fit(command: str) -> int:
    """Runs of one command with which a comparison of two takes the budget."""
    probe = hyperfine(command, command, 3)
    return max(3, round(BUDGET_S / (probe.seconds / 8) / 2))


def false_alarms(bench: Bench) -> Rows:
    """A against an identical A, for two programs, by each tool in turn within the same minutes."""
    rows: Rows = []
    for program, command in (("gzip", bench.gzip("base")), ("python", bench.python)):
        fits = runs_that_fit(command)
        for repetition in range(bench.repetitions):
            verdicts = [
                ensign(command, command, "--budget", f"{BUDGET_S:g}s", "--seed", str(repetition)),
                hyperfine(command, command, fits),
            ]
            if repetition < bench.repetitions // 8:
                verdicts.append(pyperf(command, command, fits))
            rows += [{"program": program, **verdict.as_json()} for verdict in verdicts]
            say(program, repetition, bench.repetitions, verdicts)
    return rows


def detection(bench: Bench) -> Rows:
    """B with 1 % and 2 % more input; about 0.7 and 1.4 % more CPU time, see the estimates."""
    rows: Rows = []
    base = bench.gzip("base")
    fits = runs_that_fit(base)
    for planted in ("more1", "more2"):
        for repetition in range(bench.repetitions // 2):
            verdicts = [
                ensign(
                    base,
                    bench.gzip(planted),
                    "--budget",
                    f"{BUDGET_S:g}s",
                    "--seed",
                    str(repetition),
                ),
                hyperfine(base, bench.gzip(planted), fits),
            ]
            rows += [{"program": planted, **verdict.as_json()} for verdict in verdicts]
            say(planted, repetition, bench.repetitions // 2, verdicts)
    return rows


def time_to_precision(bench: Bench) -> Rows:
    """How long until ± 0.5 %; hyperfine for the same time, its own time by the square root law."""
    rows: Rows = []
    base = bench.gzip("base")
    for repetition in range(bench.repetitions // 4):
        precise = ensign(
            base, base, "--precision", "0.5%", "--budget", "120s", "--seed", str(repetition)
        )
        usual = hyperfine(
            base, base, max(3, round(runs_that_fit(base) * precise.seconds / BUDGET_S))
        )
        rows += [{"program": "gzip", **verdict.as_json()} for verdict in (precise, usual)]
        say("precision", repetition, bench.repetitions // 4, [precise, usual])
    return rows


def statistics(_: Bench) -> Rows:
    """Statistics on a million samples."""
    return statistics_speed.measure()


def slices(_: Bench) -> Rows:
    """The bias of slicing: gcc -O2 against clang -O3 -flto Redis at several slice lengths."""
    return redis_slices.measure()


def twins(bench: Bench) -> Rows:
    """Is any place among the variants of a race favored? Seven copies of one Redis."""
    return redis_twins.measure(bench.repetitions)


SECTIONS: dict[str, Callable[[Bench], Rows]] = {
    "aa": false_alarms,
    "detection": detection,
    "precision": time_to_precision,
    "statistics": statistics,
    "slices": slices,
    "twins": twins,
}


def say(what: str, repetition: int, of: int, verdicts: list[Verdict]) -> None:
    """One line per repetition, so that a long run can be followed."""
    said = ", ".join(f"{v.tool} {v.low:.4f} to {v.high:.4f} in {v.seconds:.1f} s" for v in verdicts)
    sys.stdout.write(f"{what} {repetition + 1}/{of}: {said}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the sections asked for, keep their rows, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, action="append")
    parser.add_argument("--repetitions", type=int, default=40)
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ensign-bench-") as folder:
        bench = Bench(write_inputs(Path(folder)), arguments.repetitions)
        for name in arguments.only or SECTIONS:
            start = time.time()
            rows = SECTIONS[name](bench)
            record = {"section": name, "started_unix_s": start, "seconds": time.time() - start}
            text = json.dumps(
                {**record, "repetitions": arguments.repetitions, "rows": rows}, indent=1
            )
            (RESULTS / f"{name}.json").write_text(text + "\n")
    (ROOT / "docs" / "background" / "calibration.md").write_text(render(RESULTS))


if __name__ == "__main__":
    main()
