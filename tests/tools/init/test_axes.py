"""Axes that the command line asks a first study for; the prices of advice are such commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from ensign.experiment.study_file import parse_study
from ensign.model.errors import InputError
from ensign.proof.evidence import BuildEvidence
from ensign.proof.facts import Binary, Proof, Unit, UnitKind
from ensign.proof.identity import Identity
from ensign.proof.instructions import Instructions
from ensign.tools.doctor.advice import Offers, advice_for
from ensign.tools.doctor.program_facts import ProgramLook
from ensign.tools.init.axes import asked_axes, with_axes
from ensign.tools.init.draft import Draft, DraftWorkload, draft_text

_WORKLOAD = DraftWorkload("work", ("{artifact}", "-c"), comment="Seen once.")
_DRAFT = Draft("thing", "make", "thing", ("gcc-12", "clang-19"), workload=_WORKLOAD)
TEXT = draft_text(_DRAFT, "ensign.toml")


def test_the_first_value_is_the_baseline() -> None:
    text = with_axes(TEXT, asked_axes(['lto = ["off", "full"]', 'target = ["x86-64-v2"]']))
    said = tomllib.loads(text)
    assert said["axes"] == {
        "combine": "one-at-a-time",
        "compiler": ["gcc-12"],
        "optimization": ["-O2"],
        "lto": ["off", "full"],
        "target": ["x86-64-v2"],
    }
    assert said["baseline"]["lto"] == "off"
    assert said["workloads"][0]["command"] == ["{artifact}", "-c"]
    assert "training" not in said


def test_a_profile_is_trained_on_the_workload() -> None:
    text = with_axes(TEXT, asked_axes(['pgo = ["off", "on"]', 'compiler = ["clang-19"]']))
    said = tomllib.loads(text)
    assert said["training"]["workloads"] == said["workloads"]
    assert said["axes"]["compiler"] == ["clang-19"]


@pytest.mark.parametrize(
    "text",
    ["lto", "", "lto = []", 'lto = "full"', 'unknown = ["x"]', 'combine = ["list"]', "[" * 9],
)
def test_what_is_no_axis_is_refused_before_anything_is_built(text: str) -> None:
    with pytest.raises(InputError, match="--axis"):
        asked_axes([text])


def looks() -> list[ProgramLook]:
    slow = Unit("a.c", "", UnitKind.WHOLE, "GCC 9.4.0", ("-march=x86-64",))
    good = Unit("a.c", "", UnitKind.CLANG, "Clang 14.0.6", ("-O2", "-march=x86-64"))
    identity = Identity("program", "x86-64", 64)
    counted = Instructions(1000, 50)
    return [
        ProgramLook(
            BuildEvidence("app", Proof(Binary("/x y/app", units=(unit,), read=True))),
            rust,
            counted,
        )
        for unit in (slow, good)
        for rust in (identity, Identity("program", "x86-64", 64, rust="1.95.0"))
    ]


def test_each_price_is_a_command_that_a_study_can_be_made_by() -> None:
    offers = Offers(
        compilers={"gcc-9": 9, "gcc-12": 12, "clang-14": 14, "clang-19": 19},
        levels=("x86-64-v3", "x86-64-v2"),
    )
    practices = set()
    for look in looks():
        for advice in advice_for(look, offers):
            axes = re.findall(r"--axis '([^']*)'", advice.price)
            assert bool(axes) == advice.price.startswith("ensign init SOURCE ")
            if axes:
                parse_study(with_axes(TEXT, asked_axes(axes)), Path("ensign.toml"))
                practices.add(advice.practice)
    assert practices == {
        "optimize",
        "-O3",
        "newer compiler",
        "whole-program optimization",
        "profile feedback",
        "BOLT",
        "target level",
        "fused multiply-add",
        "fast maths",
    }
