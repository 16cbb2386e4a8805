"""Whether `ensign explain` finds the causes that were planted, and gives each its share.

    python bench/planted_causes.py FOLDER [--equal | --only KIND]

30 pairs in ten kinds, each with decoys, a third of them with two or three causes at once: more
work by a macro, one unit without optimization, inlining lost, vectors lost, a profile without the
hot path (two variants of a study); tunables, a slower library, another allocator, arguments and a
misaligned loop (two commands). The truth follows from counted work; where one cause is planted it
has all of the difference. With `--equal` 20 pairs that differ in decoys alone. Results go to
`bench/results/planted_causes.md` and `planted_causes_equal.md`; `--only` races one kind, and keeps
the page's other rows.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from tools import ENSIGN

_RESULTS = Path(__file__).parent / "results"
_NEAR = 0.1
_DECOYS = ("-fno-plt", "-DUNUSED=1", "-fno-ident", "-fno-common")
_UNIT = """
unsigned long NAME(unsigned long n)
  { unsigned long s = n; n *= TIMES; while (n--) s = s * 6364136223846793005UL + n; return s; }
"""
_SUMS = """
static double twice(double x) { return x * x + x; }
void sums(double *v, int n) { for (int i = 0; i < n; i++) v[i] = twice(v[i]) * 0.25; }
"""
_MAIN = """
#include <stdio.h>
unsigned long one(unsigned long), two(unsigned long), three(unsigned long);
void sums(double *, int);
static double v[2048];
int main(int c, char **w) { (void)w; unsigned long s = 0; for (int k = 0; k < 400; k++)
  { s += one(2000) + two(2000) + three(2000); for (int j = 0; j < 4 && c < 2; j++) sums(v, 2048); }
  printf("%d\\n", s == 42); }
"""
_MAKE = """
OBJECTS = main.o one.o two.o three.o sums.o
tool: $(OBJECTS)
	$(CC) $(LDFLAGS) -o $@ $(OBJECTS)
"""
_BASE = {"ONE": 4.0, "TWO": 3.0, "THREE": 3.0}
_ALLOCATES = """
#include <stdlib.h>
#include <string.h>
unsigned long shared(unsigned long);
static unsigned long spun(unsigned long n)
  { unsigned long s = n; while (n--) s = s * 6364136223846793005UL + n; return s; }
int main(int c, char **w) { void *p[64] = {0}; unsigned x = 1; unsigned long s = 0;
  for (int i = 0; i < 40000; i++) { x = x * 1664525 + 1013904223; int k = x >> 26;
    free(p[k]); p[k] = malloc(16 + (x >> 20) % 300); memset(p[k], 1, 16); }
  for (int k = 1; k < c; k++) s += spun(1000000UL * atol(w[k]));
  return (s + shared(2000000)) == 42; }
"""
# Where a loop lies costs half of its speed on processors that fetch by lines of 64 bytes.
_SPINS = """
#include <stdlib.h>
#define TEXT(x) #x
#define NOPS(x) ".p2align 6\\n .nops " TEXT(x)
__attribute__((noinline)) unsigned long spin(unsigned long n) { unsigned long a = 1, b = 2, c = 3;
  __asm__ volatile(NOPS(SKEW) "\\n 1: add $1, %0\\n add $3, %1\\n add $5, %2\\n xor $7, %0\\n"
    "test $1, %0\\n jz 2f\\n 2: xor $9, %2\\n dec %3\\n jnz 1b"
    : "+r"(a), "+r"(b), "+r"(c), "+r"(n)); return a + b + c; }
int main(int c, char **w) { return spin(c > 1 ? 15000000UL * atol(w[1]) : 1) == 42; }
"""
_SHARED = """
unsigned long shared(unsigned long n)
  { unsigned long s = n; n *= TIMES; while (n--) s = s * 6364136223846793005UL + n; return s; }
"""


_TRAINING = """[training]
[[training.workloads]]
name = "hot"
command = ["{artifact}"]
[[training.workloads]]
name = "cold"
command = ["{artifact}", "without"]
"""


@dataclass(frozen=True)
class Pair:
    """Words for `ensign explain`, and the shares that are known; None: not how much."""

    kind: str
    name: str
    words: tuple[str, ...]
    truth: Mapping[str, float | None]


def shapley(more: Mapping[str, float], base: float) -> dict[str, float]:
    """Shares of the log cost's growth, of work that is added to `base`."""
    orders = list(permutations(more))
    total = math.log1p(sum(more.values()) / base)
    return {
        name: sum(
            math.log(
                (base + sum(more[o] for o in order[: order.index(name) + 1]))
                / (base + sum(more[o] for o in order[: order.index(name)]))
            )
            for order in orders
        )
        / len(orders)
        / total
        for name in more
    }


def study(
    folder: Path, name: str, other: str, both: str = 'optimization = "-O2"', tables: str = ""
) -> tuple[str, ...]:
    """A study of two variants: as it is, and with these keys; both have those."""
    place = folder / name
    source = place / "source"
    source.mkdir(parents=True, exist_ok=True)
    for unit, times in _BASE.items():
        text = _UNIT.replace("NAME", unit.lower()).replace("TIMES", unit)
        default = f"#ifndef {unit}\n#define {unit} {times:.0f}\n#endif\n"
        (source / f"{unit.lower()}.c").write_text(default + text)
    (source / "sums.c").write_text(_SUMS)
    (source / "main.c").write_text(_MAIN)
    (source / "Makefile").write_text(_MAKE)
    (place / "tool.toml").write_text(
        f"""name = "{name}"
layouts = {{ count = 8 }}
source = {{ kind = "path", path = "source" }}
build = {{ system = "make", artifact = "tool" }}
baseline = {{ compiler = "gcc-12", flags = "", units = "", training = "" }}
[axes]
combine = "list"
compiler = ["gcc-12"]
[[include]]
{both}
[[include]]
{both}
{other}
{tables}
[[workloads]]
name = "all"
command = ["{{artifact}}"]
"""
    )
    listed = subprocess.run(
        [ENSIGN, "plan", "tool.toml"], cwd=place, capture_output=True, text=True, check=True
    ).stdout
    names = [
        line.split(":")[0].strip() for line in listed.splitlines() if line.startswith("  gcc-12")
    ]
    return (str(place / "tool.toml"), *names[:2], "--budget", "6s", "--proof", "16s")


def by_flags(folder: Path, name: str, kind: str, flags: Mapping[str, float | None]) -> Pair:
    """A pair whose second variant has these flags, and decoys among them."""
    words = [*flags, *_DECOYS[: 3 - min(len(flags), 2)]]
    given = " ".join(sorted(words))
    return Pair(kind, name, study(folder, name, f'flags = "{given}"'), flags)


def study_pairs(folder: Path) -> Iterator[Pair]:
    """Fourteen pairs of variants."""
    for number, more in enumerate(
        ({"ONE": 3}, {"TWO": 2}, {"ONE": 4, "THREE": 1}, {"ONE": 2, "TWO": 2, "THREE": 2})
    ):
        # What `sums` takes besides is about as much as four of a unit's loops.
        shares = shapley(
            {f"-D{u}={_BASE[u] + n:.0f}": n for u, n in more.items()}, sum(_BASE.values()) + 4
        )
        yield by_flags(folder, f"more-{number}", "more work by a macro", shares)
    for number, unit in enumerate(("one.c", "sums.c", "one.c two.c")):
        other = f"{unit}: optimization=-O0"
        decoys = " ".join(_DECOYS[:2])
        words = study(folder, f"unit-{number}", f'units = "{other}"\nflags = "{decoys}"')
        yield Pair(
            "a unit without optimization", f"unit-{number}", words, {f"units: none → {other}": 1.0}
        )
    yield by_flags(folder, "inline-0", "inlining lost", {"-fno-inline": 1.0})
    yield by_flags(folder, "inline-1", "inlining lost", {"-fno-inline": None, "-DONE=6": None})
    several: tuple[dict[str, float | None], ...]
    several = ({}, {"-DTWO=4": None}, {"-DONE=5": None, "-DTHREE=4": None})
    for number, each in enumerate(several):
        flags = {"-fvect-cost-model=dynamic": None if each else 1.0, **each}
        yield by_flags(folder, f"vectors-{number}", "vectors gained", flags)
    # What never ran is made small: `sums` loses its vectors.
    untrained = 'optimization = "-O3"\npgo = "on"', _TRAINING
    lost, decoys = "training: none → all but hot", " ".join(_DECOYS[:2])
    pairs: tuple[dict[str, float | None], ...] = ({lost: 1.0}, {lost: None, "-DONE=6": None})
    for number, truth in enumerate(pairs):
        given = " ".join(sorted((decoys, *(flag for flag in truth if flag != lost))))
        other = f'training = "all but hot"\nflags = "{given}"'
        name = f"profile-{number}"
        yield Pair(
            "a profile without the hot path", name, study(folder, name, other, *untrained), truth
        )


def command_pairs(folder: Path) -> Iterator[Pair]:
    """Sixteen pairs of commands."""
    place = folder / "commands"
    for name, times in (("fast", 1), ("slow", 3)):
        (place / name).mkdir(parents=True, exist_ok=True)
        (place / "shared.c").write_text(_SHARED)
        library = place / name / "libshared.so"
        argv = [
            "gcc",
            "-O2",
            "-fPIC",
            "-shared",
            f"-DTIMES={times}",
            "shared.c",
            "-o",
            str(library),
        ]
        subprocess.run(argv, cwd=place, check=True)
    (place / "tool.c").write_text(_ALLOCATES)
    link = ["gcc", "-O2", "tool.c", "-L", "fast", "-lshared", "-o", "tool"]
    subprocess.run(link, cwd=place, check=True)
    (place / "spin.c").write_text(_SPINS)
    for name, skew in (("aligned", 0), ("misaligned", 52)):
        argv = ["gcc", "-O2", f"-DSKEW={skew}", "spin.c", "-o", name]
        subprocess.run(argv, cwd=place, check=True)
    aligned, misaligned = str(place / "aligned"), str(place / "misaligned")
    moved = f"{aligned} → {misaligned}"
    tool, fast, slow = (str(place / each) for each in ("tool", "fast", "slow"))
    plain, other = f"LD_LIBRARY_PATH={fast}", f"LD_LIBRARY_PATH={slow}"
    slower = f"LD_LIBRARY_PATH: {fast} → {slow}"
    cache = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"
    no_cache, arenas = "glibc.malloc.tcache_count: none → 0", "glibc.malloc.arena_max=2"
    budget = ("--budget", "4s", "--proof", "9s")
    found = subprocess.run(
        ["gcc", "-print-file-name=libtcmalloc_minimal.so.4"],
        capture_output=True,
        text=True,
        check=True,
    )
    allocator = str(Path(found.stdout.strip()).resolve())
    preload, loaded = f"LD_PRELOAD={allocator}", f"libtcmalloc_minimal: none → {allocator}"
    rows: list[tuple[str, str, str, Mapping[str, float | None]]] = [
        (
            "a tunable",
            f"env {plain} {tool} 2",
            f"env {plain} {cache}:{arenas} {tool} 2",
            {no_cache: 1.0},
        ),
        (
            "a tunable",
            f"env {plain} {tool} 1",
            f"env {plain} X=1 {cache}:{arenas} {tool} 1",
            {no_cache: 1.0},
        ),
        (
            "a tunable",
            f"env {plain} {tool} 4",
            f"env {plain} Y=2 {cache} {tool} 4",
            {no_cache: 1.0},
        ),
        (
            "a tunable",
            f"env {plain} {tool} 1",
            f"env {other} {cache} {tool} 1",
            {no_cache: None, slower: None},
        ),
        ("a slower library", f"env {plain} {tool} 2", f"env {other} X=1 {tool} 2", {slower: 1.0}),
        (
            "a slower library",
            f"env {plain} {tool} 9",
            f"env {other} X=1 Y=2 {tool} 9",
            {slower: 1.0},
        ),
        ("a slower library", f"env {plain} X=1 {tool} 1", f"env {other} {tool} 1", {slower: 1.0}),
        (
            "a slower library",
            f"env {plain} {tool} 8",
            f"env {other} {tool} 9",
            {slower: 0.8, "8 → 9": 0.2},
        ),
        ("an argument", f"env {plain} X=1 {tool} 2 3", f"env {plain} {tool} 4 3", {"2 → 4": 1.0}),
        (
            "an argument",
            f"env {plain} {tool} 2 3",
            f"env {plain} X=1 {tool} 5 4",
            {"2 → 5": 0.76, "3 → 4": 0.24},
        ),
        ("an argument", f"env {plain} {tool} 6", f"env {plain} X=1 {tool} 6 2", {"2": 1.0}),
        (
            "an argument",
            f"env {plain} {tool} 3 3 3",
            f"env {plain} {tool} 5 4 4",
            {"3 → 5": None, **dict.fromkeys(("3 → 4 (place 4)", "3 → 4 (place 5)"))},
        ),
        (
            "another allocator",
            f"env {plain} {tool} 1",
            f"env {plain} X=1 {preload} {tool} 1",
            {loaded: 1.0},
        ),
        (
            "another allocator",
            f"env {plain} {tool} 1",
            f"env {other} {preload} {tool} 1",
            {loaded: None, slower: None},
        ),
        ("a misaligned loop", f"env X=1 {aligned} 2", f"env Y=2 {misaligned} 2", {moved: 1.0}),
        (
            "a misaligned loop",
            f"env X=1 {aligned} 5",
            f"env {misaligned} 6",
            {moved: None, "5 → 6": None},
        ),
    ]
    for number, (kind, before, after, truth) in enumerate(rows):
        yield Pair(kind, f"command-{number}", (before, after, *budget), truth)


def equal_pairs(folder: Path) -> Iterator[Pair]:
    """Twenty pairs that differ in what makes no difference."""
    for number, decoys in enumerate((_DECOYS[:2], _DECOYS[1:3], _DECOYS[2:], _DECOYS)):
        name = f"equal-{number}"
        words = study(folder, name, f'flags = "{" ".join(decoys)}"')
        yield Pair("variants", name, words, {})
    pairs = list(command_pairs(folder))
    before = pairs[0].words[0]
    for number in range(16):
        after = before.replace("env ", f"env N{number}=1 M{number}={'x' * number} ")
        yield Pair(
            "commands", f"same-{number}", (before, after, "--budget", "4s", "--proof", "9s"), {}
        )


def explained(pair: Pair, folder: Path) -> Sequence[Mapping[str, Any]]:
    """The tables of causes, or none."""
    out = folder / f"{pair.name}.json"
    argv = [str(ENSIGN), "explain", *pair.words, "--json", str(out)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:], flush=True)
        return ()
    found: Sequence[Mapping[str, Any]] = json.loads(out.read_text()).get("causes", ())
    return found


def row_of(pair: Pair, tables: Sequence[Mapping[str, Any]]) -> str:
    """A line of the page: whether the top cause is right, and whether all shares are near."""
    choices = next((each for each in tables if each["by"] == "choices"), None)
    if choices is None:
        return f"| {pair.kind} | {pair.name} | | no difference shown, or nothing to toggle | | |"
    parts = {part["name"]: part for part in choices["parts"]}
    first = choices["parts"][0]["name"]
    told = [f"{name} {parts[name]['share']:.0%}" for name in parts if parts[name]["proven"]]
    wrong = [name for name in parts if parts[name]["proven"] and name not in pair.truth]
    known = {name: share for name, share in pair.truth.items() if share is not None}
    largest = max(known, key=lambda name: known[name]) if known else first
    right = first in pair.truth and first == largest
    near = all(abs(parts[name]["share"] - share) <= _NEAR for name, share in known.items())
    sources = [
        f"{part['name']} {part['share']:.0%}"
        for each in tables
        if each["by"] == "sources"
        for part in each["parts"]
        if part["proven"]
    ]
    truth = ", ".join(f"{n} {'' if s is None else f'{s:.0%}'}" for n, s in pair.truth.items())
    return (
        f"| {pair.kind} | {pair.name} | {truth} | {', '.join(told)} | {', '.join(sources)} "
        f"| {'right' if right else 'WRONG'}{', near' if near else ', far'}"
        f"{f', proven decoys: {wrong}' if wrong else ''} |"
    )


def main() -> None:
    """Race all pairs, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--only", default="", metavar="KIND")
    asked = parser.parse_args()
    folder = asked.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if asked.equal:
        lines = []
        for pair in equal_pairs(folder):
            proven = [p["name"] for t in explained(pair, folder) for p in t["parts"] if p["proven"]]
            lines.append(f"| {pair.kind} | {pair.name} | {', '.join(proven) or 'nothing'} |")
            print(lines[-1], flush=True)
        head = "| what | pair | proven |\n| --- | --- | --- |\n"
        page = f"# Causes where there is no difference\n\n{head}" + "\n".join(lines) + "\n"
        (_RESULTS / "planted_causes_equal.md").write_text(page)
        return
    file = _RESULTS / "planted_causes.md"
    kept = [line for line in file.read_text().splitlines() if line.endswith((" |", "|"))][2:]
    kept = [line for line in kept if asked.only and not line.startswith(f"| {asked.only} |")]
    rows = []
    for pair in (*study_pairs(folder), *command_pairs(folder)):
        if asked.only in ("", pair.kind):
            rows.append(row_of(pair, explained(pair, folder)).replace(f"{folder}/", ""))
            print(rows[-1], flush=True)
    every = [*kept, *rows]
    said = (
        f"Of {len(every)} pairs the largest cause is right in {_count(every, '| right')}; all "
        f"known shares are within 10 points of the truth in {_count(every, ', near')}. Made by "
        "`bench/planted_causes.py`."
    )
    head = "| kind | pair | planted (share of the difference) | proven | proven sources | |"
    lines = [head, "| --- | --- | --- | --- | --- | --- |", *every]
    file.write_text("\n\n".join(["# Planted causes", said, "\n".join(lines)]) + "\n")


def _count(lines: Sequence[str], said: str) -> int:
    return sum(said in line for line in lines)


if __name__ == "__main__":
    main()
