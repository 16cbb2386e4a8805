"""How often it is found that one of two programs has 5 % more work.

    python bench/everyday_planted.py            nothing else may run
    python bench/everyday_planted.py --fresh    do not go on where the last run stopped

Results: bench/results/everyday_planted.json. Where the budget is refused, the one that the message
names is tried: `refused_first` says so. Where the race is unclear and says which budget would tell,
that is tried: the row has both, `at_first` the shorter one. To be found: 4 of 5 of each kind.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from everyday import Material, Results, Said, compare, planted_kinds, row_of, spinning

_NEAREST = re.compile(r"or (\d+)s for \d+")
_TOLD = re.compile(r"about --budget (\S+)$")


def main() -> int:
    """Run what is missing, say what came out; 0 where it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spin", type=int, default=0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--kind", action="append", help="these alone")
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args()
    results = Results.opened("everyday_planted", fresh=asked.fresh)
    with tempfile.TemporaryDirectory(prefix="ensign-bench-") as folder, spinning(asked.spin):
        material = Material(Path(folder))
        for kind in planted_kinds(material):
            if asked.kind and kind.name not in asked.kind:
                continue
            pair = kind.command(1.0), kind.command(1.05)
            for repetition in range(asked.repetitions):
                if results.has(kind=kind.name, repetition=repetition):
                    continue
                options = ("--seed", str(repetition), *kind.options)
                said = compare(*pair, ("--budget", asked.budget, *options))
                refused = said.words if not said.result else ""
                told = _NEAREST.search(refused)
                if told is not None:
                    said = compare(*pair, ("--budget", f"{told[1]}s", *options))
                row = {**row_of(said), "refused_first": refused}
                longer = told_budget(said)
                if longer:
                    said = compare(*pair, ("--budget", longer, *options))
                    row = {**row_of(said), "refused_first": refused, "at_first": row}
                results.add(kind=kind.name, repetition=repetition, **row)
        results.note_missing(material.missing)
    return summary(results)


def told_budget(said: Said) -> str:
    """The budget that an unclear race says would tell; empty where it says none."""
    for finding in said.result.get("findings", ()):  # type: ignore[attr-defined]
        if finding["code"] == "longer-would-tell" and (told := _TOLD.search(finding["text"])):
            return told[1]
    return ""


def summary(results: Results) -> int:
    """How often each was found."""
    measured = [row for row in results.rows if "left_out" not in row]
    failed = 0
    for kind in dict.fromkeys(row["kind"] for row in measured):
        mine = [row for row in measured if row["kind"] == kind]
        found = sum(row.get("direction") == "slower" for row in mine)
        wrong = sum(row.get("direction") == "faster" for row in mine)
        longer = [row for row in mine if "at_first" in row]
        sys.stdout.write(
            f"{kind}: found {found} of {len(mine)}, called faster {wrong}; "
            f"{len(longer)} with the longer budget that the first race told\n"
        )
        failed += found < 0.8 * len(mine) or wrong > 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
