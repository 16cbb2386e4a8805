from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.variants import Variant
from ensign.variants.expand import (
    expand,
    expansion_problems,
    matching,
    named,
    plain_name,
    same_choices,
)

COMPILERS = ["gcc-12", "gcc-11", "clang-19", "/opt/new/bin/gcc-12", "g++"]
LEVELS = ["-O1", "-O2", "-O3", "-Os"]
FLAGS = ["", "-march=native", "-funroll-loops -fno-plt", "-a/b", "-a_b", "-x" * 40]


def study(axes: dict[str, Any], baseline: dict[str, str], **rules: object) -> Study:
    return Study.model_validate(
        {
            "name": "demo",
            "layouts": "natural",
            "source": {"kind": "path", "path": "."},
            "build": {"commands": [["make"]], "artifact": "demo"},
            "axes": axes,
            "baseline": baseline,
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
            **rules,
        }
    )


def subset(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    axes = {
        "compiler": draw(subset(COMPILERS)),
        "optimization": draw(subset(LEVELS)),
        "lto": draw(subset(["off", "full"])),
        "flags": draw(subset(FLAGS)),
    }
    rule = st.fixed_dictionaries(
        {}, optional={axis: st.sampled_from(values) for axis, values in axes.items()}
    ).filter(bool)
    exclude = draw(st.lists(rule, max_size=2))
    point = {axis: draw(st.sampled_from(values)) for axis, values in axes.items()}
    made = study(axes, point, exclude=exclude)
    assume(not expansion_problems(made))
    return made


@given(studies())
def test_the_product_without_what_is_excluded(made: Study) -> None:
    axes = made.axes
    whole = len(axes.compiler) * len(axes.optimization) * len(axes.lto) * len(axes.flags)
    variants = expand(made)
    everything = expand(made.model_copy(update={"exclude": []}))
    left_out = {variant.choices for rule in made.exclude for variant in matching(everything, rule)}
    assert len(everything) == whole
    assert len(variants) == whole - len(left_out)
    assert not left_out & {variant.choices for variant in variants}


@given(studies())
def test_names_are_unique_safe_and_the_same_every_time(made: Study) -> None:
    variants = expand(made)
    names = [variant.name for variant in variants]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", name) for name in names)
    assert expand(made) == variants


@given(studies())
def test_the_baseline_comes_first_and_the_rest_keeps_the_order_of_the_file(made: Study) -> None:
    first, *rest = expand(made)
    assert matching([first], made.baseline)
    assert not any(same_choices(first, variant) for variant in rest)

    def place(variant: Variant) -> tuple[int, ...]:
        axes = ("compiler", "optimization", "lto", "flags")
        return tuple(getattr(made.axes, axis).index(getattr(variant, axis)) for axis in axes)

    assert [place(variant) for variant in rest] == sorted(place(variant) for variant in rest)


def test_an_include_adds_one_variant_with_first_values_where_it_names_none() -> None:
    made = study(
        {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
        {"optimization": "-O3"},
        include=[{"compiler": "clang-19", "lto": "full"}],
    )
    assert [variant.name for variant in expand(made)] == [
        "gcc-12-O3",
        "gcc-12-O2",
        "clang-19-O2-lto",
    ]


def test_an_include_may_bring_back_what_was_excluded_and_be_the_baseline() -> None:
    made = study(
        {"compiler": ["gcc-12", "clang-19"], "optimization": ["-O2", "-O3"]},
        {"optimization": "-O3"},
        exclude=[{"optimization": "-O3"}],
        include=[{"compiler": "clang-19", "optimization": "-O3"}],
    )
    assert expand(made)[0].name == "clang-19-O3"


def test_names_for_people() -> None:
    assert plain_name(Variant("", "gcc-12", "-O2", "off")) == "gcc-12-O2"
    assert plain_name(Variant("", "/usr/bin/clang-19", "-O3", "full")) == "clang-19-O3-lto"
    aligned = Variant("", "gcc-12", "-O2", alignment="loops")
    assert plain_name(aligned) == "gcc-12-O2-align-loops"
    native = Variant("", "gcc-12", "-O2", "off", "-march=native")
    assert plain_name(native) == "gcc-12-O2-march-native"
    sources = " ".join(f"src/file-{place}.c" for place in range(300))
    mixed = Variant("", "gcc-12", "-O2", units=f"{sources}: optimization=-O3")
    assert len(plain_name(mixed)) < 80
    long = plain_name(Variant("", "gcc-12", "-O2", "off", "-fno-semantic-interposition -fno-plt"))
    assert re.fullmatch(r"gcc-12-O2-fno-semantic-interposition-f-[0-9a-f]{6}", long)


def test_only_variants_that_would_share_a_name_get_a_hash() -> None:
    one, other, third = named(
        [
            Variant("", "/a/gcc", "-O2", "off"),
            Variant("", "/b/gcc", "-O2", "off"),
            Variant("", "gcc", "-O3", "off"),
        ]
    )
    assert re.fullmatch(r"gcc-O2-[0-9a-f]{6}", one.name)
    assert re.fullmatch(r"gcc-O2-[0-9a-f]{6}", other.name)
    assert one.name != other.name
    assert third.name == "gcc-O3"


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"exclude": [{"flags": "-g"}]}, "[[exclude]] matches no variant: 'flags' is never '-g'"),
        (
            {"exclude": [{"compiler": "gcc-12"}, {"compiler": "clang-19"}]},
            "the [[exclude]] rules leave no variant",
        ),
        (
            {"include": [{"compiler": "gcc-11"}, {"compiler": "gcc-11"}]},
            "[[include]] adds gcc-11 -O2, which is a variant already",
        ),
    ],
)
def test_rules_that_make_no_sense(rules: dict[str, Any], text: str) -> None:
    made = study(
        {"compiler": ["gcc-12", "clang-19"]}, {"compiler": "gcc-12", "optimization": "-O2"}, **rules
    )
    with pytest.raises(InputError) as caught:
        expand(made)
    assert str(caught.value).startswith(text)


def test_a_combination_that_was_excluded_cannot_be_the_baseline() -> None:
    made = study(
        {"compiler": ["gcc-12", "clang-19"], "optimization": ["-O2", "-O3"]},
        {"compiler": "gcc-12", "optimization": "-O3"},
        exclude=[{"compiler": "gcc-12", "optimization": "-O3"}],
    )
    (problem,) = expansion_problems(made)
    assert problem.where == ("baseline",)
    assert problem.text == "[baseline] matches no variant: no variant has all of its values"


def test_flags_are_the_same_choice_however_they_are_spaced() -> None:
    made = study({"compiler": ["gcc"], "flags": [" -a   -b"]}, {"flags": "-a -b"})
    assert expand(made)[0].flags == "-a -b"


WIDE = {"compiler": ["gcc-12", "clang-19"], "lto": ["off", "full"], "plt": ["default", "off"]}


def test_one_at_a_time_is_the_baseline_and_single_changes() -> None:
    made = study(
        {**WIDE, "combine": "one-at-a-time"}, {"compiler": "gcc-12"}, include=[{"pgo": "on"}]
    )
    assert [variant.name for variant in expand(made)] == [
        "gcc-12-O2",
        "clang-19-O2",
        "gcc-12-O2-lto",
        "gcc-12-O2-no-plt",
        "gcc-12-O2-pgo",
    ]


def test_one_at_a_time_starts_anywhere() -> None:
    baseline = {"compiler": "clang-19", "lto": "full"}
    made = study({**WIDE, "combine": "one-at-a-time"}, baseline)
    assert [variant.name for variant in expand(made)] == [
        "clang-19-O2-lto",
        "gcc-12-O2-lto",
        "clang-19-O2",
        "clang-19-O2-lto-no-plt",
    ]


def test_a_list_is_what_is_included() -> None:
    rules = [{"lto": "full"}, {"compiler": "clang-19", "hardening": "openssf"}]
    made = study({**WIDE, "combine": "list"}, {"lto": "full"}, include=rules)
    assert [variant.name for variant in expand(made)] == [
        "gcc-12-O2-lto",
        "clang-19-O2-hard-openssf",
    ]
    empty = study({**WIDE, "combine": "list"}, {"lto": "full"})
    assert [problem.where for problem in expansion_problems(empty)] == [("axes", "combine")]


def test_a_product_that_nobody_can_have_meant() -> None:
    axes = {
        **WIDE,
        "optimization": ["-O0", "-O1", "-O2", "-O3", "-Os"],
        "target": ["default", "generic", "x86-64-v2", "x86-64-v3", "native"],
        "aliasing": ["default", "strict", "relaxed"],
        "floating_point": ["default", "strict", "fast"],
    }
    assert "1800 combinations" in expansion_problems(study(axes, {}))[0].text


def test_names_tell_the_axis_where_the_value_does_not() -> None:
    variant = Variant(
        "", "gcc-12", "-O2", pgo="on", bolt="on", interposition="off", floating_point="fast",
        dependencies="flags", target="x86-64-v3", allocator="libc",
    )  # fmt: skip
    assert plain_name(variant) == "gcc-12-O2-x86-64-v3-pgo-bolt-no-interposition-fp-fast-libc-deps"


def test_every_trained_variant_is_there_once_per_profile() -> None:
    axes = {"compiler": ["gcc-12"], "pgo": ["off", "on"]}
    training = {"workloads": [{"name": "t", "command": ["{artifact}"]}], "profiles": 2}
    variants = expand(study(axes, {"pgo": "off"}, training=training))
    assert [(each.name, each.profile) for each in variants] == [
        ("gcc-12-O2", 1),
        ("gcc-12-O2-pgo-p1", 1),
        ("gcc-12-O2-pgo-p2", 2),
    ]
    once = expand(study(axes, {"pgo": "off"}, training={**training, "profiles": 1}))
    assert [each.name for each in once] == ["gcc-12-O2", "gcc-12-O2-pgo"]


@pytest.mark.parametrize(
    ("revision", "name"),
    [
        ("", "gcc-12-O2"),
        ("main", "gcc-12-O2-main"),
        ("fix/a b", "gcc-12-O2-fix-a-b"),
        ("0123456789abcdef" * 2 + "01234567", "gcc-12-O2-0123456789ab"),
    ],
)
def test_names_of_revisions(revision: str, name: str) -> None:
    assert plain_name(Variant("", "gcc-12", "-O2", revision=revision)) == name


def test_revisions_that_would_share_a_name_get_a_hash() -> None:
    variants = [Variant("", "gcc-12", "-O2", revision=each) for each in ("a/b", "a-b", "no-plt")]
    others = [*variants, Variant("", "gcc-12", "-O2", plt="off")]
    assert len({each.name for each in named(others)}) == len(others)


@pytest.mark.parametrize(("revision", "name"), [("my/branch", "my-branch"), ("", "default")])
def test_variants_with_flags_of_the_project_are_named_by_their_revision(
    revision: str, name: str
) -> None:
    variant = Variant("", "default", "-O2", revision=revision)
    assert plain_name(variant) == name
    assert variant.choices == ((("revision", revision),) if revision else ())
