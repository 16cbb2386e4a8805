"""Miniature projects, each wrong in one way, and what is found in each; and right ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ensign.builders.build import WrongBaseline, build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.request import BuildPorts
from ensign.experiment.study.executed_files import judge_ran
from ensign.model.findings import Severity
from ensign.model.traced_execution import RanFile, RanOnce
from ensign.model.variants import Variant
from small_studies import request

PROJECTS = Path(__file__).parents[1] / "projects" / "proof"
COMPILERS = ("gcc-12", "clang-19")

MAKE = ["make", "-j2", "CC={cc}", "AR={ar}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]


def build(
    name: str, tmp_path: Path, ports: BuildPorts, *variants: Variant, **more: object
) -> BuildReport:
    shutil.copytree(PROJECTS / "parts", tmp_path / "source")
    shutil.copytree(PROJECTS / name, tmp_path / "source", dirs_exist_ok=True)
    dependencies = [["make", "CC={cc}", "AR={ar}", "DEPENDENCY={dependency_cflags}", "libother.a"]]
    staged = name in ("right-dependency", "leaks-into-dependency", "dependency-breaks")
    shape = {
        "commands": [[*MAKE, "program"]],
        "own_flags": [],
        "tool_commands": [],
        "tools": {},
        "dependencies": dependencies if staged else [],
    }
    return build_variants(request(tmp_path, *variants, **(shape | more)), ports)


def codes_of(
    name: str, tmp_path: Path, ports: BuildPorts, variant: Variant
) -> tuple[list[str], list[str]]:
    """Codes and texts of what is found, also where it ends the study."""
    try:
        report = build(name, tmp_path, ports, variant)
    except WrongBaseline as wrong:
        return [each.code for each in wrong.findings], [each.text for each in wrong.findings]
    assert all(finding.severity is not Severity.ERROR for finding in report.findings)
    return codes(report), [each.text for each in report.findings]


def codes(report: BuildReport) -> list[str]:
    return [finding.code for finding in report.findings]


def a_variant(compiler: str, **axes: str) -> Variant:
    return Variant("v", **{"compiler": compiler, "optimization": "-O3"} | axes)  # type: ignore[arg-type]


def imports(program: Path) -> set[str]:
    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        return {each.name for each in table.iter_symbols() if each["st_shndx"] == "SHN_UNDEF"}


FULL = {"lto": "full"}
WRONG_FOR_BOTH: list[tuple[str, dict[str, str], str]] = [
    ("ignores-flags", {}, "flag-missing"),
    ("ignores-flags", FULL, "flag-missing"),
    ("overrides-level", {}, "flag-overridden"),
    ("one-unit-differs", {}, "flags-differ"),
    ("one-unit-differs", FULL, "flags-differ"),
    ("no-debug", {}, "no-debug-info"),
    ("one-unit-without-debug", {}, "no-debug-info"),
    ("lto-compile-only", FULL, "lto-compile-only"),
    ("lto-not-linked", FULL, "lto-not-linked"),
    ("no-level-at-link", FULL, "optimization-missing-at-link"),
    ("other-level-at-link", FULL, "flag-overridden"),
    ("wrong-archiver", FULL, "wrong-archiver"),
    ("mixed-compilers", {}, "wrong-compiler"),
    ("hardening-lost-at-link", {"hardening": "bindnow"}, "hardening-missing"),
    ("fortify-lost", {"hardening": "fortify"}, "flag-overridden"),
    ("own-plt", {}, "plt-calls"),
    ("own-plt", {"interposition": "off"}, "not-interposable"),
    ("archive-after-shared", {}, "archive-after-shared"),
    ("archive-after-shared", FULL, "archive-after-shared"),
    ("duplicate-library", {}, "duplicate-library"),
    ("duplicate-library", FULL, "duplicate-library"),
    ("unused-archive", {}, "archive-unused"),
    ("unused-archive", FULL, "archive-unused"),
    ("own-optimization", {}, "own-optimization"),
    ("archive-unlinked", {}, "archive-passed-over"),
    ("archive-unlinked", FULL, "archive-passed-over"),
    ("leaks-into-dependency", {}, "flag-leaked-into-dependency"),
]
WRONG = [
    *(
        (name, compiler, axes, code)
        for name, axes, code in WRONG_FOR_BOTH
        for compiler in COMPILERS
    ),
    ("archive-before-objects", "gcc-12", {}, "archive-before-objects"),
    ("archive-before-objects", "gcc-12", FULL, "archive-before-objects"),
    ("profile-missing", "gcc-12", {}, "profile-missing"),
]
RIGHT: list[tuple[str, dict[str, str]]] = [
    ("right", {}),
    ("right", FULL),
    ("right", {"hardening": "openssf"}),
    ("right", {"hardening": "none"}),
    ("right", {"hardening": "debian", "lto": "full"}),
    ("right", {"target": "native", "plt": "off", "aliasing": "relaxed", "floating_point": "fast"}),
    ("right", {"linker": "mold", "interposition": "off", "target": "generic"}),
    ("right-library", {"interposition": "off"}),
    ("right", {"alignment": "functions"}),
    ("right", {"alignment": "loops", "lto": "full"}),
    ("right-library", {"alignment": "loops"}),
    ("right-dependency", {}),
    ("right-order", {}),
    ("right-order", FULL),
]


@pytest.mark.parametrize(("name", "compiler", "axes", "code"), WRONG)
def test_a_wrong_project_has_exactly_its_finding(
    name: str,
    compiler: str,
    axes: dict[str, str],
    code: str,
    tmp_path: Path,
    recording_ports: BuildPorts,
) -> None:
    found, texts = codes_of(name, tmp_path, recording_ports, a_variant(compiler, **axes))
    assert found == [code], texts


@pytest.mark.parametrize("compiler", COMPILERS)
def test_lto_that_did_not_happen_makes_the_name_false(
    compiler: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    with pytest.raises(WrongBaseline, match="LTO did not happen"):
        build("lto-not-linked", tmp_path, recording_ports, a_variant(compiler, **FULL))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("name", "axes"), RIGHT)
def test_a_right_project_has_none(
    name: str, axes: dict[str, str], compiler: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    report = build(name, tmp_path, recording_ports, a_variant(compiler, **axes))
    assert [finding.text for finding in report.findings] == []


@pytest.mark.parametrize(
    ("compiler", "lto"),
    [*((compiler, "full") for compiler in COMPILERS), ("clang-19", "thin")],
)
def test_the_order_of_an_lto_link_is_judged_by_symbols(
    compiler: str, lto: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    report = build("right", tmp_path, recording_ports, a_variant(compiler, lto=lto))
    linker = "ld" if compiler.startswith("gcc") else "lld"
    said = f"link order judged by the symbols of its inputs, taken as {linker} does"
    assert said in report.results[0].facts.evidence


@pytest.mark.parametrize("compiler", COMPILERS)
def test_lld_takes_from_an_archive_before_the_objects(
    compiler: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    linker = {"linker": "mold"} if compiler.startswith("gcc") else {}
    variant = a_variant(compiler, lto="full", **linker)
    report = build("archive-before-objects", tmp_path, recording_ports, variant)
    assert [finding.text for finding in report.findings] == []
    program = report.results[0].artifact
    assert program is not None
    assert "other" not in imports(program)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_lto_word_that_the_compiler_does_not_know(
    compiler: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    variants = (Variant("plain", compiler, "-O2"), Variant("fast", compiler, "-O3"))
    report = build("unknown-lto", tmp_path, recording_ports, *variants)
    assert codes(report) == ["unknown-lto-flag"]
    assert "-flto=" in report.findings[0].text
    assert report.findings[0].subject == "fast"


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("axes", [{}, FULL])
def test_one_unit_that_differs_makes_the_label_false(
    compiler: str, axes: dict[str, str], tmp_path: Path, recording_ports: BuildPorts
) -> None:
    with pytest.raises(WrongBaseline) as wrong:
        build("one-unit-differs", tmp_path, recording_ports, a_variant(compiler, **axes))
    text = wrong.value.findings[0].text
    assert "-O3 (there is -Os) was asked for, but 1 of 3 compile units lack it: part.c" in text
    assert 'build.own_flags = ["part.c"]' in text


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("glob", ["part.c", "*.c"])
def test_units_that_have_flags_of_their_own_on_purpose(
    compiler: str, glob: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shape: dict[str, object] = {"own_flags": [glob]}
    report = build("one-unit-differs", tmp_path, recording_ports, a_variant(compiler), **shape)
    assert [finding.text for finding in report.findings] == []
    declared = "compiled with flags of its own, as the study declares: "
    said = [line for line in report.results[0].facts.evidence if line.startswith(declared)]
    assert "-Os" in said[0]


def test_flags_that_break_a_dependency(tmp_path: Path, recording_ports: BuildPorts) -> None:
    plain = Variant("plain", "gcc-12", "-O2")
    fast = Variant("fast", "gcc-12", "-O2", floating_point="fast", dependencies="flags")
    report = build("dependency-breaks", tmp_path, recording_ports, plain, fast)
    assert codes(report) == ["dependencies-broken"]
    assert report.findings[0].subject == "fast"


def test_a_flag_without_effect_on_the_binary(tmp_path: Path, recording_ports: BuildPorts) -> None:
    plain = Variant("plain", "gcc-12", "-O2")
    same = Variant("same", "gcc-12", "-O2", flags="-fno-math-errno")
    report = build("right", tmp_path, recording_ports, plain, same)
    assert codes(report) == ["same-bytes"]
    assert report.results[1].facts.said == "same as plain"


def with_libraries(
    tmp_path: Path, ports: BuildPorts, *words: str, files: tuple[str, ...] = ("libother.so",)
) -> BuildReport:
    """A project whose program is compiled at `-O1`, beside libraries that it links or not."""
    shape = {
        "commands": [[*MAKE, "LINKED=-lother", *words, "program"]],
        "runtime_files": list(files),
    }
    variants = (a_variant("gcc-12"), Variant("plain", "gcc-12", "-O0"))
    return build("fixed-program", tmp_path, ports, *variants, **shape)


def test_a_program_of_fixed_flags_is_named_where_its_library_has_them(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    report = with_libraries(tmp_path, recording_ports)
    said = [(each.code, each.severity, each.subject) for each in report.findings]
    assert said == [("flags-differ", Severity.WARNING, name) for name in ("v", "plain")]
    assert "no compile unit (2) of program has -O3 (there is -O1)" in report.findings[0].text
    assert "which libother.so has" in report.findings[0].text
    assert 'build.own_flags = ["main.c", "part.c"]' in report.findings[0].text
    (result, _) = report.results
    assert ("-O3", ("libother.so",)) in result.flag_files


def test_a_library_of_fixed_flags_is_named_where_the_program_has_them(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    files = ("libother.so", "libfixed.so")
    words = ("PROGRAM_FLAGS=$(CFLAGS)", "LINKED=-lother -lfixed")
    report = with_libraries(tmp_path, recording_ports, *words, files=files)
    texts = [each.text for each in report.findings if each.subject == "v"]
    assert len(texts) == 1
    assert "no compile unit (1) of libfixed.so has -O3 (there is -O1)" in texts[0]
    assert "which program, libother.so have" in texts[0]


def test_where_a_later_flag_counts_it_is_the_same(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    report = with_libraries(tmp_path, recording_ports, "PROGRAM_FLAGS=$(CFLAGS) -O1")
    assert codes(report) == ["flags-differ", "flags-differ"]


def test_where_no_file_has_the_flags_they_are_missing(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    with pytest.raises(WrongBaseline) as wrong:
        with_libraries(tmp_path, recording_ports, "CFLAGS=-O1 -g")
    assert {each.code for each in wrong.value.findings} == {"flag-missing"}
    assert 'build.rewrite.compile = ["{cflags}"]' in str(wrong.value)
    assert 'flags_by = "recorder"' in str(wrong.value)


def ran_once(variant: str, workload: str, *paths: str, not_judged: str = "") -> RanOnce:
    files = tuple(RanFile(path, "1" * 64, built=True) for path in paths)
    return RanOnce(variant, workload, files, not_judged)


def test_a_library_that_did_not_run_has_no_flags_for_the_others(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    report = with_libraries(tmp_path, recording_ports)
    first = report.results[:1]
    both, alone = (
        ran_once("v", "a", "program", "libother.so"),
        ran_once("v", "b", "program"),
    )
    assert judge_ran(first, [both], "program").findings == ()
    partly = judge_ran(first, [both, alone], "program")
    assert [(each.code, each.severity) for each in partly.findings] == [
        ("flag-not-run", Severity.WARNING)
    ]
    assert "nothing that b ran has it" in partly.findings[0].text
    assert partly.wrong == frozenset()
    never = judge_ran(first, [alone], "program")
    assert [each.code for each in never.findings] == ["flag-not-run"]
    assert never.wrong == {"v"}
    unknown = ran_once("v", "b", "program", not_judged="it was not seen")
    assert judge_ran(first, [unknown], "program").wrong == frozenset()


def test_code_that_no_relink_moves_is_named_with_its_share_of_the_time(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    (first,) = with_libraries(tmp_path, recording_ports).results[:1]
    result = replace(first, layouts=(tmp_path,), unmoved=("libother.so",))

    def trace(scale: int) -> RanOnce:
        times = (("program", 50, True), ("libother.so", 20, True), ("/lib/libc.so.6", 28, False))
        files = [RanFile(path, "1", built=by, cpu_ns=ms * scale) for path, ms, by in times]
        return RanOnce(
            "v", "a", (*files, RanFile("/lib/libm.so.6", "1", built=False, cpu_ns=2 * scale))
        )

    (finding,) = judge_ran([result], [trace(1_000_000)], "program").findings
    assert (finding.code, finding.severity) == ("unmoved-code", Severity.NOTE)
    assert finding.text.endswith("no relink moves: /lib/libc.so.6 (28 %), libother.so (20 %)")
    assert judge_ran([result], [trace(100_000)], "program").findings == ()
    natural = replace(result, layouts=())
    assert judge_ran([natural], [trace(1_000_000)], "program").findings == ()
