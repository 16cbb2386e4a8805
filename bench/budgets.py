"""Whether a budget is a promise: 3 s, 30 s and 10 min, with a precision asked for and without.

    python bench/budgets.py                    half an hour and more; nothing else may run
    python bench/budgets.py --budget 3s        these alone
    python bench/budgets.py --fresh            do not go on where the last run stopped

Results: bench/results/budgets.json. `used` is the time used over the budget: to be at most 1.05; a
row is `short` where the race ended unclear, or above the precision asked for, though another
execution like its last ones would have fitted. What cannot fit must be refused within 10 s or a
fifth of the budget, with the budget that would do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from ensign.model.units import parse_duration_ns
from everyday import Material, Results, Said, compare, python_loop, row_of

_BUDGETS = ("3s", "30s", "10m")
_PRECISIONS = ("", "0.1%", "0.5%", "2%")
_SLACK = 1.05


def main() -> int:
    """Run what is missing, say what came out; 0 where every budget was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", action="append", choices=_BUDGETS)
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args()
    results = Results.opened("budgets", fresh=asked.fresh)
    with tempfile.TemporaryDirectory(prefix="ensign-bench-") as folder:
        material = Material(Path(folder))
        work = material.compiled()
        commands = {
            "3 ms": f"{work} 1500000",
            "0.3 s": python_loop(1_000_000)(1.0),
            "sleeping": f"{work} 1000000 1 100",
            "10 s": f"{work} 5000000000",
        }
        for budget in asked.budget or _BUDGETS:
            for precision in _PRECISIONS:
                for name, command in commands.items():
                    keys = {"command": name, "budget": budget, "asked": precision}
                    if not results.has(**keys):
                        results.add(**keys, **row(compare(*options(command, budget, precision))))
    return summary(results)


def options(command: str, budget: str, precision: str) -> tuple[str, str, tuple[str, ...]]:
    """The command against itself."""
    wish = ("--precision", precision) if precision else ()
    return command, command, ("--budget", budget, *wish)


def row(said: Said) -> dict[str, object]:
    """Share of the budget, and whether it ended while another execution fitted."""
    kept = row_of(said)
    if not said.result:
        return kept
    trials: list[dict[str, int]] = said.result["trials"]  # type: ignore[assignment]
    used_s, budget_s = float(kept["used_s"]), float(kept["budget_s"])  # type: ignore[arg-type]
    longest_s = max(trial["wall_ns"] for trial in trials[-4:]) / 1e9
    stopped_early = kept["stopped"] == "budget" and used_s + longest_s < 0.98 * budget_s
    return {**kept, "used": used_s / budget_s, "short": stopped_early}


def summary(results: Results) -> int:
    """What broke its promise."""
    broken = []
    for each in results.rows:
        what = f"{each['command']}, {each['budget']}, precision {each['asked'] or 'not asked'}"
        if each.get("refused"):
            longest_s = max(12.0, parse_duration_ns(str(each["budget"])) / 5e9 + 2)
            late = float(each["seconds"]) > longest_s  # type: ignore[arg-type]
            good = not late and "pass --budget" in str(each["words"])
        else:
            good = float(each["used"]) <= _SLACK and not each["short"]  # type: ignore[arg-type]
        broken += [] if good else [what]
    sys.stdout.write(f"{len(results.rows)} budgets, broken: {broken or 'none'}\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
