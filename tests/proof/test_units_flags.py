"""Units of what runs that a flag did not reach, in the forms in which builds lose it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import WrongBaseline, build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.request import BuildPorts
from ensign.host.files import file_sha256
from ensign.model.calls import LinkInput, Output
from ensign.model.findings import Severity
from ensign.model.variants import Variant
from ensign.proof.facts import LinkFacts
from ensign.proof.link import TreePlace
from ensign.proof.origins import OriginEvidence, trace
from recorded import recorded
from small_studies import request

COMPILE = "{cc} {cflags} -c main.c"
LINK = "{cc} {ldflags} -o program main.o"
PAST = "/usr/bin/gcc-12"


@pytest.fixture(autouse=True)
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "main.c").write_text(
        "int hot(int);\nint main(int n, char **w) { (void)w; return hot(n); }\n"
    )
    (folder / "hot.c").write_text(
        "#ifndef HOT\n#define HOT hot\n#endif\nint HOT(int x) { return x * 3; }\n"
    )
    return folder


def built(
    tmp_path: Path, ports: BuildPorts, line: str, variant: Variant | None = None, **build: object
) -> BuildReport:
    shape: dict[str, object] = {
        "dependencies": [],
        "commands": [["sh", "-e", "-c", line]],
        "own_flags": [],
        "tool_commands": [],
        "tools": {},
    }
    wanted = variant or Variant("v", "gcc-12", "-O2")
    return build_variants(request(tmp_path, wanted, **(shape | build)), ports)


ALL = f"{COMPILE} && {{cc}} {{cflags}} -c hot.c"
WRONG = {
    "without debug information, moved": f"{COMPILE} && {{cc}} -O0 -c hot.c && mkdir o && mv hot.o "
    f"o/x.o && {LINK} o/x.o",
    "in an archive, installed": f"{COMPILE} && {{cc}} -O0 -c hot.c && ar rcs lib.a hot.o "
    f"&& install -D lib.a out/libx.a && {LINK} -Lout -lx",
    "in one object with others": f"{COMPILE} && {{cc}} -O0 -c hot.c && ld -r -o both.o main.o hot.o"
    " && {cc} {ldflags} -o program both.o",
    "one source twice": f"{ALL} && {{cc}} {{cflags}} -O0 -DHOT=more -c hot.c -o more.o "
    f"&& {LINK} hot.o more.o",
    "overridden in one": f"{COMPILE} && {{cc}} {{cflags}} -O1 -c hot.c && {LINK} hot.o",
    "past the recorder": f"{COMPILE} && {PAST} -g -O0 -c hot.c && {LINK} hot.o",
    "all past the recorder": f"{PAST} {{cflags}} -c main.c && {PAST} -g -O1 -c hot.c "
    f"&& {PAST} -o program main.o hot.o",
    "compiled at the link": f"{COMPILE} && {{cc}} {{ldflags}} -O0 -o program main.o hot.c",
    "again without flags": f"{ALL} && {{cc}} -c hot.c && {LINK} hot.o",
}
RIGHT = {
    "first without flags": f"{{cc}} -O0 -c hot.c && {ALL} && {LINK} hot.o",
    "for a tool": f"{{cc}} -O0 -o tool hot.c main.c && ./tool || {ALL} && {LINK} hot.o",
    "a member that no link takes": f"{ALL} && {{cc}} -O0 -DHOT=more -c hot.c -o more.o "
    f"&& ar rcs lib.a hot.o more.o && {LINK} lib.a",
    "another flag more": f"{COMPILE} && {{cc}} {{cflags}} -mavx2 -funroll-loops -c hot.c "
    f"&& {LINK} hot.o",
    "for a library's sake": f"{COMPILE} && {{cc}} {{cflags}} -fPIC -c hot.c && {LINK} hot.o",
}


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG)
def test_a_unit_without_the_flag_is_an_error_that_names_it(
    line: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    with pytest.raises(WrongBaseline) as wrong:
        built(tmp_path, recording_ports, line)
    (finding,) = (each for each in wrong.value.findings if each.severity is Severity.ERROR)
    assert finding.code in ("flags-differ", "flag-overridden")
    assert "-O2" in finding.text
    assert "hot.c" in finding.text
    assert 'build.own_flags = ["hot.c"]' in finding.text


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG)
def test_declared_it_is_none(line: str, tmp_path: Path, recording_ports: BuildPorts) -> None:
    report = built(tmp_path, recording_ports, line, own_flags=["hot.c"])
    assert {each.code for each in report.findings} <= {"no-debug-info"}, report.findings
    evidence = report.results[0].facts.evidence
    assert any("as the study declares: hot.c" in each for each in evidence)


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_what_does_not_run_and_what_is_more_count_for_nothing(
    line: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    variant = Variant("v", "gcc-12", "-O2", hardening="openssf")
    report = built(tmp_path, recording_ports, line, variant)
    assert {each.code for each in report.findings} <= {"archive-unused"}, report.findings


@pytest.mark.parametrize(
    ("flag", "variant"),
    [
        ("-march=x86-64", Variant("v", "gcc-12", "-O2", target="x86-64-v2")),
        ("-fplt", Variant("v", "clang-19", "-O2", plt="off")),
        ("-fno-lto", Variant("v", "clang-19", "-O2", lto="thin")),
        ("-fno-lto", Variant("v", "gcc-12", "-O2", lto="full")),
        ("-fno-stack-protector", Variant("v", "gcc-12", "-O2", hardening="openssf")),
        ("-UANSWER -DANSWER=7", Variant("v", "gcc-12", "-O2", flags="-DANSWER=42")),
    ],
)
def test_other_flags_than_the_level(
    flag: str, variant: Variant, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    line = f"{COMPILE} && {{cc}} {{cflags}} {flag} -c hot.c && {LINK} hot.o"
    with pytest.raises(WrongBaseline, match=r"hot\.c.*build\.own_flags"):
        built(tmp_path, recording_ports, line, variant)


def test_a_declared_object_has_flags_of_its_own(
    source: Path, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    subprocess.run(["gcc-11", "-g", "-O0", "-c", "hot.c"], cwd=source, check=True)
    line = f"{COMPILE} && {LINK} hot.o"
    report = built(tmp_path, recording_ports, line, prebuilt=["hot.o"])
    assert not [each for each in report.findings if each.severity is Severity.ERROR]


def test_the_way_out_names_all_units(tmp_path: Path, recording_ports: BuildPorts) -> None:
    names = [f"part{number}" for number in range(9)]
    for name in names:
        (tmp_path / "source" / f"{name}.c").write_text(f"int {name};\n")
    sources, objects = (" ".join(f"{name}.{end}" for name in names) for end in "co")
    line = f"{ALL} && {{cc}} -O0 -c {sources} && {LINK} hot.o {objects}"
    with pytest.raises(WrongBaseline) as wrong:
        built(tmp_path, recording_ports, line)
    (finding,) = (each for each in wrong.value.findings if each.severity is Severity.ERROR)
    said = finding.text.rpartition("build.own_flags = ")[2]
    assert sorted(json.loads(said)) == sources.split()


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
@pytest.mark.parametrize("suffix", ["S", "s"])
def test_assembler_lacks_no_flags(
    suffix: str, compiler: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    (tmp_path / "source" / f"low.{suffix}").write_text(
        '.globl low\nlow: nop\n.section .note.GNU-stack,"",%progbits\n'
    )
    line = f"{ALL} && {{cc}} {{cflags}} -c low.{suffix} && {LINK} hot.o low.o"
    report = built(tmp_path, recording_ports, line, Variant("v", compiler, "-O2"))
    said = {each.code for each in report.findings}
    assert not said & {"flags-differ", "flag-missing", "mixed-compilers", "wrong-compiler"}


def test_start_files_are_no_libraries_of_the_machine(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"linked")
    machine = "/usr/lib/x86_64-linux-gnu"
    of_compiler = (
        f"{machine}/Scrt1.o",
        f"{machine}/crti.o",
        "/usr/lib/gcc/x/12/crtbeginS.o",
        f"{machine}/libc_nonshared.a",
        "/usr/lib/gcc/x/12/libgcc.a",
        "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.builtins-x86_64.a",
    )
    inputs = [
        LinkInput(
            path, "object" if path.endswith(".o") else "archive", path, (("m.o", path + "m"),)
        )
        for path in (*of_compiler, f"{machine}/libz.a", f"{machine}/crtool.o")
    ]
    output = Output(str(program), file_sha256(program), 6)
    words = ("ld", "-o", "program")
    link = recorded(words, str(tmp_path), tool="ld", outputs=(output,))
    link = replace(link, inputs=tuple(inputs))
    place = TreePlace(tmp_path, str(tmp_path))
    (found,) = trace(["program"], OriginEvidence(place, [link], (), 0), LinkFacts())
    assert found.machine == (f"{machine}/libz.a", f"{machine}/crtool.o")
