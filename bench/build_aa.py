"""How often builds of the same flags are said to differ after a harmless edit, and planted work.

    python bench/build_aa.py FOLDER                   12 programs × 5 edits; goes on where cut off
    python bench/build_aa.py FOLDER --planted         5 % more work in mawk, 10 times
    python bench/build_aa.py FOLDER --program mawk --edits 2 --budget 10s --seconds 2     a trial

Nothing else may run. One study a program has a revision for each edit and relinks sampled, so it
speaks of flags; `ensign compare` and hyperfine speak of one binary each, of the same edits. At most
3 of 60 differences may be claimed about flags, and 9 of 10 plants must be found. Results:
bench/results/build_aa.md and .json, build_aa_planted.md and .json.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scipy import stats

from build_aa_page import Row, aa_page, planted_page
from edited_programs import PROGRAMS, Program, command, edit, prepared, run, write_inputs
from perturbations import edited, natural_build
from tools import ENSIGN, ensign, hyperfine

_RESULTS = Path(__file__).parent / "results"
_BRANCH = "natural"
_PLANTED = "planted"
_MAKE = ("make", "program", "gcc-12", "-O2")
_CARGO = ("cargo", "ensign-build/program", "rustc", "-O3")
_STUDY = """\
name = "{name}"

[source]
kind = "git"
url = "repository"

[build]
system = "{system}"
targets = ["program"]
artifact = "{artifact}"
runtime_files = {files}

[axes]
compiler = ["{compiler}"]
optimization = ["{level}"]
revision = {revisions}

[baseline]
revision = "natural"

{layouts}
[[workloads]]
name = "work"
command = {command}

[race]
metric = "cpu"
margin = "none"
budget = "{budget}"
seed = {seed}
"""


@dataclass(frozen=True)
class Asked:
    """What the command line asks for; `options` go to ensign."""

    folder: Path
    edits: int
    relinks: int
    budget: str
    seconds: float
    options: tuple[str, ...]


def main() -> int:
    """Measure what is missing, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", action="append", help="these alone")
    parser.add_argument("--edits", type=int, default=5)
    parser.add_argument("--relinks", type=int, default=12, help="0: as studies do by default")
    parser.add_argument("--budget", help="racing of each study (60s; 2m where work is planted)")
    parser.add_argument("--seconds", type=float, default=4, help="of each pair of binaries")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--more", type=float, default=0.05, help="work that is planted")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--share-machine", action="store_true", help="for trials: wait for no race")
    given = parser.parse_args()
    options = ("--share-machine",) if given.share_machine else ()
    budget = given.budget or ("2m" if given.planted else "60s")
    asked = Asked(
        given.folder.absolute(), given.edits, given.relinks, budget, given.seconds, options
    )
    asked.folder.mkdir(exist_ok=True)
    write_inputs(asked.folder / "inputs")
    chosen = given.program or (["mawk"] if given.planted else [each.name for each in PROGRAMS])
    programs = [each for each in PROGRAMS if each.name in chosen]
    rows: list[Row] = []
    for program in programs:
        if given.planted:
            repeated = range(given.repetitions)
            rows += [_planted(asked, program, given.more, number) for number in repeated]
        else:
            rows.append(_aa(asked, program))
    name = "build_aa_planted" if given.planted else "build_aa"
    text = planted_page(rows, given.more) if given.planted else aa_page(rows)
    (_RESULTS / f"{name}.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    (_RESULTS / f"{name}.md").write_text(text)
    print(text)
    return 0


def kept(path: Path, made: Callable[[], Row]) -> Row:
    """A row of an earlier run, or else measured now."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        row = made()
        path.write_text(json.dumps(row))
        print(
            path.stem, {k: v for k, v in row.items() if k != "pairs"}, file=sys.stderr, flush=True
        )
    found: Row = json.loads(path.read_text())
    return found


def _aa(asked: Asked, program: Program) -> Row:
    folder = asked.folder / "aa" / program.name
    revisions = [f"edit-{number}" for number in range(asked.edits)]

    def study() -> Row:
        _repository(asked, program, folder, revisions, lambda tree, at: edit(program, tree, at))
        return _study(asked, program, folder, revisions, 1)

    flags = kept(folder / "flags.json", study)
    tree = natural_build(asked.folder, prepared(asked.folder, program), program)
    draws = edited(program, tree, "edits", folder / "binaries", asked.edits)
    # What env starts is not copied, and finds its library beside it.
    words = [
        shlex.join(("env", *command(program, each, asked.folder / "inputs")))
        for each in (tree, *(draw.folder for draw in draws))
    ]
    pairs = [
        kept(folder / f"binaries-{number}.json", partial(_binaries, asked, words[0], other))
        for number, other in enumerate(words[1:])
    ]
    return {"program": program.name, "language": program.language, "where": program.where,
            **flags, "pairs": pairs}  # fmt: skip


def _binaries(asked: Asked, natural: str, other: str) -> Row:
    """By `ensign compare`, and by hyperfine in about the same time."""
    options = ("--budget", f"{asked.seconds:g}s", "--metric", "cpu", *asked.options)
    mine = ensign(natural, other, *options)
    once = _cpu_s(shlex.split(natural))
    theirs = hyperfine(natural, other, max(2, round(asked.seconds / 2 / once)))
    return {
        each.tool: {"interval": [each.ratio, each.low, each.high], "seconds": each.seconds}
        for each in (mine, theirs)
    }


def _repository(
    asked: Asked, program: Program, folder: Path, revisions: Sequence[str],
    change: Callable[[Path, int], object],
) -> None:  # fmt: skip
    """A commit with the tree, and on top of it one branch for each revision."""
    tree = folder / "repository"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(prepared(asked.folder, program), tree, symlinks=True)

    def git(*words: str) -> None:
        who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        run(("git", *who, *words), tree)

    git("init", "-q", "-b", _BRANCH)
    git("add", "-A", "-f")
    git("commit", "-q", "-m", _BRANCH)
    for number, name in enumerate(revisions):
        git("checkout", "-q", "-b", name, _BRANCH)
        change(tree, number)
        git("commit", "-q", "-a", "-m", name)
    git("checkout", "-q", _BRANCH)


def _study(
    asked: Asked, program: Program, folder: Path, revisions: Sequence[str], seed: int
) -> Row:
    """Run a study of the revisions; what it claims of each, and what it took."""
    words = ("{artifact}", *command(program, Path(), asked.folder / "inputs")[1:])
    more = [each for each in program.made if each != "program"]
    count = f"count = {asked.relinks}\n" if asked.relinks else ""
    sampled = f"[layouts]\nseed = {seed}\n{count}"
    path = folder / "study.toml"
    names = ("system", "artifact", "compiler", "level")
    how = _CARGO if program.where == "crate" else _MAKE
    path.write_text(_STUDY.format(
        **dict(zip(names, how, strict=True)),
        name=f"build-aa-{program.name}-{seed}", files=json.dumps(more),
        revisions=json.dumps([_BRANCH, *revisions]), layouts=sampled,
        seed=seed, command=json.dumps(words), budget=asked.budget,
    ))  # fmt: skip
    export = folder / f"result-{seed}.json"
    argv = [str(ENSIGN), "run", str(path), "--json", str(export), *asked.options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program.name}: {done.stderr[-2000:]}")
    result = json.loads(export.read_text())
    layouts = result.get("layouts") or {"splits": [], "kind": "", "raced": 0}
    splits = {each["variant"]: each for each in layouts["splits"]}
    rows = [
        {
            "revision": each["variant"],
            "direction": each["direction"],
            "withheld": each["withheld"],
            "interval": [each["ratio"], each["low"], each["high"]],
            "layout_sd": splits.get(each["variant"], {}).get("layout_sd"),
            "best": _best(splits.get(each["variant"]), result["experiment"]["rounds_done"]),
        }
        for each in result["comparisons"]
    ]
    bad = [each["variant"] for each in result["builds"] if each["status"] != "built"]
    if bad or result["failed"]:
        raise RuntimeError(f"{program.name}: {bad} were not built; failed: {result['failed']}")
    facts = [Path(each["log_path"]).parent / "meta.json" for each in result["builds"]]
    times = [json.loads(each.read_text())["facts"] for each in facts]
    return {
        "budget": asked.budget,
        "claims": rows,
        "relinks": layouts["raced"],
        "kind": layouts["kind"],
        "racing_s": result["experiment"]["racing_s"],
        "rounds": result["experiment"]["rounds_done"],
        "build_s": sum(each["build_s"] for each in times),
        "relink_s": sum(each.get("relink_s") or 0 for each in times),
        "findings": sorted({each["code"] for each in result["findings"]}),
    }


def _best(split: dict[str, float] | None, rounds: int) -> float | None:
    """Half-width if every round had relinks of its own: s·t/√k with k rounds."""
    if split is None or rounds < 2:  # noqa: PLR2004
        return None
    s = math.hypot(split["layout_sd"], split["execution_sd"])
    return float(s * stats.t.ppf(0.975, rounds - 1) / math.sqrt(rounds))


def _cpu_s(argv: Sequence[str]) -> float:
    """Least CPU time of a few runs."""
    found = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def _planted(asked: Asked, program: Program, more: float, number: int) -> Row:
    """One plant: other relinks each time."""
    folder = asked.folder / "planted" / program.name

    def study() -> Row:
        if not (folder / "repository").exists():
            tree = natural_build(asked.folder, prepared(asked.folder, program), program)
            once = _cpu_s(command(program, tree, asked.folder / "inputs"))
            rounds = round(more * once / _round_s(folder))
            _repository(asked, program, folder, [_PLANTED],
                        lambda tree, _: _plant(program, tree, rounds))  # fmt: skip
        return _study(asked, program, folder, [_PLANTED], number + 1)

    return kept(folder / f"{number}.json", study)


_LOOP = """
__attribute__((constructor)) static void more_work(void) {{
    for (volatile unsigned i = 0; i < {rounds}u; i++) {{ }}
}}
"""


def _plant(program: Program, tree: Path, rounds: int) -> None:
    path = tree / program.sources_in(tree)[0]
    path.write_text(path.read_text(errors="surrogateescape") + _LOOP.format(rounds=rounds),
                    errors="surrogateescape")  # fmt: skip


def _round_s(folder: Path) -> float:
    """CPU time of a round of the loop that is planted."""
    rounds = 100_000_000
    source = folder / "loop.c"
    source.write_text(_LOOP.format(rounds=rounds) + "int main(void) { return 0; }\n")
    run(("gcc", "-O2", "-o", "loop", "loop.c"), folder)
    return _cpu_s((str(folder / "loop"),)) / rounds


if __name__ == "__main__":
    sys.exit(main())
