"""Faults of everyday builds, each with different evidence left: what `ensign doctor` says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ensign.model.checkup import ArtifactCheckup
from ensign.report import as_artifact
from ensign.tools.doctor.artifact import examine_path
from real_processes import PlainProcesses

PARTS = {
    "main.c": "#include <stdio.h>\nint a(int); int b(int);\n"
    'int main(int n, char **w) { char s[9]; sprintf(s, "%d", n); printf("%s %d\\n", s, a(n)); '
    "(void)w; return b(n) == 7; }\n",
    "a.c": "#include <stdio.h>\nint a(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; "
    'printf("%d\\n", s); return s; }\n',
    "b.c": "int b(int n) { return n * 3; }\n",
}
GCC, CLANG = "gcc-12 -g", "clang-19 -g -grecord-command-line"


class Project:
    """A small program, compiled by hand; `commands` are those of its units."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[dict[str, str]] = []
        folder.mkdir()
        for name, text in PARTS.items():
            (folder / name).write_text(text)

    def run(self, line: str) -> None:
        subprocess.run(["sh", "-ec", line], cwd=self.folder, check=True, capture_output=True)

    def compile(self, each: Mapping[str, str], usual: str) -> None:
        for name in PARTS:
            line = f"{each.get(name, usual)} -c {name} -o {name[:-2]}.o"
            self.commands.append({"directory": str(self.folder), "file": name, "command": line})
            self.run(line)

    def link(self, line: str) -> None:
        self.run(f"{line} -o program main.o a.o b.o")

    def leave(self, evidence: str) -> Path:
        """Takes away all but this: `program`, `objects`, `commands`, or nothing."""
        if evidence == "commands":
            path = self.folder / "build/compile_commands.json"
            path.parent.mkdir()
            path.write_text(json.dumps(self.commands))
            self.run("rm -f *.o program")
        elif evidence == "program":
            return self.folder / "program"
        elif evidence == "objects":
            self.run("rm -f program")
        elif evidence == "archive":
            self.run("ar rcs lib.a *.o; rm -f *.o program")
            return self.folder / "lib.a"
        return self.folder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "p")


def examine(path: Path) -> ArtifactCheckup:
    return examine_path(path, PlainProcesses(), dry_run=True)


def faults(found: ArtifactCheckup) -> dict[str, str]:
    return {each.code: each.said for each in found.findings if each.code != "not-judged"}


EVERYWHERE = ("program", "objects", "commands", "archive", "folder")
WRONG = [
    ("two levels", f"{GCC} -O2 -O0", {}, "flag-overridden", "-O2 is undone by -O0"),
    ("less later", f"{GCC} -O3 -Os", {}, "flag-overridden", "-O3 is undone by -Os"),
    ("clang's levels", f"{CLANG} -O3 -O1", {}, "flag-overridden", "-O3 is undone by -O1"),
    (
        "one unit's processor",
        f"{GCC} -O2 -march=x86-64-v2",
        {"b.c": f"{GCC} -O2"},
        "flags-differ",
        "-march=x86-64-v2 in 2 of 3",
    ),
    (
        "one unit's arithmetic",
        f"{GCC} -O2",
        {"a.c": f"{GCC} -O2 -ffast-math"},
        "flags-differ",
        "-ffast-math in 1 (a.c)",
    ),
    (
        "clang's arithmetic",
        f"{CLANG} -O2 -ffast-math",
        {"a.c": f"{CLANG} -O2"},
        "flags-differ",
        "-ffast-math in 2 of 3",
    ),
    ("one unit's level", f"{GCC} -O2", {"a.c": f"{GCC} -O0"}, "flags-differ", "-O0 in 1 (a.c)"),
    (
        "one unit without LTO",
        f"{GCC} -O2 -flto",
        {"a.c": f"{GCC} -O2 -flto -fno-lto"},
        "flags-differ",
        "-flto in 2 of 3",
    ),
    (
        "two compilers",
        f"{GCC} -O2",
        {"a.c": "gcc-11 -g -O2"},
        "mixed-compilers",
        "more than one compiler",
    ),
]


@pytest.mark.parametrize("evidence", EVERYWHERE)
@pytest.mark.parametrize(
    ("usual", "other", "code", "said"),
    [each[1:] for each in WRONG],
    ids=[each[0] for each in WRONG],
)
def test_a_fault_is_found_from_whatever_is_left(
    usual: str, other: dict[str, str], code: str, said: str, evidence: str, project: Project
) -> None:
    project.compile(other, usual)
    project.link(usual if "flto" in usual else "gcc-12 -g")
    found = examine(project.leave(evidence))
    assert said in faults(found).get(code, ""), found.findings
    assert "Nothing is wrong" not in as_artifact.terminal(found)


@pytest.mark.parametrize("evidence", EVERYWHERE)
@pytest.mark.parametrize("flags", [f"{GCC} -O2", f"{GCC} -O2 -flto", f"{CLANG} -O3 -march=x86-64"])
def test_a_right_build_has_no_fault_and_its_open_questions(
    flags: str, evidence: str, project: Project
) -> None:
    project.compile({}, flags)
    project.link(flags)
    found = examine(project.leave(evidence))
    assert faults(found) == {}, found.findings
    assert any("order of the link" in each.text for each in found.findings)
    text = as_artifact.terminal(found)
    assert "Nothing is wrong" not in text
    assert "not judged: " in text


FORTIFY = "-O2 -D_FORTIFY_SOURCE=2"


@pytest.mark.parametrize("evidence", EVERYWHERE)
@pytest.mark.parametrize("debug", ["-g", ""])
def test_fortify_in_some_units(debug: str, evidence: str, project: Project) -> None:
    project.compile({"a.c": f"gcc-12 {debug} -O2"}, f"gcc-12 {debug} {FORTIFY}")
    project.link("gcc-12")
    found = examine(project.leave(evidence))
    assert "FORTIFY" in faults(found).get("flags-differ", ""), found.findings


def test_lto_when_compiling_alone(project: Project) -> None:
    project.compile({}, f"{GCC} -O2 -flto")
    project.link(GCC)
    assert "optimization-missing-at-link" in faults(examine(project.leave("program")))
    makefile = "program: main.o a.o b.o\n\tgcc-12 -O2 -g -o $@ main.o a.o b.o\n"
    rules = "%.o: %.c\n\tgcc-12 -g -O2 -flto -c $<\n"
    (project.folder / "Makefile").write_text(makefile + rules)
    assert "lto-compile-only" in faults(examine(project.folder))


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize("generator", ["Unix Makefiles", "Ninja"])
def test_a_build_folder_of_cmake(generator: str, project: Project) -> None:
    rules = ("cmake_minimum_required(VERSION 3.20)", "project(p C)", "add_library(x STATIC b.c)",
             "add_executable(program main.c a.c)", "target_link_libraries(program x)")  # fmt: skip
    (project.folder / "CMakeLists.txt").write_text("\n".join(rules))
    options = "-DCMAKE_C_FLAGS='-g -O2' -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
    project.run(f"cmake -G '{generator}' -B build {options} && cmake --build build")
    found = examine(project.folder)
    assert found.findings == ()
    assert [each.path for each in found.examined] == ["build/program"]
    assert "Nothing is wrong" in as_artifact.terminal(found)
    with (project.folder / "CMakeLists.txt").open("a") as file:
        file.write("\ntarget_compile_options(x PRIVATE -ffast-math)\n")
    project.run("cmake --build build")
    assert "-ffast-math in 1 (b.c)" in faults(examine(project.folder))["flags-differ"]


@pytest.mark.parametrize("writer", ["cmake", "ninja"])
def test_lto_when_compiling_alone_by_the_build_systems_files(writer: str, project: Project) -> None:
    project.compile({}, f"{GCC} -O2 -flto")
    project.link(f"{GCC} -O2")
    project.run("mkdir -p build/CMakeFiles/program.dir; mv *.o program build")
    (project.folder / "build/compile_commands.json").write_text(
        json.dumps([{**each, "directory": f"{project.folder}/build"} for each in project.commands])
    )
    if writer == "cmake":
        line = "/usr/bin/gcc-12 -O2 main.o a.o b.o -o program\n"
        (project.folder / "build/CMakeFiles/program.dir/link.txt").write_text(line)
    else:
        edge = "build program: c_LINKER main.o a.o b.o | x\n LINK_ARGS = -O2\n"
        (project.folder / "build/build.ninja").write_text(edge)
    assert "lto-compile-only" in faults(examine(project.folder))


def test_without_a_link_the_question_is_open(project: Project) -> None:
    project.compile({}, f"{GCC} -O2 -flto")
    found = examine(project.leave("commands"))
    texts = [each.text for each in found.findings if each.code == "not-judged"]
    assert any("whether LTO was done at the link" in text for text in texts)


@pytest.mark.parametrize("compiler", [GCC, CLANG])
@pytest.mark.parametrize("changed", [True, False])
def test_a_stale_profile(compiler: str, changed: bool, project: Project) -> None:  # noqa: FBT001
    project.compile({}, f"{compiler} -O2 -fprofile-generate")
    project.link(f"{compiler} -fprofile-generate")
    project.run("./program; ! ls *.profraw || llvm-profdata-19 merge -o default.profdata *.profraw")
    project.run("rm -f *.profraw *.o")
    for path in project.folder.glob("*"):
        os.utime(path, (10**9, 10**9))
    if changed:
        (project.folder / "a.c").write_text(PARTS["a.c"].replace("i * n", "i * n + 1"))
    use = "" if compiler == GCC else "=default.profdata"
    project.compile({}, f"{compiler} -O2 -w -fprofile-use{use}")
    project.link(compiler)
    found = examine(project.folder)
    assert ("profile-stale" in faults(found)) == changed, found.findings
    if changed:
        assert "a.c was changed" in faults(found)["profile-stale"]
        listed = project.leave("commands")
        assert "profile-stale" in faults(examine(listed))
    project.run("rm -f *.gcda *.profdata")
    texts = [each.text for each in examine(project.folder).findings]
    assert any("no profile file lies here" in text for text in texts)


def test_recorded_command_lines_without_debug_information(project: Project) -> None:
    for compiler, record in (
        ("gcc-12", "-frecord-gcc-switches"),
        ("clang-19", "-frecord-command-line"),
    ):
        usual = f"{compiler} {record}"
        project.compile({"a.c": f"{usual} -O0"}, f"{usual} -O3")
        project.link("gcc-12")
        for evidence in ("program", "folder"):
            assert "flags-differ" in faults(examine(project.leave(evidence)))


def test_stripped_and_without_debug_information_are_told_apart(project: Project) -> None:
    project.compile({}, "gcc-12 -O2")
    project.link("gcc-12")
    plain = faults(examine(project.folder / "program"))["no-debug-info"]
    project.run("strip program")
    stripped = faults(examine(project.folder / "program"))["no-debug-info"]
    project.compile({}, "gcc-12 -g -O2")
    project.link("gcc-12")
    project.run("objcopy --only-keep-debug program d && strip program")
    project.run("objcopy --add-gnu-debuglink=d program")
    assert "no-debug-info" not in faults(examine(project.folder / "program"))
    project.run("rm d")
    apart = faults(examine(project.folder / "program"))["no-debug-info"]
    assert "without -g" in plain
    assert "is stripped" in stripped
    assert ".gnu_debuglink" in apart


@pytest.mark.parametrize("evidence", EVERYWHERE)
@pytest.mark.parametrize("flags", [GCC, f"{GCC} -O2 -O0", f"{GCC} -O0", f"{CLANG} -O0"])
def test_a_build_without_optimization_is_named(flags: str, evidence: str, project: Project) -> None:
    project.compile({}, flags)
    project.link(flags)
    found = examine(project.leave(evidence))
    assert "all 3 compile units" in faults(found).get("unoptimized", ""), found.findings
    assert "Nothing is wrong" not in as_artifact.terminal(found)


def test_one_optimized_unit_makes_units_differ(project: Project) -> None:
    project.compile({"a.c": f"{GCC} -O1"}, GCC)
    project.link(GCC)
    found = faults(examine(project.folder))
    assert "flags-differ" in found
    assert "unoptimized" not in found


def test_other_languages_than_c_are_not_judged(project: Project) -> None:
    project.run(
        "printf '.section .debug_abbrev\\n.byte 1,17,0,37,8,3,8,0,0,0\\n.section .debug_info\\n"
        '.long 2f-1f\\n1: .value 4\\n.long 0\\n.byte 8,1\\n.asciz "rustc 9"\\n.asciz "x.rs"\\n'
        "2:\\n' > x.s"
    )
    project.compile({}, "gcc-12 -O2")
    project.run("gcc-12 -c x.s && gcc-12 -o program main.o a.o b.o x.o && rm *.o")
    found = examine(project.folder)
    texts = [each.text for each in found.findings if each.code == "not-judged"]
    assert any("rustc 9 made them, and only those of C and C++" in text for text in texts), texts


def test_text_json_and_exit_agree(project: Project) -> None:
    project.compile({}, f"{GCC} -O2")
    project.link(GCC)
    found = examine(project.folder)
    written = json.loads(as_artifact.as_json(found))
    for finding in written["findings"]:
        assert finding["text"] in " ".join(as_artifact.terminal(found, 10_000).split())
    assert {finding["severity"] for finding in written["findings"]} == {"note"}


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
@pytest.mark.parametrize("name", ["thin", "thin in a folder"])
def test_a_thin_archive_that_gave_something_is_not_unused(
    name: str, compiler: str, project: Project
) -> None:
    at = "sub/" if "folder" in name else ""
    project.run(f"mkdir -p sub; {compiler} -g -O2 -c main.c a.c b.c; mv a.o b.o sub")
    project.run(f"ar rcsT {at}libx.a sub/a.o sub/b.o")
    project.run(f"gcc-12 -g -O2 -o program main.o {at}libx.a -Wl,-Map=program.map")
    linking = f"program: main.o\n\tgcc-12 -g -O2 -o program main.o {at}libx.a\n"
    makefile = f"{linking}main.o:\n\t{compiler} -g -O2 -c main.c\n"
    (project.folder / "Makefile").write_text(makefile)
    assert "archive-unused" not in faults(examine(project.folder))
    project.run("rm -f program.map")
    assert "archive-unused" not in faults(examine(project.folder))


def plain_make(project: Project, flags: str) -> None:
    """A Makefile that builds with these flags where nobody says others."""
    rules = "program: main.o a.o b.o\n\t$(CC) $(CFLAGS) -o $@ $^\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $<"
    (project.folder / "Makefile").write_text(f"CC = gcc-12\nCFLAGS = {flags}\n{rules}\n")


TOLD = [
    ("LTO", "-O2 -g", "make CFLAGS='-O2 -g -flto'"),
    ("level", "-O0 -g", "make CFLAGS='-O2 -g'"),
    ("undone", "-O2 -O0 -g", "make CFLAGS='-O3 -g'"),
    ("compiler", "-O0", "make CC=clang-19 CFLAGS='-O2 -g'"),
]


@pytest.mark.parametrize(("plain", "told"), [each[1:] for each in TOLD], ids=[e[0] for e in TOLD])
def test_a_makefile_is_no_evidence_of_a_build_that_was_told_other_flags(
    plain: str, told: str, project: Project
) -> None:
    plain_make(project, plain)
    project.run(told)
    found = examine(project.folder)
    assert faults(found) == {}, found.findings
    assert any("plain make would build something else" in each.text for each in found.findings)
    assert "Nothing is wrong" not in as_artifact.terminal(found)


@pytest.mark.parametrize("stripped", [False, True])
def test_without_debug_information_a_makefile_speaks_for_itself(
    stripped: bool,  # noqa: FBT001
    project: Project,
) -> None:
    plain_make(project, "-O2 -O0")
    project.run("make CFLAGS=-O3")
    if stripped:
        project.run("strip program; rm *.o")
    found = examine(project.folder)
    said = faults(found)
    assert "as plain make would build it" in said["flag-overridden"]
    assert "as plain make would build it" in said["unoptimized"]
    text = as_artifact.terminal(found)
    assert "the flags and the compiler of each unit" in text


def test_the_unit_says_which_flag_it_had_not_the_makefile(project: Project) -> None:
    plain_make(project, "-O2 -g")
    project.run("make && gcc-12 -O0 -g -c a.c && gcc-12 -o program main.o a.o b.o")
    assert "-O0 in 1 (a.c)" in faults(examine(project.folder))["flags-differ"]


def test_a_source_that_was_changed_later_is_named(project: Project) -> None:
    plain_make(project, "-O2 -g")
    project.run("make")
    assert "source-changed" not in faults(examine(project.folder))
    project.run("touch -d '+1 hour' a.c")
    assert "a.c was changed after it was built" in faults(examine(project.folder))["source-changed"]


def test_objects_are_judged_beside_a_makefile_that_says_otherwise(project: Project) -> None:
    plain_make(project, "-O2 -g")
    project.run("make CFLAGS='-O0 -g' && rm program")
    assert "unoptimized" in faults(examine(project.folder))
