"""Whether `ensign explain` finds the functions in which a planted difference lies.

    python bench/planted_functions.py FOLDER [--budget 20s]

24 pairs of programs in six kinds, each with twelve functions that do not differ: more work in some
functions, a unit compiled with other flags, a slower shared library, a tunable of the C library
that takes away its vectors, inlining lost, more system calls. The truth is that the rows
named here have the whole difference, in these shares. Results go to
`bench/results/planted_functions.md`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import ENSIGN

_RESULTS = Path(__file__).parent / "results" / "planted_functions.md"
_NEAR = 0.1
_DECOYS = tuple(f"decoy_{number}" for number in range(12))
_TUNABLE = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX2_Usable,-ERMS,-FSRM"
_HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WORK(name, times) __attribute__((noipa)) unsigned long name(unsigned long n) \\
  { unsigned long s = n; n *= times; while (n--) s = s * 6364136223846793005UL + n; return s; }
"""
_LOOP = """
__attribute__((noipa)) double sums(const double *v, int n)
  { double s = 0; for (int i = 0; i < n; i++) { double x = v[i]; s += x * x + x; } return s; }
"""


@dataclass(frozen=True)
class Pair:
    """Commands, and the rows that have the difference: each one's share of it."""

    kind: str
    name: str
    before: str
    after: str
    truth: Mapping[str, float]


def program(folder: Path, name: str, body: str, *flags: str, more: str = "") -> Path:
    """A program that calls all decoys and `body`, built in a folder of its own."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    decoys = " ".join(f"WORK({decoy}, {1 + 3 * n})" for n, decoy in enumerate(_DECOYS))
    calls = " + ".join(f"{decoy}(n)" for decoy in _DECOYS)
    main = (
        f"int main(int count, char **words) {{ unsigned long n = 60, sum = 0; (void)count;"
        f" (void)words; for (int k = 0; k < 2000; k++) {{ sum += {calls}; {body} }}"
        ' printf("%d\\n", sum == 42); }'
    )
    source = place / "tool.c"
    source.write_text(f"{_HEAD}{more}\n{decoys}\n{main}\n")
    argv = ["gcc", "-O2", "-g", str(source), *flags, "-o", str(place / "tool")]
    subprocess.run(argv, check=True)
    return place / "tool"


def more_work(folder: Path) -> list[Pair]:
    """Some functions do more: one alone, or two to four at once."""
    pairs = []
    plans = ([40], [120], [60, 30], [80, 40, 20], [80, 60, 40, 20], [20], [50, 40], [10])
    for number, plan in enumerate(plans):
        names = [f"planted_{at}" for at in range(len(plan))]
        body = " ".join(f"sum += {name}(n);" for name in names)
        paths = [
            program(
                folder,
                f"work{number}-{side}",
                body,
                more=" ".join(
                    f"WORK({name}, {20 + extra * side})"
                    for name, extra in zip(names, plan, strict=True)
                ),
            )
            for side in (0, 1)
        ]
        truth = {name: extra / sum(plan) for name, extra in zip(names, plan, strict=True)}
        pairs.append(Pair("more work", f"{len(plan)} at once", str(paths[0]), str(paths[1]), truth))
    return pairs


def unit_flags(folder: Path) -> list[Pair]:
    """One function of a unit of its own, compiled otherwise."""
    pairs = []
    for number, flags in enumerate((["-O0"], ["-O1", "-fno-tree-vectorize"], ["-O0"], ["-Og"])):
        objects = []
        source = folder / f"unit{number}.c"
        source.write_text(_LOOP)
        for side, own in enumerate((["-O3", "-ffast-math", "-mavx2"], flags)):
            made = folder / f"unit{number}-{side}.o"
            subprocess.run(["gcc", "-g", *own, "-c", str(source), "-o", str(made)], check=True)
            objects.append(made)
        size = (4000, 4000, 1000, 2000)[number]
        body = f"static double v[{size}]; v[k % {size}] = k; sum += sums(v, {size}) > 0;"
        more = "double sums(const double *, int);"
        paths = [
            program(folder, f"unit{number}-{side}", body, str(made), more=more)
            for side, made in enumerate(objects)
        ]
        pairs.append(
            Pair("flags of a unit", " ".join(flags), str(paths[0]), str(paths[1]), {"sums": 1.0})
        )
    return pairs


def libraries(folder: Path) -> list[Pair]:
    """The loader finds a slower library."""
    pairs = []
    for number, times in enumerate((40, 60, 120, 80)):
        folders = []
        for side in (0, 1):
            place = folder / f"lib{number}-{side}"
            place.mkdir(parents=True, exist_ok=True)
            source = place / "l.c"
            source.write_text(f"{_HEAD}WORK(of_library, {20 + (times - 20) * side})\n")
            argv = ["gcc", "-O2", "-g", "-shared", "-fPIC", str(source)]
            subprocess.run([*argv, "-o", str(place / "libplanted.so")], check=True)
            folders.append(place)
        more = "unsigned long of_library(unsigned long);"
        body = "sum += of_library(n);"
        flags = (f"-L{folders[0]}", "-lplanted")
        path = program(folder, f"uses{number}", body, *flags, more=more)
        commands = [f"env LD_LIBRARY_PATH={place} {path}" for place in folders]
        pairs.append(
            Pair("library", f"{times} for 20", commands[0], commands[1], {"of_library": 1.0})
        )
    return pairs


def tunables(folder: Path) -> list[Pair]:
    """The C library takes another implementation."""
    bodies = {
        "memcpy": "static char a[1 << 14], b[1 << 14]; a[k & 99] = k; memcpy(b, a, sizeof b);"
        " memcpy(a, b, sizeof a); sum += b[9];",
        "memset": "static char a[1 << 15]; memset(a, k, sizeof a); sum += a[k & 99];",
        "strlen": "static char a[1 << 14]; if (!k) memset(a, 65, sizeof a - 1);"
        " sum += strlen(a + (k & 7));",
        "memcmp": "static char a[1 << 14], b[1 << 14]; a[k & 7] = b[k & 7] = k;"
        " sum += memcmp(a, b, sizeof a);",
    }
    pairs = []
    for name, body in bodies.items():
        path = program(
            folder, f"tuned-{name}", f"for (int r = 0; r < 12; r++) {{ {body} }}", "-fno-builtin"
        )
        pairs.append(Pair("tunable", name, str(path), f"env {_TUNABLE} {path}", {name: 1.0}))
    return pairs


def inlining(folder: Path) -> list[Pair]:
    """A small function is no longer inlined where it is called often."""
    pairs = []
    for number, times in enumerate((1000, 3000)):
        more = (
            "static inline __attribute__((HOW)) unsigned small(unsigned s)"
            " { return (s >> 1) ^ (-(s & 1u) & 0xd0000001u); }\n"
            "__attribute__((noipa)) unsigned caller(unsigned n)"
            f" {{ unsigned s = n; for (int i = 0; i < {times}; i++) s = small(s); return s; }}"
        )
        body = "for (int r = 0; r < 10; r++) sum += caller(n + r);"
        paths = [
            program(folder, f"inline{number}-{how}", body, f"-DHOW={how}", more=more)
            for how in ("always_inline", "noipa")
        ]
        truth = {"small": 1.0, "caller": 0.0}
        pairs.append(Pair("inlining lost", f"{times} calls", str(paths[0]), str(paths[1]), truth))
    return pairs


def system_calls(folder: Path) -> list[Pair]:
    """Bytes are written one by one."""
    body = 'for (int r = 0; r < TIMES; r++) sum += write(null, "x", 1);'
    more = "#include <fcntl.h>\n#include <unistd.h>\nstatic int null;\n"
    more += "__attribute__((constructor)) static void begin(void)"
    more += ' { null = open("/dev/null", O_WRONLY); }'
    paths = [
        str(program(folder, f"calls{times}", body, f"-DTIMES={times}", more=more))
        for times in (1, 30, 60)
    ]
    truth = {"(system calls and page faults)": 1.0}
    return [
        Pair("system calls", "30 more", paths[0], paths[1], truth),
        Pair("system calls", "60 more", paths[0], paths[2], truth),
    ]


def told(pair: Pair, folder: Path, budget: str) -> dict[str, Any]:
    """What `ensign explain` says of a pair."""
    out = folder / "out.json"
    argv = [str(ENSIGN), "explain", "--budget", budget, "--json", str(out)]
    subprocess.run([*argv, pair.before, pair.after], check=True, stdout=subprocess.DEVNULL)
    (found,) = json.loads(out.read_text())["functions"]
    assert isinstance(found, dict)
    return found


def row_of(number: int, pair: Pair, found: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Cells of the page, and whether the top row and its share are right."""
    rows: Sequence[Mapping[str, Any]] = found["by_source"] or found["by_symbol"]
    total = found["total"]["difference"]
    shares: dict[str, float] = {}
    for row in rows:
        shares[row["name"]] = shares.get(row["name"], 0.0) + row["difference"] / total
    top = max(shares, key=lambda name: shares[name])
    expected = max(pair.truth, key=lambda name: pair.truth[name])
    together = sum(shares.get(name, 0.0) for name in pair.truth)
    right = pair.truth.get(top, 0.0) >= pair.truth[expected] - _NEAR
    near = abs(shares[top] - pair.truth.get(top, 0.0)) <= _NEAR
    if pair.kind == "inlining lost":  # what the call costs is in both of its ends
        right, near = top in pair.truth, abs(together - 1) <= _NEAR
    cells = [
        str(number),
        pair.kind,
        pair.name,
        f"{100 * total:+.1f} %",
        top,
        f"{100 * shares[top]:.0f} %",
        f"{100 * pair.truth.get(top, 0.0):.0f} %",
        f"{100 * together:.0f} %",
        "yes" if right and near else "**no**",
    ]
    return cells, right and near


def main() -> None:
    """Races all pairs, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", default="20s")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    makers = (more_work, unit_flags, libraries, tunables, inlining, system_calls)
    pairs = [pair for make in makers for pair in make(asked.folder)]
    head = [
        "",
        "kind",
        "plant",
        "whole difference",
        "top row",
        "its share",
        "truth",
        "all planted rows",
        "right",
    ]
    lines = [head, ["---"] * len(head)]
    good = 0
    for number, pair in enumerate(pairs, start=1):
        cells, right = row_of(number, pair, told(pair, asked.folder, asked.budget))
        good += right
        lines.append(cells)
        print(*cells, sep=" | ", flush=True)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    text = (
        "# Planted differences, and the functions that are told\n\n"
        f"`python bench/planted_functions.py FOLDER --budget {asked.budget}`: {good} of "
        f"{len(pairs)} have the right function on top, its share within 10 points of the truth "
        "(of inlining: both ends of the call together).\n\n"
    )
    _RESULTS.write_text(f"{text}{table}\n")


if __name__ == "__main__":
    main()
