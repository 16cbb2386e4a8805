from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ensign.builders.commands import with_jobs
from ensign.builders.plan import BuildPlace, plan_builds
from ensign.builders.stages import Plan, in_order, jobs_for
from ensign.model.errors import InputError
from ensign.model.variants import Variant
from ensign.toolchains.find import Linker, Toolchain
from ensign.toolchains.table import Family, Kind
from small_studies import CLANG_O2, GCC_LTO, GCC_O2, GCC_O3, study


def toolchain(name: str, family: Family, identity: str = "one") -> Toolchain:
    return Toolchain(
        name=name, kind=Kind(family, (12, 0, 0)), version_line=name, cc=f"/bin/{name}", cxx="",
        ar="/bin/ar", ranlib="/bin/ranlib", nm="/bin/nm", ld="/bin/ld", linker_flag="",
        linker_version="ld", identity=identity,
    )  # fmt: skip


TOOLCHAINS = {
    "gcc-12": toolchain("gcc-12", Family.GCC),
    "clang-19": toolchain("clang-19", Family.CLANG, "two"),
}
PLACE = BuildPlace("source", "/ensign/build")


def plan(*variants: Variant, place: BuildPlace = PLACE, **build: object) -> Plan:
    return plan_builds(study(**build), variants, variants[0].name, TOOLCHAINS, place)


def test_dependencies_are_shared_by_the_variants_of_a_compiler() -> None:
    planned = plan(GCC_O2, GCC_LTO, CLANG_O2)
    assert [stage.kind for stage in planned.stages].count("dependencies") == 2
    parents = [planned.stage(planned.stage_of[each.name]).parent for each in (GCC_O2, GCC_LTO)]
    assert parents[0] == parents[1] != ""


@pytest.mark.parametrize(
    "change",
    [
        {"place": BuildPlace("other source", "/ensign/build")},
        {"place": BuildPlace("source", "/elsewhere")},
        {"env": {"LC_ALL": "C.UTF-8"}},
        {"dependencies": [["true"]]},
    ],
)
def test_all_that_may_change_the_bytes_of_dependencies_changes_all_keys(
    change: dict[str, object],
) -> None:
    before, after = plan(GCC_O2), plan(GCC_O2, **change)  # type: ignore[arg-type]
    assert {stage.key for stage in before.stages}.isdisjoint(stage.key for stage in after.stages)


def test_a_flag_changes_the_key_of_its_variant_alone() -> None:
    before = plan(GCC_O2, GCC_O3)
    after = plan(GCC_O2, replace(GCC_O3, flags="-g3"))
    assert before.stage_of["gcc-O2"] == after.stage_of["gcc-O2"]
    assert before.stage_of["gcc-O3"] != after.stage_of["gcc-O3"]


def test_variants_with_equal_commands_are_one_build() -> None:
    planned = plan(GCC_O2, GCC_O3, replace(GCC_O3, name="again"))
    assert planned.stage_of["again"] == planned.stage_of["gcc-O3"]
    assert planned.stage(planned.stage_of["again"]).variants == ("gcc-O3", "again")


def test_only_the_baseline_builds_tools() -> None:
    planned = plan(GCC_O2, GCC_O3)
    stages = [planned.stage(planned.stage_of[name]) for name in ("gcc-O2", "gcc-O3")]
    assert [bool(stage.tool_commands) for stage in stages] == [True, False]
    assert [stage.tools for stage in stages] == [(("tool", "tool"),), ()]


def test_flags_in_the_environment_do_not_reach_dependencies() -> None:
    planned = plan(GCC_LTO, env={"CFLAGS": "{cflags}", "CC": "{cc}"})
    dependencies, program = planned.stages
    assert dependencies.env == (("CC", "/bin/gcc-12"),)
    assert program.env == (("CC", "/bin/gcc-12"), ("CFLAGS", "-O3 -g -flto=auto"))


def test_wrong_placeholders_are_named() -> None:
    with pytest.raises(InputError, match=r"build\.commands .* \{clfags\}; did you mean \{cflags\}"):
        plan(GCC_O2, commands=[["make", "{clfags}"]])
    with pytest.raises(
        InputError, match=r"build\.dependencies uses \{cflags\}, but it is run once"
    ):
        plan(GCC_O2, dependencies=[["make", "{cflags}"]])
    with pytest.raises(InputError, match=r"C\+\+ driver"):
        plan(GCC_O2, commands=[["make", "{cxx}"]])
    shell = plan(GCC_O2, commands=[["sh", "-c", "echo ${name} {a,b} {X}"]])
    assert shell.stages[1].commands == (("sh", "-c", "echo ${name} {a,b} {X}"),)


def test_jobs_together_are_about_the_cores() -> None:
    assert [jobs_for(8, stages) for stages in (0, 1, 2, 3, 8, 20)] == [8, 8, 4, 2, 1, 1]
    assert with_jobs((("make", "-j{jobs}"),), 4) == (("make", "-j4"),)


def test_dependencies_and_the_baseline_start_first_then_the_longest() -> None:
    planned = plan(GCC_O2, GCC_O3, GCC_LTO)
    key = planned.stage_of
    expected_s = {key["gcc-O2"]: 1.0, key["gcc-O3"]: 2.0, key["gcc-O3-lto"]: 3.0}
    order = in_order(reversed(planned.stages), key["gcc-O2"], expected_s)
    labels = [stage.label for stage in order]
    assert labels == ["dependencies with gcc-12", "gcc-O2", "gcc-O3-lto", "gcc-O3"]


def test_dependencies_get_flags_where_a_variant_asks_for_it() -> None:
    commands = [["make", "CC={cc}", "CFLAGS={dependency_cflags}", "libpart.a"]]
    deep = replace(GCC_O3, name="deep", dependencies="flags")
    planned = plan(GCC_O2, GCC_O3, deep, dependencies=commands)
    labels = {stage.label: stage.commands[0][2] for stage in planned.stages if not stage.parent}
    assert labels == {
        "dependencies with gcc-12": "CFLAGS=",
        "dependencies of deep": "CFLAGS=-O3 -g",
    }
    assert planned.stage_of["deep"] != planned.stage_of["gcc-O3"]


@pytest.mark.parametrize("choice", [{"target": "native"}, {"flags": "-mtune=native"}])
def test_code_for_this_processor_is_built_again_on_another(choice: dict[str, Any]) -> None:
    here, there = BuildPlace("source", "/b", "zen"), BuildPlace("source", "/b", "skylake")
    native = replace(GCC_O3, **choice)
    before, after = plan(GCC_O2, native, place=here), plan(GCC_O2, native, place=there)
    assert before.stage_of["gcc-O2"] == after.stage_of["gcc-O2"]
    assert before.stage_of["gcc-O3"] != after.stage_of["gcc-O3"]


def test_a_linker_that_is_asked_for_counts_by_its_content() -> None:
    mold = replace(GCC_O3, linker="mold")
    with_mold = replace(TOOLCHAINS["gcc-12"], linkers=(Linker("mold", "new"),))
    before = plan(GCC_O2, mold)
    before_mold = before.stage_of[mold.name]
    after = plan_builds(study(), (GCC_O2, mold), "gcc-O2", {"gcc-12": with_mold}, PLACE)
    assert after.stage_of[mold.name] != before_mold
    assert after.stage_of["gcc-O2"] == plan(GCC_O2).stage_of["gcc-O2"]


def test_a_project_that_is_told_of_its_allocator_needs_no_flag() -> None:
    jemalloc = replace(GCC_O3, name="jemalloc", allocator="jemalloc")
    told = [["make", "MALLOC={allocator}", "LDFLAGS={ldflags}", "program"]]
    words = {"jemalloc": "je", "bundled": "je"}
    planned = plan(GCC_O2, jemalloc, commands=told, allocators=words)
    (command,) = planned.stage(planned.stage_of["jemalloc"]).commands
    assert command == ("make", "MALLOC=je", "LDFLAGS=-O3 -g", "program")
    linked = plan(GCC_O2, jemalloc, commands=told)
    assert "-ljemalloc" in linked.stage(linked.stage_of["jemalloc"]).commands[0][2]


def test_a_variant_is_built_from_its_own_revision() -> None:
    place = replace(PLACE, revisions={"old": "source", "new": "other", "same": "source"})
    variants = [
        replace(GCC_O2, name=f"{GCC_O2.name}-{each}", revision=each) for each in place.revisions
    ]
    planned = plan(*variants, place=place)
    stages = [planned.stage(planned.stage_of[each.name]) for each in variants]
    assert len({stage.key for stage in stages[1:]}) == 2
    assert [stage.revision for stage in stages] == ["old", "new", "same"]
    parents = [planned.stage(stage.parent) for stage in stages]
    assert parents[0] == parents[2] != parents[1]
    assert [parent.revision for parent in parents] == ["old", "new", "old"]
    assert stages[0].key == plan(GCC_O2).stage_of[GCC_O2.name]
