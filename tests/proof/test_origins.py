"""Objects that no call of this build made, in the forms in which they get into programs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensign.builders.build import WrongBaseline, build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.request import BuildPorts
from ensign.model.findings import Severity
from ensign.model.study_build import SandboxSection
from ensign.model.variants import Variant
from small_studies import request

MAIN = "int hot(int);\nint main(int count, char **words) { (void)words; return hot(count); }\n"
HOT = "int hot(int x) { int s = 0; for (int i = 0; i < 1000 + x; i++) s += i ^ x; return s & 1; }\n"
COMPILE = "{cc} {cflags} -c main.c"
ALL = f"{COMPILE} && {{cc}} {{cflags}} -c hot.c"
LINK = "{cc} {ldflags} -o program main.o"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "main.c").write_text(MAIN)
    (folder / "hot.c").write_text(HOT)
    return folder


def shell(folder: Path, line: str) -> None:
    subprocess.run(["sh", "-e", "-c", line], cwd=folder, check=True)


def built(
    tmp_path: Path, ports: BuildPorts, line: str, variant: str = "-O2", **build: object
) -> BuildReport:
    asked = request(tmp_path, Variant("v", "gcc-12", variant), **(of_line(line) | build))
    return build_variants(asked, ports)


def of_line(line: str) -> dict[str, object]:
    return {
        "dependencies": [],
        "commands": [["sh", "-e", "-c", line]],
        "own_flags": [],
        "tool_commands": [],
        "tools": {},
    }


STALE = "gcc-11 -O0 -c hot.c"
STRAY = [
    ("an object that make did not build again", STALE, f"{COMPILE} && {LINK} hot.o", "hot.o"),
    (
        "moved and renamed",
        f"{STALE} && mkdir old && mv hot.o old/",
        f"{COMPILE} && cp old/hot.o h.o && {LINK} h.o",
        "h.o (as old/hot.o)",
    ),
    (
        "in an archive of this build",
        STALE,
        f"{COMPILE} && ar rcs libhot.a hot.o && {LINK} -L. -lhot",
        "libhot.a(hot.o) (as hot.o)",
    ),
    (
        "in a thin archive",
        STALE,
        f"{COMPILE} && mkdir l && ar rcsT l/libhot.a hot.o && {LINK} -Ll -lhot",
        "l/libhot.a(../hot.o) (as hot.o)",
    ),
    (
        "an archive of an earlier build",
        f"{STALE} && ar rcs libhot.a hot.o && rm hot.o",
        f"{COMPILE} && {LINK} libhot.a",
        "libhot.a(hot.o)",
    ),
    (
        "taken out of an earlier archive",
        f"{STALE} && ar rcs libhot.a hot.o && rm hot.o",
        f"{COMPILE} && ar x libhot.a && {LINK} hot.o",
        "hot.o (as libhot.a(hot.o))",
    ),
    (
        "linked with others into one object",
        STALE,
        f"{COMPILE} && ld -r -o both.o main.o hot.o && {{cc}} {{ldflags}} -o program both.o",
        "hot.o",
    ),
    (
        "an object that was stripped",
        STALE,
        f"{COMPILE} && objcopy -g hot.o h.o && {LINK} h.o",
        "hot.o",
    ),
    (
        "named in a response file",
        STALE,
        f"{COMPILE} && echo main.o hot.o > list && {{cc}} {{ldflags}} -o program @list",
        "hot.o",
    ),
    (
        "named in a linker script",
        STALE,
        f"{COMPILE} && echo 'INPUT(hot.o)' > libhot.so && {LINK} -L. -lhot",
        "hot.o",
    ),
    (
        "passed on to the linker",
        STALE,
        f"{COMPILE} && {LINK} -Wl,--whole-archive,hot.o,--no-whole-archive",
        "hot.o",
    ),
    (
        "a shared library of an earlier build",
        "gcc-11 -O0 -fPIC -shared -o libhot.so hot.c",
        f"{COMPILE} && {LINK} -L. -lhot -Wl,-rpath,.",
        "libhot.so",
    ),
    (
        "unpacked by the build from an archive of files",
        f"{STALE} && touch -d 2020-01-01 hot.o && tar cf old.tar hot.o && rm hot.o",
        f"{COMPILE} && tar xf old.tar && {LINK} hot.o",
        "hot.o",
    ),
]


@pytest.mark.parametrize(
    ("before", "line", "name"), [each[1:] for each in STRAY], ids=[each[0] for each in STRAY]
)
def test_an_object_of_an_earlier_build_is_named(
    before: str, line: str, name: str, source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shell(source, before)
    with pytest.raises(WrongBaseline) as caught:
        built(tmp_path, recording_ports, line)
    (finding,) = caught.value.findings
    assert finding.code == "not-from-this-build"
    assert finding.severity is Severity.ERROR
    assert f": {name};" in finding.text


def test_a_whole_program_of_an_earlier_build(
    source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shell(source, "gcc-11 -O0 -o program main.c hot.c")
    with pytest.raises(WrongBaseline, match="program was not made by this build"):
        built(tmp_path, recording_ports, "test -e program || {cc} {cflags} -o program main.c hot.c")


def test_a_kept_library_of_an_earlier_build(
    source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shell(source, "gcc-11 -O0 -fPIC -shared -o plugin.so hot.c")
    line = "{cc} {cflags} {ldflags} -o program main.c hot.c"
    with pytest.raises(WrongBaseline, match=r"plugin\.so was not made by this build"):
        built(tmp_path, recording_ports, line, runtime_files=["plugin.so"])


def test_an_object_from_a_folder_elsewhere(
    source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    (tmp_path / "elsewhere").mkdir()
    shell(source, f"gcc-11 -O0 -c hot.c -o {tmp_path}/elsewhere/hot.o")
    with pytest.raises(WrongBaseline, match="from a folder outside of the build"):
        built(tmp_path, recording_ports, f"{COMPILE} && {LINK} {tmp_path}/elsewhere/hot.o")


def test_one_variant_of_other_parts_is_left_out(
    source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shell(source, STALE)
    line = f"{COMPILE} && case '{{cflags}}' in *-O2*) rm hot.o; {{cc}} {{cflags}} -c hot.c;; esac"
    shape: dict[str, object] = {
        "dependencies": [],
        "commands": [["sh", "-ec", f"{line}; {LINK} hot.o"]],
    }
    shape |= {"own_flags": [], "tool_commands": [], "tools": {}}
    variants = (Variant("good", "gcc-12", "-O2"), Variant("bad", "gcc-12", "-O3"))
    report = build_variants(request(tmp_path, *variants, **shape), recording_ports)
    errors = [each for each in report.findings if each.severity is Severity.ERROR]
    assert [(each.code, each.subject) for each in errors] == [("not-from-this-build", "bad")]
    assert report.result("bad").artifact is None
    assert report.result("good").artifact is not None


@pytest.mark.parametrize("way", [{"clean": [["rm", "-f", "hot.o"]]}, {"prebuilt": ["h*.o"]}])
def test_cleaning_or_declaring_mends_it(
    way: dict[str, Any], source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shell(source, STALE)
    line = f"{COMPILE} && {{ test -e hot.o || {{cc}} {{cflags}} -c hot.c; }} && {LINK} hot.o"
    report = built(tmp_path, recording_ports, line, **way)
    assert [each for each in report.findings if each.severity is Severity.ERROR] == []
    said = any("as the study declares: hot.o" in line for line in report.results[0].facts.evidence)
    assert said == ("prebuilt" in way)


RIGHT = {
    "one call": "{cc} {cflags} {ldflags} -o program main.c hot.c",
    "several sources in one call": "{cc} {cflags} -c main.c hot.c && " + LINK + " hot.o",
    "from standard input": f"{COMPILE} && {{cc}} {{cflags}} -x c -c -o h.o - < hot.c && {LINK} h.o",
    "through assembly": f"{COMPILE} && {{cc}} {{cflags}} -S hot.c && as -o hot.o hot.s "
    f"&& {LINK} hot.o",
    "through a pipe": f"{COMPILE} && {{cc}} {{cflags}} -S -o - hot.c | as -o hot.o - "
    f"&& {COMPILE} && {LINK} hot.o",
    "generated": f"{COMPILE} && cp hot.c made.c && {{cc}} {{cflags}} -c made.c && {LINK} made.o",
    "moved": f"{ALL} && mkdir o && mv hot.o o/x.o && {LINK} o/x.o",
    "archive made in steps": f"{ALL} && ar rc lib.a main.o && ar r lib.a hot.o && ranlib lib.a "
    "&& install -D lib.a out/lib/libx.a && {cc} {ldflags} -o program -Lout/lib -lx",
    "archive of an archive": f"{ALL} && ar rcs a.a hot.o && mkdir x && (cd x && ar x ../a.a) "
    f"&& rm hot.o && ar rcs b.a x/hot.o && {LINK} b.a",
    "thin": f"{ALL} && ar rcsT lib.a hot.o && {LINK} lib.a",
    "one object of two": f"{ALL} && ld -r -o both.o main.o hot.o "
    "&& {cc} {ldflags} -o program both.o",
    "changed objects": f"{ALL} && objcopy --rename-section .comment=.remark hot.o "
    f"&& strip -g main.o && {LINK} hot.o",
    "renamed program": f"{ALL} && {{cc}} {{ldflags}} -o p.tmp main.o hot.o && mv p.tmp program",
    "stripped program": f"{ALL} && {LINK} hot.o && /usr/bin/strip -g program",
    "unity": "cat main.c hot.c > all.c && {cc} {cflags} {ldflags} -o program all.c",
    "assembler": "printf '.globl hot\\nhot: xor %%eax, %%eax\\n ret\\n"
    f".section .note.GNU-stack,\"\"\\n' > h.S && {COMPILE} && {{cc}} -c h.S && {LINK} h.o",
    "data": f"{COMPILE} && {{cc}} {{cflags}} -c hot.c && ld -r -b binary -o data.o hot.c "
    f"&& {LINK} hot.o data.o",
    "shared": "{cc} {cflags} -fPIC -shared -o libhot.so hot.c && " + COMPILE
    + " && " + LINK + " -L. -lhot -Wl,-soname,x -Wl,-rpath,.",
    "one compiler past the recorder": f"{COMPILE} && /usr/bin/gcc-12 {{cflags}} -c hot.c "
    f"&& {LINK} hot.o",
    "old files that no link takes": f"{ALL} && {LINK} hot.o",
    "same archive, unused member": f"{ALL} && ar rcs lib.a hot.o stale.o && {LINK} lib.a",
}  # fmt: skip


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_right_builds_have_no_error(
    line: str, source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shell(source, "echo 'int unused(void) { return 1; }' | gcc-11 -O0 -x c -c -o stale.o -")
    report = built(tmp_path, recording_ports, line)
    allowed = {"no-debug-info", "built-files-in-source", "archive-unused", "flags-differ"}
    assert {finding.code for finding in report.findings} <= allowed, report.findings


@pytest.mark.usefixtures("source")
def test_lto_in_archives(tmp_path: Path, recording_ports: BuildPorts) -> None:
    line = f"{ALL} && {{ar}} rcs lib.a hot.o && {LINK} lib.a"
    shape: dict[str, object] = {"dependencies": [], "commands": [["sh", "-ec", line]]}
    shape |= {"own_flags": [], "tool_commands": [], "tools": {}}
    variants = (
        Variant("v", "gcc-12", "-O2", lto="full"),
        Variant("w", "clang-19", "-O2", lto="thin"),
    )
    report = build_variants(request(tmp_path, *variants, **shape), recording_ports)
    assert [each.text for each in report.findings] == []


@pytest.mark.usefixtures("source")
def test_a_compiler_that_was_not_asked_for(tmp_path: Path, recording_ports: BuildPorts) -> None:
    for compiler in ("clang-19", "/usr/bin/gcc-11 -g", "/usr/bin/gcc-11"):
        line = f"{COMPILE} && {compiler} -O2 -c hot.c && {LINK} hot.o"
        with pytest.raises(WrongBaseline, match=r"gcc-12 was asked for, but .* compiled hot\.[co]"):
            built(tmp_path, recording_ports, line)


@pytest.mark.usefixtures("source")
def test_what_nobody_saw_is_not_judged(tmp_path: Path, recording_ports: BuildPorts) -> None:
    line = f"{COMPILE} && /usr/bin/gcc-12 -O0 -c hot.c && {LINK} hot.o"
    report = built(tmp_path, recording_ports, line)
    (said,) = (each for each in report.results[0].facts.evidence if "not judged" in each)
    assert "hot.o" in said
    unrecorded = built(tmp_path, replace(recording_ports, meter=None), line)
    assert any("no calls were recorded" in each for each in unrecorded.results[0].facts.evidence)


@pytest.mark.usefixtures("source")
@pytest.mark.skipif(shutil.which("ccache") is None, reason="needs ccache")
def test_a_hit_of_ccache_is_a_compile_call(tmp_path: Path, recording_ports: BuildPorts) -> None:
    (tmp_path / "ccache").mkdir()
    (tmp_path / "ccache").chmod(0o777)  # builds of root's run as somebody else
    line = f"ccache {ALL.replace('&& ', '&& ccache ')} && {LINK} hot.o"
    for level in ("-O2", "-O2 ", "-O3"):
        env = {"CCACHE_DIR": str(tmp_path / "ccache"), "AGAIN": level}
        asked = request(tmp_path, Variant("v", "gcc-12", level.strip()), **of_line(line), env=env)
        sandbox = SandboxSection(write=["ccache"])
        study = asked.study.model_copy(update={"sandbox": sandbox})
        report = build_variants(replace(asked, study=study), recording_ports)
        assert [each.text for each in report.findings] == []
        assert any("2 objects come from" in each for each in report.results[0].facts.evidence)
