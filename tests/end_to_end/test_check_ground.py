"""What was checked is what was raced: a check that builds for itself is void."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from end_to_end.test_study import results

HEAD = """\
name = "checked"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
{build}
deadline = "60s"

[check]
{check}

[axes]
compiler = ["gcc-12"]
optimization = ["-O1", "-O2", "-Os"]

[baseline]
optimization = "-O1"

[race]
budget = "20s"
rounds = 3

[[workloads]]
name = "one"
command = ["{{artifact}}", "200000"]
"""
# The optimizer of -O2 alone makes it wrong: __OPTIMIZE_SIZE__ is -Os, -O1 builds say so.
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
int answer(void);
int main(int argc, char **argv)
{
    volatile unsigned long sum = 0, rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
    if (argc > 1)
        return 0;
    return answer() == 42 ? 0 : 7;
}
"""
ANSWER = """\
int answer(void)
{
#ifdef WRONG
    return 41;
#else
    return 42;
#endif
}
"""
TEST = """\
int answer(void);
int main(void) { return answer() == 42 ? 0 : 9; }
"""
MAKEFILE = """\
prog: main.o answer.o
\t$(CC) -o $@ main.o answer.o
%.o: %.c
\t$(CC) $(CFLAGS) -c -o $@ $<
unit: unit.o answer.o
\t$(CC) -o $@ unit.o answer.o
check: prog unit
\t./prog && ./unit
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(p C)
add_library(answer STATIC answer.c)
add_executable(prog main.c)
target_link_libraries(prog answer)
add_executable(unit unit.c)
target_link_libraries(unit answer)
enable_testing()
add_test(NAME whole COMMAND prog)
add_test(NAME unit COMMAND unit)
"""
MESON = """\
project('p', 'c')
answer = static_library('answer', 'answer.c')
prog = executable('prog', 'main.c', link_with: answer)
test('whole', prog)
test('unit', executable('unit', 'unit.c', link_with: answer))
"""
# Only builds that pass -O2 are wrong; a build of the check's own has the project's flags.
WRONG = "case '{cflags}' in *-O2*) w=-DWRONG;; esac"
BUILDS = {
    "make": f"""commands = [["sh", "-c", "{WRONG}; make prog CC={{cc}} CFLAGS=\\"{{cflags}} $w\\""]]
artifact = "prog\"""",
    "cmake": f"""commands = [
    ["sh", "-c", "{WRONG}; CC={{cc}} CFLAGS=\\"{{cflags}} $w\\" cmake -S . -B out"],
    ["cmake", "--build", "out"],
]
artifact = "out/prog\"""",
    "meson": f"""commands = [
    ["sh", "-c", "{WRONG}; CC={{cc}} CFLAGS=\\"{{cflags}} $w\\" meson setup -Dbuildtype=plain out"],
    ["ninja", "-C", "out"],
]
artifact = "out/prog\"""",
}
REBUILDS = {
    "make": [["make", "check"]],
    "cmake": [
        ["cmake", "-S", ".", "-B", "again"],
        ["cmake", "--build", "again"],
        ["ctest", "--test-dir", "again"],
    ],
    "meson": [["meson", "setup", "again"], ["meson", "test", "-C", "again"]],
    "elsewhere": [["sh", "-c", "cc -o {tmp}/prog main.c answer.c && {tmp}/prog; rm {tmp}/prog"]],
    "in place": [["sh", "-c", "cc -o {artifact} main.c answer.c && {artifact}"]],
    "in place, put back": [
        ["sh", "-c", "cp -p {artifact} k"],
        ["sh", "-c", "cc -o {artifact} main.c answer.c && {artifact}; mv k {artifact}"],
    ],
}
IN_TREE = {
    "make": [["make", "check", "CC={cc}", "CFLAGS={cflags}"]],
    "cmake": [["ctest", "--test-dir", "out", "--output-on-failure"]],
    "meson": [["meson", "test", "--no-rebuild", "-C", "out"]],
}


def study(ensign: Ensign, build: str, check: str) -> None:
    source = ensign.folder / "source"
    source.mkdir()
    for name, text in {
        "main.c": PROGRAM, "answer.c": ANSWER, "unit.c": TEST,
        "Makefile": MAKEFILE, "CMakeLists.txt": CMAKE, "meson.build": MESON,
    }.items():  # fmt: skip
        (source / name).write_text(text)
    text = HEAD.format(build=BUILDS[build], check=check)
    (ensign.folder / "study.toml").write_text(text)


@pytest.mark.parametrize(
    ("build", "check"),
    [
        ("make", "make"),
        ("cmake", "cmake"),
        ("meson", "meson"),
        ("make", "elsewhere"),
        ("make", "in place"),
        ("make", "in place, put back"),
    ],
)
def test_a_check_that_builds_for_itself_is_void(ensign: Ensign, build: str, check: str) -> None:
    # `make check` finds no objects in the source, and so makes the program again.
    study(ensign, build, f"commands = {REBUILDS[check]!r}")
    done = ensign("run", "study.toml")
    assert done.status == 2, done.err
    assert "check is void" in done.complaint
    assert "prog" in done.complaint
    assert "check.in_build_tree = true" in done.complaint
    assert not list(Path(ensign.folder).glob(".ensign/*/trials/*/*"))


@pytest.mark.parametrize("build", ["make", "cmake", "meson"])
def test_in_the_tree_of_its_build_the_variant_itself_is_checked(ensign: Ensign, build: str) -> None:
    study(ensign, build, f"commands = {IN_TREE[build]!r}\nin_build_tree = true")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    checks = {one["variant"]: one["check"] for one in said["builds"]}
    assert checks == {"gcc-12-O1": "passed", "gcc-12-O2": "failed", "gcc-12-Os": "passed"}
    assert "check-never-ran-it" not in {each["code"] for each in said["findings"]}
    again = ensign("run", "study.toml")
    assert again.status == 0, again.err


def test_a_check_that_never_runs_the_program_is_told(ensign: Ensign) -> None:
    study(ensign, "make", 'commands = [["true"]]')
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    (finding,) = [each for each in results(ensign)["findings"] if "never-ran" in str(each["code"])]
    assert "never executed the program" in str(finding["text"])


def test_profiled_and_bolted_programs_are_checked_at_their_places(ensign: Ensign) -> None:
    # What make would make again says so.
    check = "make -n prog | grep -q -- -o && exit 3; make check CC={cc} CFLAGS='{cflags}' LDFLAGS="
    study(ensign, "make", f'commands = [["sh", "-c", "{check}"]]\nin_build_tree = true')
    makefile = ensign.folder / "source" / "Makefile"
    makefile.write_text(MAKEFILE.replace("-o $@ main.o", "$(LDFLAGS) -o $@ main.o"))
    path = ensign.folder / "study.toml"
    text = path.read_text().replace('["gcc-12"]', '["clang-19"]')
    text = text.replace('"-O1", "-O2", "-Os"', '"-O1"')
    text = text.replace("[race]", 'pgo = "off"\nbolt = "off"\n\n[race]')
    text = text.replace('$w\\"', '$w\\" LDFLAGS=\\"{ldflags}\\"')
    more = '\n[[include]]\noptimization = "-O1"\npgo = "on"\nbolt = "on"\n'
    learn = '[[training.workloads]]\nname = "learn"\ncommand = ["{artifact}", "30000000"]\n'
    path.write_text(text + more + learn)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    checks = {one["variant"]: (one["status"], one["check"]) for one in results(ensign)["builds"]}
    assert len(checks) == 2
    assert all(check == ("built", "passed") for check in checks.values()), done.said
