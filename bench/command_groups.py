"""Commands of known cost in groups and together: half-widths and errors, in pairs of races.

python bench/command_groups.py [--pairs 9] [--budget 45s]

Seventeen commands that count to 350 to 366 million: what each costs over the first is its number
over the first's. Prints a row for each race, and the ratios of the two ways with 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

from tools import ENSIGN

_SOURCE = """#include <stdlib.h>
int main(int argc, char **argv) {
    volatile unsigned long sum = 0;
    for (unsigned long n = atol(argv[1]) * 1000000UL, i = 0; argc > 1 && i < n; i++) sum += i;
    return 0;
}
"""
FIRST, COMMANDS, GROUP = 350, 17, 6
WAYS: dict[str, tuple[str, ...]] = {"together": (), "groups": ("--group-size", str(GROUP))}


def raced(folder: Path, options: tuple[str, ...], budget: str) -> tuple[float, float]:
    """Mean half-width of the log ratios, and root mean square of their errors."""
    numbers = ",".join(str(FIRST + each) for each in range(COMMANDS))
    argv = [str(ENSIGN), "compare", "-L", "N", numbers, "./count {N}", "--budget", budget]
    subprocess.run(
        [*argv, *options, "--json", "out.json"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    rows = json.loads((folder / "out.json").read_text())["comparisons"]
    widths = [math.log(row["high"] / row["low"]) / 2 for row in rows]
    truths = [math.log(int(row["variant"].split()[-1]) / FIRST) for row in rows]
    errors = [math.log(row["ratio"]) - truth for row, truth in zip(rows, truths, strict=True)]
    return float(np.mean(widths)), float(np.sqrt(np.mean(np.square(errors))))


def main() -> None:
    """Races pairs, each in a random order, and compares the two ways."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--budget", default="45s")
    asked = parser.parse_args()
    order = random.Random(5)  # an order is no secret
    logs: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "count.c").write_text(_SOURCE)
        subprocess.run(["gcc", "-O1", "-o", "count", "count.c"], cwd=folder, check=True)
        for pair in range(asked.pairs):
            for way in order.sample(list(WAYS), len(WAYS)):
                width, error = raced(folder, WAYS[way], asked.budget)
                logs[way].append((math.log(width), math.log(error)))
                print(f"{pair} {way:9} half-width {width:.4f} error {error:.4f}", flush=True)
    differences = np.array(logs["groups"]) - np.array(logs["together"])
    for name, column in zip(("half-width", "error"), differences.T, strict=True):
        middle, half = column.mean(), stats.sem(column) * stats.t.ppf(0.975, len(column) - 1)
        low, ratio, high = (math.exp(each) for each in (middle - half, middle, middle + half))
        print(f"{name} in groups over together: {ratio:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
