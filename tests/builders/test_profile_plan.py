"""Which stages PGO and BOLT make, and which of them variants share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from builders.test_plan import PLACE, TOOLCHAINS
from ensign.builders.plan import BuildPlace, plan_builds
from ensign.builders.profiles import TrainingSteps
from ensign.builders.stages import Plan, needed
from ensign.model.study import Study
from ensign.model.variants import Variant
from ensign.toolchains.profiling import Profilers
from small_studies import BUILD, CLANG_O2, GCC_O2

_PGO = replace(CLANG_O2, name="clang-pgo", pgo="on")
_BOTH = replace(_PGO, name="clang-pgo-bolt", bolt="on")
_LEARN = {"name": "learn", "command": ["{artifact}", "1"]}


def plan(
    *variants: Variant,
    training: Mapping[str, object] | None = None,
    place: BuildPlace = PLACE,
    bolt: str = "bolt-19",
    perf: str = "",
) -> Plan:
    study = Study.model_validate(
        {
            "name": "small",
            "layouts": "natural",
            "source": {"kind": "path", "path": "source"},
            "build": BUILD,
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "training": training or {"workloads": [_LEARN]},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
        }
    )
    profilers = Profilers(
        "/bin/profdata", "", "/bin/llvm-bolt", "/lib/rt", "/bin/merge", perf, bolt
    )
    found = {name: replace(each, profilers=profilers) for name, each in TOOLCHAINS.items()}
    return plan_builds(study, variants, variants[0].name, found, place)


def test_instrumented_training_and_rebuilding_are_stages() -> None:
    planned = plan(GCC_O2, _PGO)
    stages = planned.chain(planned.stage_of["clang-pgo"])
    assert sorted(stage.kind for stage in stages) == ["instrumented", "profile", "program"]
    by_kind = {stage.kind: stage for stage in stages}
    assert "-fprofile-generate" in " ".join(by_kind["instrumented"].commands[0])
    assert by_kind["profile"].parent == by_kind["instrumented"].key
    program = by_kind["program"]
    assert program.profile == by_kind["profile"].key
    assert "-fprofile-use=/ensign/build/ensign.profdata" in " ".join(program.commands[0])
    assert by_kind["instrumented"].parent == program.parent
    assert planned.stage(program.parent).kind == "dependencies"


def test_files_for_training_are_kept_of_the_instrumented_build_alone() -> None:
    planned = plan(GCC_O2, _PGO, training={"workloads": [_LEARN], "runtime_files": ["lib/*"]})
    stages = planned.chain(planned.stage_of["clang-pgo"])
    kept = {stage.kind: stage.runtime_files for stage in stages}
    assert kept == {"instrumented": ("lib/*",), "profile": ("lib/*",), "program": ()}


def test_bolt_comes_after_the_link_and_shares_the_compilers_profile() -> None:
    planned = plan(GCC_O2, _PGO, _BOTH)
    kinds = [stage.kind for stage in planned.stages]
    assert kinds.count("instrumented") == 1
    assert kinds.count("profile") == 2
    bolted = planned.stage(planned.stage_of["clang-pgo-bolt"])
    linked = planned.stage(bolted.parent)
    assert (linked.kind, linked.variants) == ("program", ())
    assert "--emit-relocs" in " ".join(linked.commands[0])
    assert planned.stage(bolted.profile).parent == linked.key
    assert linked.profile == planned.stage(planned.stage_of["clang-pgo"]).profile


def test_a_profile_is_collected_again_when_what_it_comes_from_changes() -> None:
    def key(planned: Plan) -> str:
        return planned.stage_of["clang-pgo"]

    same = key(plan(GCC_O2, _PGO))
    assert key(plan(GCC_O2, _PGO)) == same
    learn_more = {"workloads": [{**_LEARN, "command": ["{artifact}", "2"]}]}
    assert key(plan(GCC_O2, _PGO, training=learn_more)) != same
    assert key(plan(GCC_O2, _PGO, place=replace(PLACE, training_sha256="x"))) != same
    later = {"workloads": [_LEARN], "deadline": "1h"}
    assert key(plan(GCC_O2, _PGO, training=later)) == same
    assert plan(GCC_O2, _PGO).stage_of["gcc-O2"] == plan(GCC_O2, _BOTH).stage_of["gcc-O2"]


def test_variants_that_differ_in_alignment_share_the_compilers_profile() -> None:
    aligned = replace(_BOTH, name="aligned", alignment="loops")
    planned = plan(GCC_O2, _BOTH, aligned)
    kinds = [stage.kind for stage in planned.stages]
    assert kinds.count("instrumented") == 1
    assert kinds.count("profile") == 3, "BOLT's are of the program that was linked"
    bolted = planned.stage(planned.stage_of["aligned"])
    assert {"-align-functions=64", "-preserve-blocks-alignment"} < set(bolted.commands[0])
    plain = planned.stage(planned.stage_of[_BOTH.name])
    assert not any("align" in word for word in plain.commands[0])


def test_another_bolt_changes_the_program_that_it_makes() -> None:
    bolt = replace(CLANG_O2, name="bolt", bolt="on")
    one, other = plan(GCC_O2, bolt), plan(GCC_O2, bolt, bolt="bolt-20")
    assert one.stage_of["bolt"] != other.stage_of["bolt"]


def test_a_second_profile_comes_from_the_same_instrumented_program() -> None:
    second = replace(_PGO, name="clang-pgo-p2", profile=2)
    planned = plan(GCC_O2, _PGO, second)
    profiles = [stage for stage in planned.stages if stage.kind == "profile"]
    assert len({stage.key for stage in profiles}) == 2
    assert len({stage.parent for stage in profiles}) == 1
    assert planned.stage_of["clang-pgo"] != planned.stage_of["clang-pgo-p2"]


def test_a_variant_may_be_trained_on_a_test_as_well_or_on_less() -> None:
    also = replace(_PGO, name="also", training="also run")
    less = replace(_PGO, name="less", training="all but learn")
    planned = plan(GCC_O2, _PGO, also, less)
    profiles = {planned.stage(planned.stage_of[v]).profile for v in ("clang-pgo", "also", "less")}
    steps = [planned.stage(key).training_steps for key in profiles]
    trained = {tuple(each.name for each in one.workloads) for one in steps if one is not None}
    assert trained == {("learn",), ("learn", "run"), ()}
    assert len({planned.stage(key).parent for key in profiles}) == 1


def test_training_with_tools_waits_for_the_baseline_even_where_that_is_trained() -> None:
    uses_tool = {"workloads": [{"name": "learn", "command": ["{tool}", "{artifact}"]}]}
    baseline = replace(GCC_O2, pgo="on")
    planned = plan(baseline, training=uses_tool)
    (profile,) = (stage for stage in planned.stages if stage.kind == "profile")
    assert profile.training_steps is not None
    tools = planned.stage(profile.training_steps.tools_from)
    assert tools.tools == (("tool", "tool"),)
    assert "-fprofile" not in " ".join(tools.commands[0])
    keys = [stage.key for stage in planned.stages]
    for stage in planned.stages:
        assert all(keys.index(key) < keys.index(stage.key) for key in stage.inputs)


def test_what_leads_to_cached_programs_is_not_needed() -> None:
    planned = plan(GCC_O2, _PGO)
    there = {planned.stage_of["clang-pgo"]}
    left = needed(planned.stages, lambda stage: stage.key in there)
    assert {stage.kind for stage in left} == {"dependencies", "program"}
    assert len(left) == 3  # the baseline, its dependencies, and the cached program itself


def test_dependencies_that_get_the_flags_are_counted_and_trained_too() -> None:
    deps = replace(_PGO, dependencies="flags")
    planned = plan(GCC_O2, deps)
    program = planned.stage(planned.stage_of["clang-pgo"])
    assert planned.stage(program.parent).profile == program.profile
    instrumented = planned.stage(planned.stage(program.profile).parent)
    assert instrumented.parent not in ("", program.parent)


def test_where_branches_are_recorded_the_linked_program_itself_is_trained() -> None:
    bolt = replace(CLANG_O2, name="bolt", bolt="on")

    def training_steps(perf: str) -> TrainingSteps:
        planned = plan(GCC_O2, bolt, perf=perf)
        (profile,) = (stage for stage in planned.stages if stage.kind == "profile")
        assert profile.training_steps is not None
        return profile.training_steps

    assert training_steps("").wrapper == ()
    assert "-instrument" in training_steps("").instrument[0]
    recorded = training_steps("/bin/perf")
    assert recorded.instrument == ()
    assert recorded.wrapper[0] == "/bin/perf"
    assert "{counts}/{workload}.data" in recorded.wrapper
    assert recorded.merge[0][3] == "/bin/perf2bolt"
    assert recorded.key != training_steps("").key
