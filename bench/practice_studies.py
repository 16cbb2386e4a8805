"""Makes the studies that are made from others: studies/practices/, studies/hardening/ and studies/valkey/.

    python3 bench/practice_studies.py

A program's own study (studies/NAME/study.toml) says how it is built, trained, checked and raced. The
price of practices and of hardening is asked of the same program in the same way, on other axes;
Valkey is built like Redis and gets its tests. A study file stands alone, so these are written out;
`tests/studies/test_practice_studies.py` says when one is not what its program's study is now.
"""

from __future__ import annotations

import re
from pathlib import Path

STUDIES = Path(__file__).parents[1] / "studies"
PROGRAMS = {
    "redis": "redis/quick.toml",
    "zstd": "zstd/study.toml",
    "xz": "xz/study.toml",
    "pixman": "pixman/study.toml",
    "sqlite": "sqlite/study.toml",
    "snappy": "snappy/study.toml",
    "libsvm": "libsvm/study.toml",
}
FIRST = ("source", "build", "environments")
_NAME = re.compile(r"\[\[?([a-z_]+)")
_TITLE = re.compile(r'(?m)^title = "([^:"]+)')
_KEPT = re.compile(r"(mode|metric|slice) =")

PRACTICES = """\
[axes]
combine = "one-at-a-time"
compiler = ["gcc-12", "gcc-11", "clang-19"]
optimization = ["-O2", "-O0", "-O1", "-O3", "-Os", "-Ofast"]
lto = ["off", "full"]
pgo = ["off", "on"]
target = ["default", "x86-64-v2", "x86-64-v3", "native"]
aliasing = ["default", "relaxed"]
alignment = ["default", "functions", "loops"]
floating_point = ["default", "fast"]
allocator = ["default", "jemalloc", "tcmalloc"]
# Debug information is in every variant: what would be without it?
strip = ["no", "yes"]

# Together, where their gains need not add up.
[[include]]
lto = "full"
pgo = "on"

[[include]]
optimization = "-O3"
lto = "full"
pgo = "on"

# Fused multiply-add needs a target that has it; there it is on unless it is switched off.
[[include]]
target = "x86-64-v3"
floating_point = "strict"

[baseline]
compiler = "gcc-12"
optimization = "-O2"

"""

HARDENING = """\
# Each option is added to what the compiler does by itself, which in Debian is position-independent programs and RELRO. `none` and the
# flags without PIE take away.
[axes]
combine = "one-at-a-time"
compiler = ["gcc-12"]
optimization = ["-O2"]
hardening = ["default", "none", "debian", "openssf", "pie", "relro", "bindnow", "canary", "fortify", "stack-clash", "cet", "auto-init"]
flags = [
    "",
    "-fno-pie -no-pie",
    "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3",
    "-D_GLIBCXX_ASSERTIONS",
    "-fno-delete-null-pointer-checks",
    "-fno-strict-overflow",
    "-fno-strict-aliasing",
    "-Wl,-z,noexecstack",
]

[baseline]
compiler = "gcc-12"
optimization = "-O2"
hardening = "default"
flags = ""

"""

LAYOUTS = """\
# Two dozen variants are not to be built again for more relinks.
[layouts]
count = 12

"""

AXES = {"practices": PRACTICES, "hardening": HARDENING}
BUDGETS = {"practices": "5m", "hardening": "5m"}
TITLES = {"practices": "what practices are worth", "hardening": "what hardening costs"}
QUESTIONS = {
    "practices": "What is each practice of building worth to this program?",
    "hardening": "What does each protection cost this program, singly and together?",
}
# Not of what was built: `hardening` trains nothing, and does not ship.
LEFT_OUT = {"practices": {"layouts", "ship"}, "hardening": {"layouts", "ship", "training"}}

VALKEY_HEAD = """\
# What Redis' tests say of Valkey: the same published tests, training and server settings as in ../redis/full.toml, on fewer builds.
# Made from that file by `python3 bench/practice_studies.py`; edit those.
# `ensign run studies/valkey/study.toml`

name = "valkey"
title = "Valkey 8.0.1: compiler, level, LTO, PGO and BOLT on tests of the Redis benchmarks specification"
question = "Is what makes Redis faster worth the same in Valkey?"

[source]
kind = "git"
url = "https://github.com/valkey-io/valkey.git"
commit = "8.0.1"
"""
VALKEY_AXES = """\
[axes]
combine = "list"
compiler = ["gcc-12"]
optimization = ["-O2"]

# Valkey's makefile adds -flto=auto to its own level, so that this has link-time optimization, too (`lto-not-asked`).
[[include]]

# As Valkey is released.
[[include]]
optimization = "-O3"
lto = "full"

[[include]]
optimization = "-O3"
lto = "full"
pgo = "on"

[[include]]
compiler = "clang-19"
optimization = "-O3"
lto = "full"

[[include]]
compiler = "clang-19"
optimization = "-O3"
lto = "full"
pgo = "on"

[[include]]
compiler = "clang-19"
optimization = "-O3"
lto = "full"
pgo = "on"
bolt = "on"

[baseline]
compiler = "gcc-12"
optimization = "-O2"
lto = "off"
pgo = "off"
bolt = "off"
"""
VALKEY_RACE = """\
[race]
mode = "driven"
metric = "cpu"
budget = "60m"
rounds = 8
confirm = { finalists = 1, rounds = 8 }
slice = "2ms"
"""
# Valkey's own names for what Redis calls otherwise.
RENAMED = (
    ("REDIS_CFLAGS=", "SERVER_CFLAGS="),
    ("REDIS_LDFLAGS=", "SERVER_LDFLAGS="),
    ("REDIS_CFLAGS and REDIS_LDFLAGS reach Redis", "SERVER_CFLAGS and SERVER_LDFLAGS reach Valkey"),
    ("Redis' own Makefile", "Valkey's own Makefile"),
    ('"hdr_histogram", "jemalloc"', '"hdr_histogram", "fpconv", "jemalloc"'),
    ("redis-server", "valkey-server"),
)


def tables_of(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the first table, and each table with its name and the comment above it."""
    head: list[str] = []
    tables: list[tuple[str, list[str]]] = []
    comment: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            comment.append(line)
            continue
        if found := _NAME.match(line):
            tables.append((found[1], []))
        lines = tables[-1][1] if tables else head
        lines += [*comment, line]
        comment = []
    return "".join(head), [(name, "".join(lines)) for name, lines in tables]


def derived(text: str, kind: str, program: str, origin: str) -> str:
    """The study of a kind (`practices`, `hardening`) from a program's own study, `origin`."""
    head, tables = tables_of(text)
    title = _TITLE.search(head)
    if title is None:
        raise SystemExit(f"{origin} has no title")
    opening = (
        f"# Made from ../{origin} by `python3 bench/practice_studies.py`; edit those.\n"
        f"# `ensign run studies/{kind}/{program}.toml`\n\n"
        f'name = "{kind}-{program}"\n'
        f'title = "{title[1]}: {TITLES[kind]}"\n'
        f'question = "{QUESTIONS[kind]}"\n'
    )
    first = [table for name, table in tables if name in FIRST]
    rest = [
        table
        for name, table in tables
        if name not in {*FIRST, "axes", "include", "exclude", "baseline", "race", *LEFT_OUT[kind]}
    ]
    asked = [line for name, table in tables if name == "race" for line in table.splitlines()]
    race = ["[race]", *(line for line in asked if _KEPT.match(line)), f'budget = "{BUDGETS[kind]}"']
    return joined(opening, *first, AXES[kind], *rest, LAYOUTS, "\n".join(race))


def valkey(redis: str) -> str:
    """Valkey's study, from that of Redis."""
    _, tables = tables_of(redis)
    build = [table for name, table in tables if name == "build"]
    rest = [table for name, table in tables if name in ("training", "check", "server", "suite")]
    kept = joined(*build, VALKEY_AXES, *rest[:-1], VALKEY_RACE, rest[-1])
    for old, new in RENAMED:
        kept = kept.replace(old, new)
    return joined(VALKEY_HEAD, kept)


def joined(*parts: str) -> str:
    """Tables with one empty line between them."""
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def studies() -> dict[Path, str]:
    """Every study that is made from another, and its lock file: the source is the same."""
    made = {
        STUDIES / kind / f"{program}.toml": derived(
            (STUDIES / origin).read_text(), kind, program, origin
        )
        for kind in AXES
        for program, origin in PROGRAMS.items()
    }
    made |= {
        STUDIES / kind / f"{program}.lock.json": (STUDIES / origin)
        .with_suffix(".lock.json")
        .read_text()
        for kind in AXES
        for program, origin in PROGRAMS.items()
    }
    made[STUDIES / "valkey/study.toml"] = valkey((STUDIES / "redis/full.toml").read_text())
    return made


if __name__ == "__main__":
    for file, text in studies().items():
        file.write_text(text)
        print(file.relative_to(STUDIES.parent))
