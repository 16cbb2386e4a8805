"""Do samples of a race tell the truth? Planted shares against those that are told, and the cost.

    python bench/function_shares.py FOLDER [--races 20] [--budget 10s]

A program spends its time in six functions of equal code; in the second build one of them does
more. Each race gives, for each function, what it adds (the truth is known from counts of the work)
and whether the interval holds it; half of the races run without samples, and their ratios are
compared with those of the others. Results go to `bench/results/function_shares.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path
from typing import Any

from tools import ENSIGN

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#define WORK(name, factor) __attribute__((noipa)) unsigned long name(unsigned long n) \\
  { unsigned long s = 1; for (unsigned long i = 0; i < n * factor; i++) \\
    s = s * 6364136223846793005UL + 1442695040888963407UL; return s; }
WORK(one, ONE) WORK(two, 20) WORK(three, 15) WORK(four, 8) WORK(five, 4) WORK(six, 1)
int main(int count, char **words) {
  unsigned long n = atol(words[1]), sum = 0;
  for (int k = 0; k < 1000; k++)
    sum += one(n + k % 7) + two(n) + three(n) + four(n) + five(n) + six(n);
  printf("%d\\n", sum == 42);
}
"""
WORK = {"one": 50, "two": 20, "three": 15, "four": 8, "five": 4, "six": 1}
_RESULTS = Path(__file__).parent / "results" / "function_shares.json"


def build(folder: Path, more: int) -> dict[str, Path]:
    """Both programs: `one` does so much more in the second."""
    source = folder / "p.c"
    source.write_text(PROGRAM)
    paths = {}
    for name, one in (("before", WORK["one"]), ("after", WORK["one"] + more)):
        paths[name] = folder / name
        argv = ["cc", "-O2", "-g", f"-DONE={one}", str(source), "-o", str(paths[name])]
        subprocess.run(argv, check=True)
    return paths


def raced(verb: str, paths: dict[str, Path], budget: str, seed: int, slices: str) -> Any:
    """The result of one race, as JSON."""
    commands = [f"{path} 400" for path in paths.values()]
    out = paths["before"].with_name(f"{verb}.json")
    argv = [str(ENSIGN), verb, "--budget", budget, "--seed", str(seed)]
    argv += ["--slice", slices, "--metric", "cpu", "--race-same", "--json", str(out), *commands]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def truth(more: int) -> dict[str, float]:
    """What each function adds, as a share of all work before."""
    return {name: (more if name == "one" else 0) / sum(WORK.values()) for name in WORK}


def main() -> None:
    """Races, and writes what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--races", type=int, default=20)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--slice", default="2ms")
    parser.add_argument("--more", type=int, default=10)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    paths, true = build(asked.folder, asked.more), truth(asked.more)
    held = dict.fromkeys(true, 0)
    errors: dict[str, list[float]] = {name: [] for name in true}
    samples: list[int] = []
    ratios: dict[str, list[float]] = {"explain": [], "compare": []}
    for seed in range(asked.races):
        for verb, found in ratios.items():
            result = raced(verb, paths, asked.budget, seed, asked.slice)
            found.append(math.log(result["comparisons"][0]["ratio"]))
        told = raced("explain", paths, asked.budget, 1000 + seed, asked.slice)["functions"][0]
        samples.append(sum(told["samples"]))
        rows = {row["name"]: row for row in told["by_symbol"] if not row["file"]}
        for name, share in true.items():
            row = rows.get(name, {"difference": 0.0, "low": 0.0, "high": 0.0})
            errors[name].append(row["difference"] - share)
            held[name] += row["low"] <= share <= row["high"]
    means = {verb: statistics.fmean(found) for verb, found in ratios.items()}
    between = means["explain"] - means["compare"]
    error = math.sqrt(sum(statistics.variance(found) / len(found) for found in ratios.values()))
    document = {
        "races": asked.races,
        "budget": asked.budget,
        "slice": asked.slice,
        "samples": statistics.fmean(samples),
        "functions": {
            name: {
                "true": share,
                "mean_error": statistics.fmean(errors[name]),
                "sd": statistics.stdev(errors[name]),
                "held": held[name],
            }
            for name, share in true.items()
        },
        "ratio_with_samples_over_without": math.expm1(between),
        "its_standard_error": error,
    }
    _RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
