"""Many builds in groups against all in one race: half-widths side by side, told and reached.

python bench/groups.py --budget 45m        # for each of the two; what was raced is not raced again

Twelve tests of studies/redis/full.toml with all its builds, once with `group_size = "auto"` and
once with "all", for the same time. Both are studies in `--folder`: after Ctrl-C the same command
goes on. What comes out goes to bench/results/groups.json.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ensign.model.results import Result
from ensign.tools import bundles
from tools import ENSIGN

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "studies" / "redis" / "full.toml"
RESULTS = ROOT / "bench" / "results" / "groups.json"
WAYS = {"groups": "auto", "one": "all"}
# One of each group of commands, quick and slow, with and without pipelines.
TESTS = (
    "1Mkeys-load-string-with-10B-values-pipeline-10",
    "1Mkeys-string-get-10B-pipeline-100",
    "1Mkeys-string-incrby",
    "1Mkeys-string-setex-100B-pipeline-10",
    "10Mkeys-load-hash-5-fields-with-100B-values",
    "1key-hash-hscan-50-fields-10B-values",
    "1Mkeys-load-list-with-100B-values",
    "1key-list-100-elements-lrange-all-elements-pipeline-10",
    "1key-set-100-mixed-elements-listpack-sadd-integer",
    "1key-zincrby-1M-elements-score-collision-pipeline-10",
    "1Mkeys-load-stream-5-fields-with-100B-values",
    "playbook-rate-limiting-lua-100k-sessions",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Races what is missing, and writes and prints what came out."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    asked.add_argument("--budget", default="45m", help="racing time of each of the two")
    asked.add_argument("--folder", type=Path, default=ROOT / ".groups", help="for the studies")
    asked.add_argument("--write-only", action="store_true", help="write the studies, race nothing")
    given = asked.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    paths = {way: write_study(given.folder, way, given.budget) for way in WAYS}
    if given.write_only:
        sys.stdout.writelines(f"{path}\n" for path in paths.values())
        return
    for path in paths.values():
        subprocess.run([ENSIGN, "run", path], check=True)
    rows = {way: _row(path) for way, path in paths.items()}
    RESULTS.write_text(json.dumps({"budget": given.budget, **rows}, indent=1) + "\n")
    sys.stdout.write(table(rows))


def write_study(folder: Path, way: str, budget: str) -> Path:
    """The full study with these tests, raced that way; the file is the same each time."""
    text = STUDY.read_text()
    listed = "".join(f'    "{name}",\n' for name in TESTS)
    head, suite = text.split("[suite]", 1)
    suite = re.sub(r"(?s)\ntests = \[\n.*?\n\]", f"\ntests = [\n{listed}]", suite, count=1)
    head = head.replace('name = "redis-full"', f'name = "redis-{way}"')
    head = re.sub(r"(?m)^(rounds|confirm) = .*\n", "", head)
    head = re.sub(r"(?s)\nslice_check = \[\n.*?\n\]", "", head)
    # Half-widths are no matter of Redis' own tests, which take half an hour.
    head = re.sub(r"(?s)\n\[check\]\n.*?(?=\n\[)", "", head)
    head = re.sub(r"(?m)^budget = .*$", f'budget = "{budget}"\ngroup_size = "{WAYS[way]}"', head)
    path = folder / f"{way}.toml"
    path.write_text(f"{head}[suite]{suite}")
    lock = STUDY.with_suffix(".lock.json")
    shutil.copy(lock, path.with_suffix(".lock.json"))
    return path


def _row(path: Path) -> dict[str, object]:
    with bundles.opened(path) as found:
        return row_of(found.result())


def row_of(result: Result) -> dict[str, object]:
    """Told and reached half-widths (of log ratios), rounds, and seconds of racing."""
    told, reached = result.expected, result.reached
    return {
        "rounds": result.rounds_done,
        "racing_s": result.racing_s,
        "told": None if told is None else {"suite": told.suite, "workload": told.workload},
        "reached": None
        if reached is None
        else {"suite": reached.suite, "workload": reached.workload},
    }


def table(rows: dict[str, dict[str, object]]) -> str:
    """Markdown, in percent."""
    lines = ["| | rounds | racing | geometric mean: told, reached | single test: told, reached |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for way, row in rows.items():
        pairs = []
        for which in ("suite", "workload"):
            values = [_share(row[when], which) for when in ("told", "reached")]
            pairs.append(" ".join(values))
        seconds = float(str(row["racing_s"]))
        lines.append(f"| {way} | {row['rounds']} | {seconds:.0f} s | {' | '.join(pairs)} |")
    return "\n".join(lines) + "\n"


def _share(precision: object, which: str) -> str:
    return f"{precision[which]:.2%}" if isinstance(precision, dict) else "-"


if __name__ == "__main__":
    main()
