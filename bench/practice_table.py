"""What each practice of building is worth to each program, as one table.

    .venv/bin/python bench/practice_table.py practices
    .venv/bin/python bench/practice_table.py hardening

reads the results of the studies in studies/practices/ or studies/hardening/ (each raced by
`make study STUDY=studies/practices/PROGRAM.toml`), and writes `RESULTS.md` and `results.csv` beside
them. A figure that a study does not have is withheld, with the reason. Programs that were not raced
here keep what `results.csv` has of them: they may be raced on different machines, and the table
says on which. What doctor quotes (worth.json) is what was raced on relinks.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ensign.model.variants import DEFAULTS

STUDIES = Path(__file__).parents[1] / "studies"
WORTH = Path(__file__).parents[1] / "src/ensign/tools/doctor/worth.json"
PROGRAMS = {
    "redis": "Redis",
    "zstd": "zstd",
    "xz": "xz",
    "pixman": "pixman",
    "sqlite": "SQLite",
    "snappy": "snappy",
    "libsvm": "LIBSVM",
}
LONGEST = 100  # characters of a reason in a cell
Kind = Literal["practices", "hardening"]
Results = Mapping[str, Any]


class Practice(NamedTuple):
    """A change of the baseline's axes, and what else both sides of the comparison have."""

    label: str
    change: Mapping[str, str]
    given: Mapping[str, str]


def practice(label: str, given: Mapping[str, str] | None = None, **change: str) -> Practice:
    return Practice(label, change, given or {})


ROWS: Mapping[Kind, tuple[Practice, ...]] = {
    "practices": (
        practice("an older compiler (GCC 11)", compiler="gcc-11"),
        practice("the latest compiler here (Clang 19)", compiler="clang-19"),
        practice("no optimization (`-O0`)", optimization="-O0"),
        practice("`-O1`", optimization="-O1"),
        practice("`-O3`", optimization="-O3"),
        practice("for size (`-Os`)", optimization="-Os"),
        practice("`-Ofast`", optimization="-Ofast"),
        practice("without debug information (stripped)", strip="yes"),
        practice("`-march=x86-64-v2`", target="x86-64-v2"),
        practice("`-march=x86-64-v3`", target="x86-64-v3"),
        practice("`-march=native`", target="native"),
        practice("`-fno-strict-aliasing`", aliasing="relaxed"),
        practice("functions aligned", alignment="functions"),
        practice("functions and loops aligned", alignment="loops"),
        practice("`-ffast-math`", floating_point="fast"),
        practice(
            "fused multiply-add off, at `-march=x86-64-v3`",
            {"target": "x86-64-v3"},
            floating_point="strict",
        ),
        practice("cross-file (`-flto`)", lto="full"),
        practice("profile feedback", pgo="on"),
        practice("both together", lto="full", pgo="on"),
        practice("both, at `-O3`", optimization="-O3", lto="full", pgo="on"),
        practice("jemalloc", allocator="jemalloc"),
        practice("tcmalloc", allocator="tcmalloc"),
    ),
    "hardening": (
        practice("Debian's set", hardening="debian"),
        practice("OpenSSF's set", hardening="openssf"),
        practice("none at all", hardening="none"),
        practice("stack protector", hardening="canary"),
        practice("`_FORTIFY_SOURCE=2`", hardening="fortify"),
        practice("`_FORTIFY_SOURCE=3`", flags="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"),
        practice("position-independent program", hardening="pie"),
        practice("position-dependent program", flags="-fno-pie -no-pie"),
        practice("RELRO", hardening="relro"),
        practice("RELRO and BIND_NOW", hardening="bindnow"),
        practice("stack clash protection", hardening="stack-clash"),
        practice("control-flow enforcement", hardening="cet"),
        practice("automatic variables set to zero", hardening="auto-init"),
        practice("`-D_GLIBCXX_ASSERTIONS`", flags="-D_GLIBCXX_ASSERTIONS"),
        practice("`-fno-delete-null-pointer-checks`", flags="-fno-delete-null-pointer-checks"),
        practice("`-fno-strict-overflow`", flags="-fno-strict-overflow"),
        practice("`-fno-strict-aliasing`", flags="-fno-strict-aliasing"),
        practice("no executable stack", flags="-Wl,-z,noexecstack"),
    ),
}
TITLES: Mapping[Kind, str] = {
    "practices": "What practices of building are worth",
    "hardening": "What hardening costs",
}


class Figure(NamedTuple):
    """What a change is worth: speedups in percent with their interval, or why there is none.

    `beside` is what must be said beside a figure, or instead of one; `one_binary`: it is not of the
    flags, as there were no relinks.
    """

    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    same_code: bool = False
    beside: str = ""
    one_binary: bool = False

    def cell(self) -> str:
        """As the table has it."""
        if self.same_code:
            return "0 (the same code)"
        if self.speedup is None or self.low is None or self.high is None:
            return f"withheld: {self.beside}"
        shown = f"{_signed(self.speedup)} ({_signed(self.low)} to {_signed(self.high)})"
        marked = f"{shown} †" if self.one_binary else shown
        return f"{marked}; {self.beside}" if self.beside else marked


NOT_RACED = "not raced"
NOT_THERE = Figure(beside="not in the study")
# What the row is called that says how a program was measured.
MEASURED = "measured"
FIELDS = (
    *("practice", "program", "speedup", "low", "high", "level", "same_code", "withheld"),
    "one_binary",
)
# What doctor says before the figures of a practice, by what it calls it.
QUOTED: Mapping[str, Mapping[str, str]] = {
    "compiler": {"the latest compiler here (Clang 19)": "Clang 19 -O2 over GCC 12 -O2"},
    "O3": {"`-O3`": "GCC 12"},
    "lto": {"cross-file (`-flto`)": "GCC 12"},
    "pgo": {"profile feedback": "GCC 12"},
    "target": {"`-march=x86-64-v2`": "x86-64-v2", "`-march=x86-64-v3`": "x86-64-v3"},
    "allocator": {"jemalloc": "jemalloc instead of libc's", "tcmalloc": "tcmalloc"},
    "O0": {"no optimization (`-O0`)": "-O0 instead of -O2"},
    "fma": {"fused multiply-add off, at `-march=x86-64-v3`": "without it, at x86-64-v3"},
    "fast": {"`-ffast-math`": "GCC 12"},
    "g": {"without debug information (stripped)": "without it"},
}


def figure(results: Results, row: Practice) -> Figure:
    """What one study says of one practice."""
    builds = {build["variant"]: build for build in results["builds"]}
    baseline = builds[results["experiment"]["baseline"]]
    reference = _build(results, {**baseline["choices"], **row.given})
    build = _build(results, {**baseline["choices"], **row.given, **row.change})
    for each in (reference, build):
        if each is None:
            return NOT_THERE
        if why := _why_not(results, each):
            return Figure(beside=why)
    assert reference is not None
    assert build is not None
    if _raced_as(build) == _raced_as(reference):
        return Figure(same_code=True)
    found = _of_effect(results, row) if row.given else _of_suite(results, _raced_as(build))
    raced = {_raced_as(build), _raced_as(reference)}
    return found._replace(one_binary=not _relinks(results) or bool(raced & _single(results)))


def _relinks(results: Results) -> int:
    """How many relinks of each build took turns; 0 where none did."""
    return int((results["layouts"] or {"raced": 0})["raced"])


def _single(results: Results) -> set[str]:
    """Builds that could not be relinked."""
    return set((results["layouts"] or {"unable": []})["unable"])


def _build(results: Results, choices: Mapping[str, str]) -> Mapping[str, Any] | None:
    wanted = {**DEFAULTS, **choices}
    found = (build for build in results["builds"] if {**DEFAULTS, **build["choices"]} == wanted)
    return next(found, None)


def _raced_as(build: Mapping[str, Any]) -> str:
    return str(build.get("same_as") or build["variant"])


def _why_not(results: Results, build: Mapping[str, Any]) -> str:
    """Why a build has no figure; empty if it may have one."""
    statuses = {
        "left out": f"not possible here: {_line(build['log_tail'])}",
        "failed": "it does not build",
        "not as asked": "it was not built as asked",
    }
    if build["status"] in statuses:
        return statuses[build["status"]]
    if build["check_failed"] or build["check"] == "failed":
        return f"wrong results: {_line(build['check_failed'] or build['check_tail'])}"
    names = {build["variant"], _raced_as(build)}
    if any(failed["variant"] in names for failed in results["failed"]):
        return "it failed in the race"
    errors = (
        f"{finding['code']}: {_line(finding['text'])}"
        for finding in results["findings"]
        if finding["severity"] == "error" and finding["subject"] in names
    )
    return next(errors, _line(build["out"]))


def _of_suite(results: Results, variant: str) -> Figure:
    for row in results["suite"]:
        if row["variant"] == variant:
            return _figure(row, row["withheld"] or results["experiment"]["withheld"] or "")
    return Figure(beside="it was not raced")


def _of_effect(results: Results, row: Practice) -> Figure:
    """The pair that differs in the change alone: from the rounds of both, not from two intervals."""
    ((axis, value),) = row.change.items()
    factorial = results["factorial"]
    for effect in (*factorial["conditional"], *factorial["main"]):
        changes = [(change["axis"], change["new"]) for change in effect["changes"]]
        among = {**effect["only"], **effect["given"]}
        alone = effect["groups"] == 1
        if changes == [(axis, value)] and alone and row.given.items() <= among.items():
            return _figure(effect, results["experiment"]["withheld"] or "")
    return Figure(beside="the study has no such pair")


def _figure(row: Mapping[str, Any], withheld: str) -> Figure:
    if withheld or None in (row["ratio"], row["low"], row["high"]):
        return Figure(beside=_line(withheld) or "too few rounds for an interval")
    speedup, low, high = (_speedup(row[key]) for key in ("ratio", "high", "low"))
    return Figure(speedup, low, high, row["level"])


def _speedup(ratio: float) -> float:
    return 100 * (1 / ratio - 1)


def _signed(percent: float) -> str:
    return f"{percent:+.1f} %".replace("-", "−")


def _line(text: str, longest: int = LONGEST) -> str:
    """The first line of what others wrote, short, and harmless in a table."""
    line = next(iter(text.strip().splitlines()), "")
    kept = "".join(char if char.isprintable() else "?" for char in line)
    kept = kept.replace("|", "/").replace("<", "‹").replace("`", "'")
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


class Column(NamedTuple):
    """What is known of one program: figures by the labels of their rows, and how it was measured."""

    figures: Mapping[str, Figure]
    measured: str


def column(kind: Kind, results: Results) -> Column:
    """What one study says of all practices."""
    return Column({row.label: figure(results, row) for row in ROWS[kind]}, _measured(results))


def markdown(kind: Kind, columns: Mapping[str, Column | None]) -> str:
    """The table of those that were raced, and how each program was measured."""
    raced = {program: each for program, each in columns.items() if each is not None}
    lines = [
        f"# {TITLES[kind]}",
        "",
        f"Made by `python bench/practice_table.py {kind}` from the results of `studies/{kind}/`: speedup over the baseline of each",
        "study (GCC 12 `-O2`), the geometric mean over its tests, with its interval. Each interval holds by itself; with so many,",
        "some will be wrong. They speak of these compilers and tests, of the processor that the second table names, and of code laid out as",
        "relinks of each build were, as many as the second table says. † is **of one binary**: where its code lies in memory moves a program by",
        "percents, too, and what is not much more than that is no price of the practice.",
        "",
        f"| | {' | '.join(raced)} |",
        f"| --- |{' --- |' * len(raced)}",
    ]
    for row in ROWS[kind]:
        cells = (each.figures.get(row.label, NOT_THERE).cell() for each in raced.values())
        lines.append(f"| {row.label} | {' | '.join(cells)} |")
    lines += ["", "| program | measured |", "| --- | --- |"]
    lines += [
        f"| {program} | {NOT_RACED if each is None else each.measured} |"
        for program, each in columns.items()
    ]
    return "\n".join(lines) + "\n"


def _measured(results: Results) -> str:
    about = results["experiment"]
    relinks = f"{_relinks(results)} relinks, " if _relinks(results) else ""
    said = (
        f"{about['title']}; {about['metric']}, {about['mode']}, {about['rounds_done']} rounds, "
        f"{relinks}{about['made_at'][:10]}, {results['machine']['CPU']}"
    )
    said = _line(said, 2 * LONGEST)
    twin = results["aa"]
    if twin is None or twin["low"] is None or twin["high"] is None:
        return said
    copy = _figure(twin, "")
    doubt = (
        "" if twin["low"] <= 1 <= twin["high"] else ", which excludes 0: do not trust small figures"
    )
    return f"{said}; a copy of the baseline: {copy.cell()}{doubt}"


def table_csv(kind: Kind, columns: Mapping[str, Column | None]) -> str:
    """A row for each practice and program, and how each was measured; numbers in percent."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for program, each in columns.items():
        if each is not None:
            writer.writerow((MEASURED, program, *[""] * 5, each.measured, ""))
    for row in ROWS[kind]:
        for program, each in columns.items():
            missing = Figure(beside=NOT_RACED) if each is None else NOT_THERE
            found = missing if each is None else each.figures.get(row.label, missing)
            numbers = (found.speedup, found.low, found.high)
            shown = ["" if number is None else f"{number:.3f}" for number in numbers]
            level = "" if found.level is None else found.level
            marks = (found.same_code, found.beside, found.one_binary)
            writer.writerow((row.label, program, *shown, level, *marks))
    return out.getvalue()


def of_csv(text: str) -> dict[str, Column]:
    """What such a table has of the programs that were raced."""
    rows = list(csv.DictReader(io.StringIO(text)))
    measured = {row["program"]: row["withheld"] for row in rows if row["practice"] == MEASURED}
    figures: dict[str, dict[str, Figure]] = {program: {} for program in measured}
    for row in rows:
        if row["program"] in measured and row["practice"] != MEASURED:
            figures[row["program"]][row["practice"]] = Figure(
                speedup=_number(row["speedup"]),
                low=_number(row["low"]),
                high=_number(row["high"]),
                level=_number(row["level"]),
                same_code=row["same_code"] == "True",
                beside=row["withheld"],
                one_binary=row["one_binary"] == "True",
            )
    return {program: Column(figures[program], said) for program, said in measured.items()}


def worth(columns: Mapping[str, Column | None]) -> dict[str, list[dict[str, Any]]]:
    """What doctor quotes of a table: figures that speak of flags, with the table's own rows."""
    page = markdown("practices", columns).splitlines()
    found: dict[str, list[dict[str, Any]]] = {}
    for key, labels in QUOTED.items():
        rows = [(label, said, _flag_figures(label, columns)) for label, said in labels.items()]
        figures = [f"{said}: {', '.join(each)}" for _, said, each in rows if each]
        quotes = [line for label in labels for line in page if line.startswith(f"| {label} |")]
        if figures:
            source = "studies/practices/RESULTS.md"
            found[key] = [{"worth": "; ".join(figures), "source": source, "quotes": quotes}]
    return found


def _flag_figures(label: str, columns: Mapping[str, Column | None]) -> list[str]:
    known = (
        (PROGRAMS[program], each.figures.get(label, NOT_THERE))
        for program, each in columns.items()
        if each is not None
    )
    return [
        f"{program} {'0' if figure.same_code else _signed(figure.speedup or 0)}"
        for program, figure in known
        if figure.same_code or (figure.speedup is not None and not figure.one_binary)
    ]


def _number(text: str) -> float | None:
    return float(text) if text else None


def read(study: Path) -> Results | None:
    """The results of a study; None where it was not raced."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        ensign = Path(sys.executable).with_name("ensign")
        command = [str(ensign), "report", str(study), "--json", str(file)]
        ended = subprocess.run(
            command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        if not file.exists():
            print(f"{study}: {ended.stderr.strip()}", file=sys.stderr)
            return None
        results: Results = json.loads(file.read_text())
        return results


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in ROWS:
        print(f"usage: practice_table.py {'|'.join(ROWS)}", file=sys.stderr)
        return 2
    kind: Kind = "practices" if arguments[0] == "practices" else "hardening"
    kept = STUDIES / kind / "results.csv"
    earlier = of_csv(kept.read_text()) if kept.exists() else {}
    columns: dict[str, Column | None] = {}
    for program in PROGRAMS:
        results = read(STUDIES / kind / f"{program}.toml")
        columns[program] = earlier.get(program) if results is None else column(kind, results)
    text = table_csv(kind, columns)
    kept.write_text(text)
    # The page says what the file has: a program that is kept is not rounded once more next time.
    written = of_csv(text)
    columns = {program: written.get(program) for program in PROGRAMS}
    (STUDIES / kind / "RESULTS.md").write_text(markdown(kind, columns))
    if kind == "practices":
        quoted: dict[str, list[dict[str, Any]]] = json.loads(WORTH.read_text())
        others = {
            key: [each for each in found if "program" in each] for key, found in quoted.items()
        }
        mine = worth(columns)
        made = {key: [*others.get(key, []), *mine.get(key, [])] for key in {**others, **mine}}
        WORTH.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n")
    print(f"studies/{kind}/RESULTS.md and results.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
