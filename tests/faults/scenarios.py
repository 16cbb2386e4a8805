"""The commands that are made to fail, each small enough to be run hundreds of times."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAMS = Path(__file__).parent.parent / "end_to_end" / "programs"

# The build of -O2 does three times the work: whoever says that it is faster is wrong.
_STUDY = """\
name = "small"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["make", "CC={cc}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]]
artifact = "spin"
deadline = "60s"

[axes]
compiler = ["gcc-12"]
optimization = ["-O1", "-O2"]

[baseline]
optimization = "-O1"

[race]
budget = "120s"
rounds = 3
metric = "cpu"

[[workloads]]
name = "short"
command = ["{artifact}", "2000000"]

[[workloads]]
name = "long"
command = ["{artifact}", "4000000"]
"""
_MAKEFILE = """\
WORK = 1
ifneq (,$(findstring -O2,$(CFLAGS)))
WORK = 3
endif
spin: spin.o
\t$(CC) $(CFLAGS) -o spin spin.o $(LDFLAGS)
spin.o: spin.c
\t$(CC) $(CFLAGS) -DWORK=$(WORK) -c spin.c
"""
_BUILT = {"built": "built", "cached": "built"}
SLOWER = ("gcc-12-O2", "dear")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command, what must be there before it, and what must be the same whenever it succeeds."""

    name: str
    argv: tuple[str, ...]
    prepare: Callable[[Path], None]
    outcome: Callable[[Path], Json]
    before: tuple[str, ...] | None = None


def _write_study(folder: Path) -> None:
    (folder / "study.toml").write_text(_STUDY)
    (folder / "source").mkdir()
    (folder / "source" / "Makefile").write_text(_MAKEFILE)
    shutil.copy(_PROGRAMS / "spin.c", folder / "source")


def _write_programs(folder: Path) -> None:
    for name, work in (("cheap", 1), ("dear", 3)):
        argv = ["gcc-12", "-O1", f"-DWORK={work}", "-o", name, str(_PROGRAMS / "spin.c")]
        subprocess.run(argv, cwd=folder, check=True)


def claims(result: Json) -> list[str]:
    """What a result says that is not so."""
    said = [*result["comparisons"], *result.get("suite", ()), *result.get("workloads", ())]
    return [
        f"{each['variant']} is said to be faster"
        for each in said
        if each["variant"] in SLOWER and each["direction"] == "faster"
    ]


def _of_study(folder: Path) -> Json:
    result = json.loads((folder / "results.json").read_text())
    trials = sorted(path.name for path in folder.glob(".ensign/small/trials/*/*.csv.gz"))
    builds = {
        each["variant"]: (_BUILT.get(each["status"]), each["check"], each["loadable_sha256"])
        for each in result["builds"]
    }
    raced = sorted({(each["workload"], each["variant"]) for each in result["variants"]})
    source = result["experiment"]["source"]["tree_sha256"]
    locked = json.loads((folder / "study.lock.json").read_text())
    rounds = result["experiment"]["executions"]
    page = (folder / ".ensign/small/report.html").exists()
    return {
        "builds": builds, "source": source, "locked": locked, "raced": raced, "trials": trials,
        "rounds": rounds, "failed": result["failed"], "claims": claims(result), "page": page,
        "findings": _lasting(result),
    }  # fmt: skip


def _lasting(result: Json) -> list[str]:
    """The findings that do not depend on how busy the machine was: errors, and what is missing."""
    return sorted({each["code"] for each in result["findings"] if each["severity"] == "error"})


def _of_compare(folder: Path) -> Json:
    result = json.loads((folder / "results.json").read_text())
    raced = sorted({(each["workload"], each["variant"]) for each in result["variants"]})
    return {
        "raced": raced, "rounds": result["experiment"]["executions"], "failed": result["failed"],
        "trials": len(result["trials"]), "claims": claims(result), "findings": _lasting(result),
        "page": (folder / "results.html").exists(),
    }  # fmt: skip


def _of_report(folder: Path) -> Json:
    result = json.loads((folder / "results.json").read_text())
    return {"result": result, "claims": claims(result)}


def _of_bundle(folder: Path) -> Json:
    return {"sha256": hashlib.sha256((folder / "study.zip").read_bytes()).hexdigest()}


_RUN = ("run", "study.toml", "--json", "results.json")
SCENARIOS = {
    each.name: each
    for each in (
        Scenario("study", _RUN, _write_study, _of_study),
        Scenario(
            "compare",
            (
                "compare", "./cheap 8000000", "./dear 8000000", "--name", "cheap", "--name", "dear",
                "--runs", "6", "--json", "results.json", "--html", "results.html",
            ),
            _write_programs,
            _of_compare,
        ),
        Scenario(
            "report", ("report", "study.toml", "--json", "results.json", "--html", "results.html"),
            _write_study, _of_report, before=_RUN,
        ),
        Scenario(
            "bundle", ("bundle", "study.toml", "--output", "study.zip"),
            _write_study, _of_bundle, before=_RUN,
        ),
    )
}  # fmt: skip
