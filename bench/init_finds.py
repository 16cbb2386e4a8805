"""What `ensign init` finds in a list of packages, with all of its rules and without each of some.

    bench/init_finds.py FOLDER LIST [--without RULE ...] > OUT.tsv

FOLDER has `trees/PACKAGE`, as bench/init_packages.py leaves them; LIST is its list. A line for each
package: how init ended, what it chose to race, what that reads (a file of the tree, `made.FORMAT`,
nothing), and the seconds that it took. With `--without` a rule finds nothing; a format is the rule
`made.FORMAT`. What a rule decides is where the lines differ: bench/results/init_rules.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ensign.cli.main import run_command_line
from ensign.tools.init import documented_commands, exploration, first_study, made_samples

_NEVER = re.compile(r"(?!)")
_LONGEST_S = 400
# Rules that are regular expressions of `documented_commands`, by what a reader would call them.
_PATTERNS = {"list of commands": "_COMMANDS", "file-like words": "_FILE"}


def without(rule: str) -> None:
    """Let a rule find nothing in this process. KeyError."""
    if rule.startswith("made."):
        suffix = rule.removeprefix("made.")
        known = made_samples.FORMATS
        known[suffix] = replace(known[suffix], names=())
        first_study.ANYTHING = tuple(each for each in first_study.ANYTHING if each != suffix)
    elif rule == "markup of manual pages":
        for module in (documented_commands, exploration):
            vars(module)["plain_text"] = str
    else:
        setattr(documented_commands, _PATTERNS[rule], _NEVER)


def found_in(tree: Path, system: str) -> list[str]:
    """One line's cells, without the package's name."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / tree.name
        shutil.copytree(tree, copy, symlinks=True)
        log, began = Path(scratch) / "log", time.monotonic()
        status = _alone(
            lambda: run_command_line(["init", str(copy), "--force", "--system", system]), log
        )
        took = f"{time.monotonic() - began:.0f}"
        written = copy / "ensign.toml"
        if not written.exists():
            last = (log.read_text(errors="replace").strip().splitlines() or [""])[-1]
            return [str(status), "", "", took, last[:160].replace(str(copy), "TREE")]
        study = tomllib.loads(written.read_text())
        workload = study["workloads"][0]
        command = " ".join(workload.get("command", []))
        made = re.search(r"ensign-input(\S*) was made up", written.read_text())
        return [str(status), command, f"made{made[1]}" if made else "", took, ""]


def _alone(call: Callable[[], int], log: Path) -> int:
    """In a process of its own, whose output goes to a file, and which ends in the end."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(_LONGEST_S)
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            status = 70
            with contextlib.suppress(BaseException):
                status = call()
            file.flush()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """Try all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--without", action="append", default=[])
    asked = parser.parse_args()
    for rule in asked.without:
        without(rule)
    for line in asked.list.read_text().splitlines():
        system, package = line.split("\t")[:2]
        cells = found_in(asked.folder / "trees" / package, system)
        sys.stdout.write("\t".join((package, *cells)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
