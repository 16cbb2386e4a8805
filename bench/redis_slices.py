"""Does the length of a slice bias the ratio? Two real Redis builds at several slice lengths.

A slice starts with colder caches; a difference in what two builds must refill biases their ratio
by that difference over the slice's length, of either sign
(docs/background/statistics/ratio-of-totals.md).
"""

from __future__ import annotations

import sys
from pathlib import Path

from studied_programs import built_programs
from tools import ensign

STUDY = Path(__file__).parents[1] / "studies" / "redis" / "quick.toml"
A, B = "gcc-12-O2", "clang-19-O3-lto"
BUDGET = "60s"
LENGTHS = (
    ("2ms", ()),
    ("5ms", ()),
    ("20ms", ()),
    ("100ms", ()),
    ("alternating", ("--mode", "alternating")),
)
LOADS = (("get, pipeline 1", "1", "60000"), ("get, pipeline 16", "16", "600000"))
SERVER = (
    "{program} --port {{port}} --bind 127.0.0.1 --dir {{tmp}} --save '' --appendonly no "
    "--hz 1 --dynamic-hz no --slowlog-log-slower-than -1"
)


def measure(budget: str = BUDGET) -> list[dict[str, object]]:
    """One comparison per load and slice length, each within the same budget."""
    programs, tools = built_programs(STUDY, (A, B))
    rows: list[dict[str, object]] = []
    for load, pipeline, requests in LOADS:
        command = f"{tools['redis-benchmark']} -p {{port}} -t get -r 100000 -c 50 -q"
        fill = f"{tools['redis-benchmark']} -p {{port}} -t set -r 100000 -n 100000 -P 50 -c 50 -q"
        for length, options in LENGTHS:
            verdict = ensign(
                SERVER.format(program=programs[A]),
                SERVER.format(program=programs[B]),
                "--load",
                f"{command} -P {pipeline} -n {requests}",
                "--preload",
                fill,
                "--budget",
                budget,
                *(options or ("--slice", length)),
            )
            rows.append({"load": load, "slice": length, **verdict.as_json()})
            sys.stdout.write(f"{load}, {length}: {verdict.low:.4f} to {verdict.high:.4f}\n")
            sys.stdout.flush()
    return rows
