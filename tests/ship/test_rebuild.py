"""Changes of a real project, built with and without ensign's flags."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from build_fixtures import PROJECTS
from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.model.builds import ignore
from ensign.model.errors import CommandFailed, InputError
from ensign.model.shipment import Shipment
from ensign.model.study import Study
from ensign.model.variants import Variant
from ensign.ship.rebuild import ship_variant
from ensign.ship.source_change import EditError

BASELINE = Variant("plain", "gcc-12", "-O2")
GCC_LTO = Variant("gcc-lto", "gcc-12", "-O3", "full")
CLANG_LTO = Variant("clang-lto", "clang-19", "-O3", "full")
COMPILE = {"file": "Makefile", "line": "OPTIMIZATION ?= -O2", "replace": "OPTIMIZATION ?= {cflags}"}
LINK = {
    "file": "Makefile",
    "pattern": "^(FINAL_LDFLAGS =) (.*)$",
    "replace": r"\1 $(OPTIMIZATION) {link_only} \2",
}
BUILD = {
    "dependencies": [["make", "CC={cc}", "AR={ar}", "libother.a"]],
    "commands": [["make", "CC={cc}", "AR={ar}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]],
    "artifact": "program",
}


@dataclass(frozen=True)
class Yard:
    """The project in a folder, and what builds it."""

    folder: Path
    ports: BuildPorts

    def ship(self, variant: Variant, *edits: dict[str, str], **ship: object) -> Shipment:
        study = Study.model_validate(
            {
                "name": "shipped",
                "layouts": "natural",
                "source": {"kind": "path", "path": "source"},
                "build": BUILD,
                "axes": {"compiler": ["gcc-12"]},
                "baseline": {"compiler": "gcc-12"},
                "ship": {
                    "edits": list(edits),
                    "commands": [["make", "-j{jobs}", "CC={cc}"]],
                    **ship,
                },
                "workloads": [{"name": "run", "command": ["{artifact}"]}],
            }
        )
        path = self.folder / "shipped.toml"
        request = BuildRequest(study, path, (BASELINE, variant), BASELINE.name)
        measured = build_variants(request, self.ports).result(variant.name)
        return ship_variant(request, measured, self.ports, ignore)


@pytest.fixture
def yard(tmp_path: Path, recording_ports: BuildPorts) -> Yard:
    source = Path(shutil.copytree(PROJECTS / "shipped", tmp_path / "source"))
    for each in ("main.c", "part.c", "other.c"):
        shutil.copy(PROJECTS / "proof/parts" / each, source)
    return Yard(tmp_path, recording_ports)


@pytest.mark.parametrize("variant", [GCC_LTO, CLANG_LTO], ids=lambda each: each.compiler)
def test_the_right_change_has_the_measured_effects_and_bytes(yard: Yard, variant: Variant) -> None:
    shipment = yard.ship(variant, COMPILE, LINK)
    assert shipment.verified.problems == ()
    assert shipment.verified.same_bytes
    assert "3 compile units" in shipment.verified.notes[0]
    assert "(2 of them for LTO)" in shipment.verified.notes[0]
    assert shipment.commands[1] == f'make -j"$(nproc)" CC={variant.compiler}'


def test_the_patch_applies_with_patch_and_builds_without_ensign(yard: Yard) -> None:
    (file,) = yard.ship(GCC_LTO, COMPILE, LINK).files
    assert b"+OPTIMIZATION ?= -O3 -flto=auto\n" in file.content
    assert b"+FINAL_LDFLAGS = $(OPTIMIZATION) $(LDFLAGS)\n" in file.content
    source = yard.folder / "source"
    subprocess.run(["patch", "-p1"], cwd=source, input=file.content, check=True)
    made = subprocess.run(
        ["make", "CC=gcc-12"], cwd=source, capture_output=True, text=True, check=True
    )
    assert "gcc-12 -O3 -flto=auto  -o program" in made.stdout


@pytest.mark.parametrize("variant", [GCC_LTO, CLANG_LTO], ids=lambda each: each.compiler)
def test_lto_that_misses_the_link_is_found(yard: Yard, variant: Variant) -> None:
    only = "{link_only}" if variant is CLANG_LTO else "-s"
    verified = yard.ship(variant, COMPILE, {**LINK, "replace": rf"\1 {only} \2"}).verified
    said = "; ".join(verified.problems)
    assert "at the link, -flto (full) is missing" in said
    assert "(lto-compile-only)" in said
    assert verified.notes == ()


def test_a_level_that_misses_an_lto_link_is_found(yard: Yard) -> None:
    verified = yard.ship(GCC_LTO, COMPILE, {**LINK, "replace": r"\1 {lto} \2"}).verified
    assert "at the link, -O3 is missing" in verified.problems
    assert any("optimization-missing-at-link" in each for each in verified.problems)


def test_a_change_that_misses_compilation_is_found(yard: Yard) -> None:
    wrong = {**LINK, "replace": r"\1 {ldflags} \2"}
    said = "; ".join(yard.ship(GCC_LTO, wrong).verified.problems)
    assert "-O3 was measured, -O2 is there in 2 of 3 compile units (main.o, part.o)" in said
    assert "-flto (full) is missing in 2 of 3" in said


def test_a_change_that_reaches_a_dependency_is_found(yard: Yard) -> None:
    leak = {"file": "Makefile", "pattern": "-O1 -c", "replace": "-O1 {cflags} -c"}
    said = "; ".join(yard.ship(GCC_LTO, COMPILE, LINK, leak).verified.problems)
    assert "-O1 was measured, -O3 is there in 1 of 3 compile units (other.o)" in said


def test_another_compiler_than_the_measured_one_is_found(yard: Yard) -> None:
    verified = yard.ship(GCC_LTO, COMPILE, LINK, commands=[["make", "CC=gcc-11"]]).verified
    said = "; ".join(verified.problems)
    assert "gcc-12 was measured, compiler /" in said
    assert "gcc-11 links this" in said


def test_sources_with_flags_of_their_own_are_shipped_and_judged_by_them(yard: Yard) -> None:
    variant = Variant("mixed", "gcc-12", "-O3", units="part.c: optimization=-O1 flags=-fwrapv")
    sources = {
        "file": "Makefile",
        "line": "program: main.o part.o libother.a",
        "each_source": "{stem}.o: OPTIMIZATION += {source_flags}",
        "replace": "{sources}program: main.o part.o libother.a",
    }
    shipment = yard.ship(variant, COMPILE, LINK, sources)
    assert shipment.verified.problems == ()
    assert shipment.verified.same_bytes
    assert b"+part.o: OPTIMIZATION += -O1 -fwrapv\n" in shipment.files[0].content
    wrong = {**sources, "each_source": "{stem}.o: OPTIMIZATION += -O2"}
    said = "; ".join(yard.ship(variant, COMPILE, LINK, wrong).verified.problems)
    assert "-O1 was measured, -O2 is there in 1 of 3 compile units (part.o)" in said


@pytest.mark.parametrize(
    ("units", "flags", "said"),
    [
        ("p*.c: optimization=-O1", "", "must name sources by their paths"),
        ("all but part.c: optimization=-O1", "", "must name sources by their paths"),
        ("part.c#part: optimization=-O1", "", "must name sources by their paths"),
        ("part.c: compiler=gcc-11", "", "another compiler"),
        ("part.c: flags=", "-fno-plt", r"lack flags \(.*plt.*\) that a change cannot take back"),
    ],
)
def test_sources_that_no_added_flag_makes_are_refused(
    yard: Yard, units: str, flags: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        yard.ship(Variant("mixed", "gcc-12", "-O3", flags=flags, units=units), COMPILE)


def test_a_linker_option_that_is_lost_is_found(yard: Yard) -> None:
    variant = Variant("hashed", "gcc-12", "-O3", flags="-Wl,--hash-style=sysv")
    verified = yard.ship(variant, COMPILE).verified
    assert verified.problems == ("at the link, -Wl,--hash-style=sysv is missing",)
    assert yard.ship(variant, COMPILE, LINK).verified.problems == ()


def test_an_alignment_is_shipped_to_compilers_and_to_clangs_lto_link(yard: Yard) -> None:
    variant = replace(CLANG_LTO, alignment="loops")
    verified = yard.ship(variant, COMPILE, LINK).verified
    assert verified.problems == ()
    assert verified.same_bytes
    lost = yard.ship(variant, COMPILE, {**LINK, "replace": r"\1 $(OPTIMIZATION) -fuse-ld=lld \2"})
    assert "at the link, -Wl,-plugin-opt=-align-loops=32 is missing" in lost.verified.problems


def test_lost_protections_are_found(yard: Yard) -> None:
    lazy = {**LINK, "replace": r"\1 $(OPTIMIZATION) -no-pie \2"}
    said = yard.ship(GCC_LTO, COMPILE, lazy).verified.problems
    assert any("protections: pie was there when measured, and is absent" in each for each in said)


def test_an_edit_that_does_not_apply_says_what_is_nearest(yard: Yard) -> None:
    moved = {**COMPILE, "line": "OPTIMIZATION ?= -O1"}
    with pytest.raises(EditError) as error:
        yard.ship(GCC_LTO, LINK, moved)
    assert error.value.index == 1
    assert str(error.value) == (
        "the edit does not apply: Makefile has not the line 'OPTIMIZATION ?= -O1'; "
        "nearest is line 2, 'OPTIMIZATION ?= -O2'"
    )
    with pytest.raises(EditError, match="source has no file 'src/Makefile'"):
        yard.ship(GCC_LTO, {**COMPILE, "file": "src/Makefile"})


def test_a_project_that_does_not_build_with_the_change_is_a_failed_command(yard: Yard) -> None:
    broken = {**COMPILE, "replace": "OPTIMIZATION ?= {cflags} -nonsense"}
    with pytest.raises(CommandFailed, match=r"(?s)gcc-lto as shipped could not be built.*nonsense"):
        yard.ship(GCC_LTO, broken)


def test_edits_that_change_nothing_are_refused(yard: Yard) -> None:
    with pytest.raises(InputError, match="change nothing"):
        yard.ship(GCC_LTO, {**COMPILE, "replace": "OPTIMIZATION ?= -O2"})
