"""Which rules for programs that run for a fixed time decide anything: off alone, and all at once.

python bench/self_timed_rules.py [--busy N] [--rules RULE …]

Runs the tests of the rule: on simulated executions, and on everyday programs, of which some run for
a fixed time. Prints a row for each rule, with what fails without it. `--busy`: so many programs run
beside, and everyday programs alone are tried.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ensign.experiment import self_timed
from ensign.experiment.compare import planning

_ROOT = Path(__file__).resolve().parents[1]
_SIMULATED, _EVERYDAY = "tests/experiment/test_self_timed.py", "tests/everyday/test_self_timed.py"
RULES: dict[str, tuple[Any, str, object]] = {
    "it ended late: its work decided": (self_timed, "_took_longer", lambda *_: False),
    "the same span": (self_timed, "_same_span", lambda *_: False),
    "a span that may differ more where less was used": (self_timed, "_SPAN_WITH_LESS", 0.1),
    "a load that ended while it stood": (self_timed, "_ended_meanwhile", lambda *_: False),
    "first executions of the race": (planning, "by_the_first", lambda *_: ()),
    "medians of the race": (planning, "by_median", lambda *_: ()),
    "long slices where somebody waits": (planning, "clock_slice_ns", lambda usual_ns, _: usual_ns),
    "as much CPU time as when not followed": (self_timed, "_ABOUT_AS_MUCH", 1e9),
}
_NO_RULE = "none of these"


def failing(rule: str, files: list[str]) -> list[str]:
    """Names of the tests that fail without a rule; a process of its own runs them."""
    argv = (sys.executable, "-P", str(Path(__file__).resolve()), "--off", rule, "--files", *files)
    done = subprocess.run(argv, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if not re.search(r"^\d+ (passed|failed)", done.stdout, re.MULTILINE):
        raise SystemExit(done.stdout)
    return re.findall(r"^FAILED .*::(\S+)", done.stdout, re.MULTILINE)


def run_without(rule: str, files: list[str]) -> int:
    """Runs tests without a rule, or without any of them; with an empty one, by all of them."""
    off = RULES if rule == _NO_RULE else {rule} - {""}
    for module, name, instead in map(RULES.__getitem__, off):
        setattr(module, name, instead)
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *files]))


def main() -> None:
    """Tries each rule, on a quiet machine or beside busy programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument(
        "--rules", nargs="+", choices=[*RULES, _NO_RULE], default=[*RULES, _NO_RULE]
    )
    parser.add_argument("--off", choices=["", *RULES, _NO_RULE], help=argparse.SUPPRESS)
    parser.add_argument("--files", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.files:
        raise SystemExit(run_without(asked.off, asked.files))
    files = [_EVERYDAY] if asked.busy else [_SIMULATED, _EVERYDAY]
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(asked.busy)]
    try:
        for rule in ["", *asked.rules]:
            found = failing(rule, files)
            print(f"| {rule or 'all rules'} | {len(found)}: {', '.join(found)} |", flush=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
