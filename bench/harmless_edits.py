"""What moves a program's speed as harmless edits do: relinks of many kinds beside edits.

    python bench/harmless_edits.py FOLDER             all; goes on where it was cut off
    python bench/harmless_edits.py FOLDER --program mawk --draws 3 --runs 2     a trial

FOLDER gets sources, builds and races; results: bench/results/harmless_edits.md and .json. Nothing
else may run. Each kind of perturbation is one race of its draws with the natural link twice, all
interleaved. The first kind is harmless edits, which the others are to be like; "copies" are the
natural link's bytes in other files: what they differ by is no layout of the program.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edited_programs import PROGRAMS, Program, command, prepared, write_inputs
from ensign.stats.layouts import blocked_split
from perturbations import KINDS, Draw, drawn, edited, natural_build
from tools import ENSIGN

Floats = NDArray[np.float64]
_RESULTS = Path(__file__).parent / "results/harmless_edits"
_EDITS = "edits"
_LOW, _HIGH = 0.7, 1.4
_SMALL = 0.003
_ENOUGH = 10 / 12
_SAMPLES = 20_000


@dataclass(frozen=True)
class Found:
    """One kind of perturbation of one program; logs of cost ratios, `bias` in SDs of the edits.

    `sd` is the spread between draws net of executions, `ratio` that over the edits'; intervals are
    90 %. `natural` is the natural link from the mean of the draws, in SDs of the draws.
    """

    program: str
    kind: str
    draws: int
    executions: int
    sd: float
    sd_low: float
    sd_high: float
    execution_sd: float
    mean: float
    natural: float | None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    bias: float | None = None


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    folder: Path
    draws: int
    runs: int
    share: bool


def main() -> int:
    """Build, race, write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", action="append", help="these alone")
    parser.add_argument("--kind", action="append", help="these alone (and edits)")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3, help="executions of each draw")
    parser.add_argument("--share-machine", action="store_true", help="for trials: wait for no race")
    given = parser.parse_args()
    asked = Asked(given.folder.absolute(), given.draws, given.runs, given.share_machine)
    asked.folder.mkdir(exist_ok=True)
    write_inputs(asked.folder / "inputs")
    programs = [each for each in PROGRAMS if given.program is None or each.name in given.program]
    kinds = [each for each in KINDS if given.kind is None or each in given.kind]
    rows: list[Found] = []
    for program in programs:
        matrices = {kind: raced(asked, program, kind) for kind in (_EDITS, *kinds)}
        rows += judged(program.name, {kind: d for kind, d in matrices.items() if d is not None})
    text = page(rows)
    _RESULTS.parent.mkdir(exist_ok=True)
    _RESULTS.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    _RESULTS.with_suffix(".md").write_text(text)
    print(text)
    return 0


def raced(asked: Asked, program: Program, kind: str) -> Floats | None:
    """Logs of ratios to the natural link, [draw, execution]; None where it cannot be drawn."""
    kept = asked.folder / f"raced/{program.name}-{kind.replace(' ', '-')}.json"
    if not kept.exists():
        tree = natural_build(asked.folder, prepared(asked.folder, program), program)
        place = asked.folder / "built" / program.name / kind.replace(" ", "-")
        made = edited if kind == _EDITS else drawn
        draws = made(program, tree, kind, place, asked.draws)
        rows = _race(asked, program, tree, draws) if len(draws) > 1 else []
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(rows))
        shutil.rmtree(place, ignore_errors=True)
    d = np.array(json.loads(kept.read_text()), dtype=np.float64)
    print(f"{program.name}, {kind}: {d.shape}", file=sys.stderr, flush=True)
    return d if d.size else None


def _race(asked: Asked, program: Program, tree: Path, draws: list[Draw]) -> list[list[float]]:
    inputs = asked.folder / "inputs"
    # All are started by env, as those must be that have an environment of their own.
    commands = [
        ("env", *each.environment, *command(program, each.folder, inputs))
        for each in (Draw(tree, draws[0].neutral), *draws)
    ]
    done = subprocess.run(commands[0], capture_output=True, check=True)
    options = ("--runs", str(asked.runs), "--metric", "cpu", "--mode", "interleaved", "--race-same",
               "--expected-sha256", hashlib.sha256(done.stdout).hexdigest())  # fmt: skip
    more = ("--share-machine",) if asked.share else ()
    names = [word for at in range(len(commands)) for word in ("--name", f"v{at}")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        words = [" ".join(each) for each in commands]
        argv = [str(ENSIGN), "compare", *words, *names, *options, *more, "--json", str(path)]
        run = subprocess.run(argv, capture_output=True, text=True, check=False)
        if not path.exists():
            raise RuntimeError(f"{program.name}: {run.stderr[-2000:]}")
        result = json.loads(path.read_text())
    rounds = [
        {each["variant"]: math.log(each["cpu_ns"]) for each in trial["variants"]}
        for trial in result["trials"]
    ]
    if result["failed"]:
        raise RuntimeError(f"{program.name}: {result['failed']}")
    return [
        [one[f"v{at}"] - (one["v0"] + one["twin"]) / 2 for one in rounds]
        for at in range(1, len(commands))
    ]


@dataclass(frozen=True)
class _Squares:
    """Mean squares between draws and within, of k draws in n executions."""

    between: float
    within: float
    k: int
    n: int

    def variances(self, rng: np.random.Generator) -> Floats:
        """Draws of the variance between draws that these squares leave possible.

        A generalized pivotal quantity (Weerahandi 1993): each square over its χ².
        """
        freedom = self.k - 1
        inner = freedom * (self.n - 1)
        between = self.between * freedom / rng.chisquare(freedom, _SAMPLES)
        within = self.within * inner / rng.chisquare(inner, _SAMPLES)
        return np.maximum(0.0, (between - within) / self.n)


def judged(program: str, matrices: Mapping[str, Floats]) -> list[Found]:
    """What each kind shows, beside the edits."""
    rng = np.random.default_rng(1)
    rows: list[Found] = []
    edits: Found | None = None
    of_edits: Floats | None = None
    for kind, d in matrices.items():
        split = blocked_split(d)
        if split is None:
            continue
        k, n = d.shape
        squares = _Squares(n * float(d.mean(axis=1).var(ddof=1)), split.execution_sd**2, k, n)
        variances = squares.variances(rng)
        low, high = np.sqrt(np.quantile(variances, (0.05, 0.95)))
        mean, sd = float(d.mean()), split.layout_sd
        natural = -mean / sd if sd else None
        row = Found(program, kind, k, n, sd, low, high, split.execution_sd, mean, natural)
        if kind == _EDITS:
            edits, of_edits = row, variances
        elif edits is not None and of_edits is not None and edits.sd:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.nan_to_num(np.sqrt(variances / of_edits), nan=1.0, posinf=1e9)
            ends = np.quantile(ratios, (0.05, 0.95)).tolist()
            row = replace(row, ratio=sd / edits.sd, bias=(mean - edits.mean) / edits.sd)
            row = replace(row, ratio_low=ends[0], ratio_high=ends[1])
        rows.append(row)
    return rows


def page(rows: list[Found]) -> str:
    """The tables, and for which kinds the spread is that of the edits."""
    programs = list(dict.fromkeys(row.program for row in rows))
    kinds = [kind for kind in KINDS if any(row.kind == kind for row in rows)]
    at = {(row.program, row.kind): row for row in rows}
    counts = sorted({(row.draws, row.executions) for row in rows})
    lines = [
        "# Harmless edits and other ways to move code", "",
        ("Made by `python bench/harmless_edits.py`. SD: standard deviation of CPU time between "
        "draws, net of the noise of executions; (90 % intervals). "
        f"Draws and executions of each: {', '.join(f'{k} × {n}' for k, n in counts)}."), "",
        "## Spread: SD over that of the edits", "",
        f"| program | edits: SD | {' | '.join(kinds)} |", "| --- | --- |" + " --- |" * len(kinds),
    ]  # fmt: skip
    for program in programs:
        edits = at[program, _EDITS]
        cells = [_ratio(at.get((program, kind))) for kind in kinds]
        lines.append(f"| {program} | {_percent(edits)} | {' | '.join(cells)} |")
    lines += ["", "## Mean of the draws: against the edits' (in the edits' SDs), in percent", "",
              f"| program | edits | {' | '.join(kinds)} |",
              "| --- | --- |" + " --- |" * len(kinds)]  # fmt: skip
    for program in programs:
        cells = [_bias(at.get((program, kind))) for kind in kinds]
        lines.append(f"| {program} | {at[program, _EDITS].mean:+.2%} | {' | '.join(cells)} |")
    return "\n".join((*lines, "", *_rule(rows, kinds, programs), ""))


def _rule(rows: list[Found], kinds: list[str], programs: list[str]) -> list[str]:
    """For each kind: on how many programs the spread is alike, and the bias over all."""
    edits = [row for row in rows if row.kind == _EDITS]
    shown = [row.program for row in edits if row.sd_low > 0]
    still = [row.program for row in edits if row.sd_low == 0 and row.sd_high < _SMALL]
    lines = [
        (f"The edits' spread is shown (its interval excludes 0) on {len(shown)} of {len(programs)} "
        f"programs, and below {_SMALL:.1%} on {len(still)} others; the rest cannot be judged. "
        "Two equal spreads, of 20 draws each without noise, have ratios from 0.7 to 1.4 in 86 % of "
        "programs, and on 10 of 12 or more in 77 % of benches. Biases are means over programs."),
        "",
        ("| kind | spread within 0.7 to 1.4 | shown to be outside | both below that "
        "| mean against the edits' | natural link against the draws |"),
        "| --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    good = []
    for kind in (_EDITS, *kinds):
        every = [row for row in rows if row.kind == kind]
        mine = [row for row in every if row.program in shown]
        ratios = [row for row in mine if row.ratio is not None]
        inside = sum(_LOW <= (row.ratio or 0) <= _HIGH for row in ratios)
        outside = sum(
            (row.ratio_high or 0) < _LOW or (row.ratio_low or 0) > _HIGH for row in ratios
        )
        neither = sum(row.sd_high < _SMALL for row in every if row.program in still)
        bias = _mean([row.bias for row in mine if row.bias is not None])
        natural = _mean([row.natural for row in mine if row.natural is not None])
        of = " | | " if kind == _EDITS else f"{inside} of {len(ratios)} | {outside} | {neither}"
        lines.append(f"| {kind} | {of} | {bias} | {natural} |")
        if inside + neither >= _ENOUGH * len(programs) and kind != _EDITS:
            good.append(kind)
    said = ", ".join(good) or "none"
    return [
        *lines,
        "",
        f"Alike, or both below {_SMALL:.1%}, on at least 10 of 12 programs: {said}.",
    ]


def _mean(values: list[float]) -> str:
    if len(values) < 2:  # noqa: PLR2004
        return ""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{np.mean(values):+.2f} ± {error:.2f} SD"


def _percent(row: Found) -> str:
    return f"{row.sd:.2%} ({row.sd_low:.2%} to {row.sd_high:.2%})"


def _ratio(row: Found | None) -> str:
    if row is None:
        return "cannot"
    if row.ratio is None or row.ratio_low is None or row.ratio_high is None:
        return _percent(row)
    high = "∞" if row.ratio_high > 99 else f"{row.ratio_high:.2f}"  # noqa: PLR2004
    return f"{row.ratio:.2f} ({row.ratio_low:.2f} to {high})"


def _bias(row: Found | None) -> str:
    if row is None:
        return "cannot"
    said = "" if row.bias is None else f"{row.bias:+.2f}, "
    return f"{said}{row.mean:+.2%}"


if __name__ == "__main__":
    sys.exit(main())
