"""Finds the mistakes of Redis' history by name when they are made again, in Redis itself.

Each case is a small study whose build makes one mistake; the last one makes none. Every case
builds the dependencies and Redis once or twice: a quarter of an hour for all on two cores.
`python bench/redis_mistakes.py [CASE …]`; exit status 1 where a finding is missing or too many.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache, open_study
from ensign.experiment.study.prepare import build_programs
from ensign.host.cache import Cache
from ensign.model.errors import CommandFailed

DEPENDENCIES = (
    'make -C deps -j{jobs} CC={cc} AR={ar} RANLIB={ranlib} NM={nm} CFLAGS="{dependency_cflags}" '
    "hiredis linenoise lua hdr_histogram jemalloc"
)
PROGRAM = "make -C src -j{jobs} V=1 CC={cc} AR={ar} RANLIB={ranlib} USE_SYSTEMD=no"
KEEP = "'PREV_FINAL_CFLAGS=$(FINAL_CFLAGS)' 'PREV_FINAL_LDFLAGS=$(FINAL_LDFLAGS)'"
RIGHT = 'REDIS_CFLAGS="{cflags}" REDIS_LDFLAGS="{ldflags}"'
GCC_LTO = 'compiler = "gcc-12"\noptimization = "-O3"\nlto = "full"'
CLANG_LTO = 'compiler = "clang-19"\noptimization = "-O3"\nlto = "full"'
CODES = (
    "dependencies-broken",
    "flag-leaked-into-dependency",
    "lto-compile-only",
    "optimization-missing-at-link",
    "unknown-lto-flag",
)


@dataclass(frozen=True)
class Case:
    """A variant beside a plain baseline, how Redis is built, and the finding expected for it.

    Without `keep` Redis' Makefile builds the dependencies anew, as its flags have changed.
    """

    name: str
    expected: str
    variant: str
    flags: str = RIGHT
    dependencies: str = DEPENDENCIES
    keep: bool = True

    @property
    def compiler(self) -> str:
        """Of the baseline too: some link lines are one compiler's alone."""
        return "clang-19" if "clang-19" in self.variant else "gcc-12"


CASES = (
    # -flto reaches the compiler, and nothing says so to the link.
    Case("compile-only-gcc", "lto-compile-only", GCC_LTO, 'REDIS_CFLAGS="{cflags}"'),
    Case(
        "compile-only-clang",
        "lto-compile-only",
        CLANG_LTO,
        'REDIS_CFLAGS="{cflags}" REDIS_LDFLAGS=-fuse-ld=lld',
    ),
    # A flag of GCC's that Clang takes for another, and one of Clang's that GCC refuses.
    Case(
        "unknown-flag-clang",
        "unknown-lto-flag",
        f'{CLANG_LTO}\nflags = "-flto-partition=none"',
    ),
    Case(
        "unknown-flag-gcc",
        "unknown-lto-flag",
        'compiler = "gcc-12"\noptimization = "-O3"\nflags = "-flto=thin"',
    ),
    # LTO generates code at the link, at the level that the link is told.
    Case(
        "link-without-level-gcc",
        "optimization-missing-at-link",
        GCC_LTO,
        'REDIS_CFLAGS="{cflags}" REDIS_LDFLAGS=-flto=auto',
    ),
    Case(
        "link-without-level-clang",
        "optimization-missing-at-link",
        CLANG_LTO,
        'REDIS_CFLAGS="{cflags}" REDIS_LDFLAGS="-flto -fuse-ld=lld"',
    ),
    # LTO objects in archives that a plain ar cannot index; symbols that jemalloc's own nm does not
    # find in them, and so does not rename; warnings of Lua's that become errors.
    Case(
        "archives-without-index",
        "dependencies-broken",
        f'{CLANG_LTO}\ndependencies = "flags"',
        dependencies=DEPENDENCIES.replace("{ar}", "ar").replace("{ranlib}", "ranlib"),
    ),
    Case(
        "nm-without-symbols",
        "dependencies-broken",
        f'{CLANG_LTO}\ndependencies = "flags"',
        dependencies=DEPENDENCIES.replace(" NM={nm}", ""),
    ),
    Case(
        "warnings-are-errors",
        "dependencies-broken",
        'compiler = "gcc-12"\noptimization = "-O3"\nflags = "-Wextra -Werror"\n'
        'dependencies = "flags"',
    ),
    # The variable that Redis' README tells of also reaches the bundled hiredis.
    Case(
        "optimization-variable",
        "flag-leaked-into-dependency",
        'compiler = "gcc-12"\noptimization = "-O1"',
        'OPTIMIZATION="{cflags}" LDFLAGS="{ldflags}"',
        keep=False,
    ),
    Case("right", "", GCC_LTO),
)


def study_of(case: Case) -> str:
    """The study file of a case; its workload is never run."""
    keep = KEEP if case.keep else ""
    return f"""name = "redis-{case.name}"
[source]
kind = "debian"
package = "redis"
version = "7.0.15"
sha256 = "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982"
[build]
dependencies = [['sh', '-c', '''{case.dependencies}''']]
commands = [['sh', '-c', '''{PROGRAM} {case.flags} {keep} redis-server''']]
artifact = "src/redis-server"
[axes]
compiler = ["{case.compiler}"]
[[include]]
{case.variant}
[baseline]
optimization = "-O2"
lto = "off"
[[workloads]]
name = "none"
command = ["{{artifact}}", "--version"]
"""


def findings_of(case: Case, folder: Path, cache: Cache) -> tuple[list[str], str]:
    """The codes found in the variant of a case, and how its build ended."""
    path = folder / f"{case.name}.toml"
    path.write_text(study_of(case))
    file = open_study(path)
    variant = file.variants[-1].name
    try:
        report = build_programs(file, cache, Ports()).report
    except CommandFailed as error:
        return [], f"baseline failed: {str(error).splitlines()[0]}"
    about = {finding.code for finding in report.findings if finding.subject in (variant, "")}
    facts = report.result(variant).facts
    tail = facts.log_tail.splitlines()[-1] if facts.log_tail else ""
    return sorted(about), f"{facts.status} {tail}".strip()


def main(names: Sequence[str]) -> int:
    """Build the cases named, or all; how many have not the findings expected."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, open_cache(Ports()) as cache:
        for case in CASES:
            if names and case.name not in names:
                continue
            found, ended = findings_of(case, Path(folder), cache)
            named = [code for code in found if code in CODES]
            good = named == ([case.expected] if case.expected else [])
            wrong += not good
            print(f"{case.name}: {'as expected' if good else 'WRONG'}: {ended}")
            print(f"    expected {case.expected or 'none'}; found {', '.join(found) or 'none'}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
