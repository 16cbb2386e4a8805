"""Shares of functions told in three ways beside the truth: looks of a race, perf, callgrind.

    python bench/sampling_methods.py FOLDER [--budget 30s]

The program's functions are one code under six names, with known parts of the work. callgrind counts
instructions; perf samples by the CPU's clock, where the kernel permits it. Shares are of
all six functions. Results go to `bench/results/sampling_methods.json`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from function_shares import WORK, build, raced

_RESULTS = Path(__file__).parent / "results" / "sampling_methods.json"
_WORDS, _PERF_RUNS = "400", 20
# `one` runs for some more than the others: see the program.
_TRUE = {**WORK, "one": WORK["one"] * (1 + 3 / int(_WORDS))}


def by_race(paths: dict[str, Path], budget: str) -> Counter[str]:
    """Nanoseconds of each function, and of both programs, which are the same."""
    (told,) = raced("explain", paths, budget, 1, "1ms")["functions"]
    rows = {row["name"]: row for row in told["by_symbol"] if not row["file"]}
    print("samples:", told["samples"])
    return Counter({name: rows[name]["before_ns"] + rows[name]["after_ns"] for name in WORK})


def by_perf(program: Path) -> Counter[str]:
    """Samples of each function."""
    data = program.with_name("perf.data")
    argv = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4000", "-o", str(data)]
    show = ["perf", "script", "-i", str(data), "-F", "ip,sym"]
    found: Counter[str] = Counter()
    for _ in range(_PERF_RUNS):
        subprocess.run([*argv, "--", str(program), _WORDS], check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run(show, check=True, capture_output=True, text=True).stdout
        found.update(word for line in said.splitlines() for word in line.split()[1:2])
    print("samples:", found.total())
    return Counter({name: found[name] for name in WORK})


def by_callgrind(program: Path) -> Counter[str]:
    """Instructions of each function, without those that it calls."""
    out = program.with_name("callgrind.out")
    argv = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
    subprocess.run([*argv, str(program), _WORDS], check=True, stdout=subprocess.DEVNULL)
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
    function, skips = "", False
    for line in out.read_text().splitlines():
        named = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line)
        cost = re.fullmatch(r"(?:[+-]?\d+|\*) (\d+)", line)
        if named:
            names.setdefault(named[2], named[3] or "")
            function = function if named[1] else names[named[2]]
        elif line.startswith("calls="):
            skips = True  # what follows is the called function's
        elif cost and skips:
            skips = False
        elif cost:
            found[function] += int(cost[1])
    return Counter({name: found[name] for name in WORK})


def main() -> None:
    """Asks all three, and writes shares with their errors in points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", default="30s")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    paths = build(asked.folder, 0)
    ways: dict[str, Callable[[], Counter[str]]] = {
        "race": partial(by_race, paths, asked.budget),
        "perf": partial(by_perf, paths["before"]),
        "callgrind": partial(by_callgrind, paths["before"]),
    }
    document: dict[str, dict[str, object]] = {}
    for name, ask in ways.items():
        began = time.monotonic()
        try:
            found = ask()
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            document[name] = {"unknown": str(error)}
            continue
        shares = {
            each: {
                "true": work / sum(_TRUE.values()),
                "told": found[each] / found.total(),
                "error_points": 100 * (found[each] / found.total() - work / sum(_TRUE.values())),
            }
            for each, work in _TRUE.items()
        }
        document[name] = {"seconds": time.monotonic() - began, "shares": shares}
    _RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
