"""Sources of a build with choices of their own: built so, proved, and part of the key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts
from ensign.builders.revisions import lay_over
from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.unit_choices import read_unit_choices
from small_studies import GCC_O2, GCC_O3, request

PLAIN: dict[str, object] = {
    "dependencies": [],
    "commands": [["make", "CC={cc}", "AR={ar}", "CFLAGS={cflags}", "program"]],
    "tool_commands": [],
    "tools": {},
}


def facts_with(units: str, folder: Path, ports: BuildPorts) -> BuildFacts:
    """The build of the baseline's variant with these units."""
    mixed = replace(GCC_O2, name="mixed", units=units)
    wanted = request(folder, GCC_O2, mixed, **PLAIN)
    return build_variants(wanted, ports, lambda _event: None).result("mixed").facts


@pytest.mark.usefixtures("project")
def test_mixed_from_either_side_it_is_the_same_program(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    one = replace(GCC_O2, name="one", units="main.c: optimization=-O3")
    other = replace(GCC_O3, name="other", units="all but main.c: optimization=-O2")
    wanted = request(tmp_path, GCC_O2, GCC_O3, one, other, **PLAIN)
    report = build_variants(wanted, recording_ports, lambda _event: None)
    a, b, mixed, again = (result.facts.loadable_sha256 for result in report.results)
    assert mixed == again
    assert a != b
    levels = [result.facts.evidence[0] for result in report.results]
    assert levels[2] == levels[3]
    assert "-O2 1, -O3 1" in levels[2]


@pytest.mark.usefixtures("project")
def test_another_compiler_makes_the_sources_it_is_asked_for(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    mixed = replace(GCC_O2, name="mixed", units="main.c: compiler=clang-19")
    report = build_variants(
        request(tmp_path, GCC_O2, mixed, **PLAIN), recording_ports, lambda _event: None
    )
    evidence = report.result("mixed").facts.evidence
    assert any("clang" in line.lower() and "GCC" in line for line in evidence)
    assert not [found for found in report.findings if found.code == "mixed-compilers"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("choice", ["optimization=-O0", "compiler=gcc-11", "flags=-O1 -fno-plt"])
def test_a_function_of_a_source_is_made_otherwise_alone(
    choice: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    mixed, whole = (
        replace(GCC_O2, name=name, units=f"{sources}: {choice}")
        for name, sources in (("mixed", "main.c#main"), ("whole", "main.c"))
    )
    report = build_variants(
        request(tmp_path, GCC_O2, mixed, whole, **PLAIN), recording_ports, lambda _event: None
    )
    hashes = {result.facts.loadable_sha256 for result in report.results}
    assert len(hashes) == len(report.results)
    assert report.result("mixed").facts.status is BuildStatus.BUILT


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("units", "says"),
    [
        ("main.c#nowhere: optimization=-O0", "nowhere is no function of its own on both sides"),
        ("nowhere.c#main: optimization=-O0", "no compile unit is of the sources"),
        ("main.c#main: optimization=-O2", ""),
    ],
)
def test_a_function_that_is_not_there_fails_the_variant(
    units: str, says: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    facts = facts_with(units, tmp_path, recording_ports)
    assert says in facts.log_tail
    assert (facts.status in (BuildStatus.BUILT, BuildStatus.SAME)) == (not says)


OTHERS_FIRST = "for each in *.c; do test $each = main.c || {cc} {cflags} -c $each; done; "


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("sources", ["*.c", "main.c *.o"])
def test_a_function_of_a_call_that_links_fails_the_variant(
    sources: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    # Else the program would be the same one, and the function would seem to cost nothing.
    mixed = replace(GCC_O2, name="mixed", units="main.c#main: optimization=-O0")
    script = f"{OTHERS_FIRST if '.o' in sources else ''}{{cc}} {{cflags}} -o program {sources}"
    wanted = request(tmp_path, GCC_O2, mixed, **{**PLAIN, "commands": [["sh", "-c", script]]})
    report = build_variants(wanted, recording_ports, lambda _event: None)
    failed = report.result("mixed").facts
    assert failed.status is BuildStatus.FAILED
    assert "only where a call compiles one source" in failed.log_tail


@pytest.mark.parametrize("text", ["a.c#f b.c: lto=off", "all but a.c#f: lto=off", "*.c#f: lto=off",
                                  "a.c#: lto=off"])  # fmt: skip
def test_functions_are_of_one_source(text: str) -> None:
    with pytest.raises(ValueError, match="SOURCE#FUNCTION"):
        read_unit_choices(text)
    assert read_unit_choices("a.c#f#g: lto=off").functions == ("f", "g")


@pytest.mark.usefixtures("project")
def test_sources_that_are_not_there_or_do_not_get_their_flags_fail_the_variant(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    failed = facts_with("nowhere.c: optimization=-O3", tmp_path, recording_ports)
    assert failed.status is BuildStatus.NOT_AS_ASKED
    assert "no compile unit is of the sources 'nowhere.c: optimization=-O3'" in failed.log_tail


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("units", ["main.c: flags=", "all but main.c: flags="])
def test_sources_of_one_call_keep_no_flag_that_was_to_be_taken_from_some(
    units: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    plain = replace(GCC_O2, flags="-ffast-math")
    mixed = replace(plain, name="mixed", units=units)
    at_once = {**PLAIN, "commands": [["sh", "-c", "{cc} {cflags} -o program *.c"]]}
    report = build_variants(
        request(tmp_path, plain, mixed, **at_once), recording_ports, lambda _event: None
    )
    failed = report.result("mixed").facts
    assert failed.status is BuildStatus.NOT_AS_ASKED
    assert "compiled with -ffast-math, meant for others" in failed.log_tail
    assert "sources of one call cannot have flags of their own" in failed.log_tail


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("units", "says"),
    [("main.c: pgo=on", "only the whole build is trained"), ("main.c: lto=full", "only the link")],
)
def test_what_one_source_cannot_have_is_left_out(
    tmp_path: Path, recording_ports: BuildPorts, units: str, says: str
) -> None:
    facts = facts_with(units, tmp_path, recording_ports)
    assert (facts.status, says in facts.log_tail) == (BuildStatus.LEFT_OUT, True)


def test_sources_come_from_another_tree_but_through_no_link(tmp_path: Path) -> None:
    tree, other, away = (tmp_path / name for name in ("tree", "other", "away"))
    for folder in (tree / "src", other / "src", other / "linked", away):
        folder.mkdir(parents=True)
    (tree / "src/a.c").write_text("old")
    (tree / "src/gone.c").write_text("old")
    (tree / "src/kept.c").write_text("old")
    (tree / "linked").symlink_to(away)
    for name in ("src/a.c", "src/new.c", "src/kept.c", "linked/x.c"):
        (other / name).write_text("new")
    lay_over(read_unit_choices("src/[agn]*.c linked/x.c: revision=v2"), other, tree)
    texts = {path.name: path.read_text() for path in (tree / "src").iterdir()}
    assert texts == {"a.c": "new", "new.c": "new", "kept.c": "old"}
    assert list(away.iterdir()) == []
