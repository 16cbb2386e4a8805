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
_WORDS = "400"


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
    subprocess.run([*argv, "--", str(program), _WORDS], check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run(
        ["perf", "script", "-i", str(data), "-F", "sym"], check=True, capture_output=True, text=True
    )
    return Counter(line.strip() for line in said.stdout.splitlines() if line.strip() in WORK)


def by_callgrind(program: Path) -> Counter[str]:
    """Instructions of each function, without those that it calls."""
    out = program.with_name("callgrind.out")
    argv = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
    subprocess.run([*argv, str(program), _WORDS], check=True, stdout=subprocess.DEVNULL)
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
    function, skips = "", False
    for line in out.read_text().splitlines():
        named = re.match(r"fn=\((\d+)\)(?: (.*))?", line)
        cost = re.match(r"[+*-]?\d* ?\S* ?(\d+)$", line)
        if named:
            names.setdefault(named[1], named[2] or "")
            function = names[named[1]]
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
                "true": work / sum(WORK.values()),
                "told": found[each] / found.total(),
                "error_points": 100 * (found[each] / found.total() - work / sum(WORK.values())),
            }
            for each, work in WORK.items()
        }
        document[name] = {"seconds": time.monotonic() - began, "shares": shares}
    _RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
