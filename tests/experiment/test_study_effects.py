from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.experiment.study.result import design_of
from ensign.model.builds import BuildFacts, BuildStatus, CheckStatus
from ensign.model.findings import Finding, Severity


def built(variant: str, same_as: str = "", **choices: str) -> BuildFacts:
    named = {"compiler": "gcc-12", "optimization": "-O2", "lto": "off", **choices}
    return BuildFacts(
        variant=variant, choices=tuple(named.items()), compiler="", flags=(), link_flags=(),
        status=BuildStatus.SAME if same_as else BuildStatus.BUILT, same_as=same_as,
        build_s=1.0, size_bytes=1, text_bytes=1, loadable_sha256=variant,
    )  # fmt: skip


BASE = built("base")
O3 = built("o3", optimization="-O3")
PGO = built("pgo", pgo="on")


def test_axes_that_vary_are_in_the_design_with_the_values_of_the_baseline() -> None:
    design = design_of((BASE, O3, PGO), ("base", "o3", "pgo"), ())
    assert design.axes == ("optimization", "pgo")
    assert design.references == ("-O2", "off")
    assert design.builds == (
        (("-O2", "off"), "base"),
        (("-O3", "off"), "o3"),
        (("-O2", "on"), "pgo"),
    )


def test_the_same_bytes_count_as_the_build_that_was_raced() -> None:
    same = built("same", "base", plt="off")
    design = design_of((BASE, O3, same), ("base", "o3"), ())
    assert (("-O2", "off"), "base") in design.builds


@pytest.mark.parametrize(
    "bad", [replace(O3, status=BuildStatus.FAILED), replace(O3, check=CheckStatus.FAILED)]
)
def test_what_failed_is_not_in_it(bad: BuildFacts) -> None:
    raced = ("base", "o3", "pgo") if bad.status == "built" else ("base", "pgo")
    assert design_of((BASE, bad, PGO), raced, ()).axes == ("pgo",)


def test_what_an_error_speaks_against_is_not_in_it() -> None:
    error = Finding("no-trace", Severity.ERROR, "-O3 has no trace", "o3")
    assert design_of((BASE, O3, PGO), ("base", "o3", "pgo"), (error,)).axes == ("pgo",)
    note = replace(error, severity=Severity.NOTE)
    assert len(design_of((BASE, O3, PGO), ("base", "o3", "pgo"), (note,)).axes) == 2


def test_single_hardening_options_are_held_against_the_defaults() -> None:
    none, default = built("base", hardening="none"), built("default")
    canary = built("canary", hardening="canary")
    design = design_of((none, default, canary), ("base", "default", "canary"), ())
    assert (design.axes, design.references) == (("hardening",), ("default",))
    without = design_of((none, canary), ("base", "canary"), ())
    assert without.references == ("none",)


def test_without_a_usable_baseline_there_is_no_design() -> None:
    assert design_of((), (), ()).builds == ()
    assert design_of((replace(BASE, check=CheckStatus.FAILED), O3), ("base", "o3"), ()).builds == ()
