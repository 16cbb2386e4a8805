"""How often twelve kinds of commands, against themselves, are said to differ.

    python bench/everyday_aa.py             idle machine; nothing else may run
    python bench/everyday_aa.py --spin 3    the same under three spinning processes
    python bench/everyday_aa.py --fresh     do not go on where the last run stopped

Results: bench/results/everyday_aa.json, or everyday_aa_spin3.json. At most 7 of 72 false
alarms are allowed (at 5 % each, 3 % of such benches have more), and metric and mode are to be the
same in all repetitions of a kind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from everyday import Material, Results, compare, everyday_kinds, row_of, spinning


def main() -> int:
    """Run what is missing, say what came out; 0 where it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spin", type=int, default=0)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--budget", default="5s")
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args()
    name = f"everyday_aa_spin{asked.spin}" if asked.spin else "everyday_aa"
    results = Results.opened(name, fresh=asked.fresh)
    with tempfile.TemporaryDirectory(prefix="ensign-bench-") as folder, spinning(asked.spin):
        material = Material(Path(folder))
        for kind in everyday_kinds(material):
            command = kind.command(1.0)
            for repetition in range(asked.repetitions):
                if results.has(kind=kind.name, repetition=repetition):
                    continue
                options = ("--budget", asked.budget, "--seed", str(repetition), *kind.options)
                row = row_of(compare(command, command, options))
                results.add(kind=kind.name, repetition=repetition, **row)
        results.note_missing(material.missing)
    return summary(results)


def summary(results: Results) -> int:
    """False alarms, refusals, and kinds whose metric or mode changed."""
    measured = [row for row in results.rows if "left_out" not in row]
    alarms = [row for row in measured if row.get("direction") in ("faster", "slower")]
    refused = [row for row in measured if row.get("refused")]
    unsteady = []
    for kind in dict.fromkeys(row["kind"] for row in measured):
        chosen = {(r.get("metric"), r.get("mode")) for r in measured if r["kind"] == kind}
        sys.stdout.write(f"{kind}: {sorted(map(str, chosen))}\n")
        unsteady += [kind] if len(chosen) > 1 else []
    sys.stdout.write(
        f"{len(alarms)} of {len(measured)} claim a difference, {len(refused)} were refused; "
        f"metric or mode changed: {unsteady or 'never'}\n"
    )
    return int(len(alarms) > 7 or bool(unsteady) or bool(refused))  # noqa: PLR2004


if __name__ == "__main__":
    sys.exit(main())
