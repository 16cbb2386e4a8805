from __future__ import annotations

from dataclasses import replace

from ensign.model.findings import Finding, Severity
from ensign.model.results import LayoutFacts, Result, WorstLayout
from ensign.model.shipment import Shipment, ShippedFile, Verified
from ensign.report.as_pull_request import pull_request
from report_data import HOSTILE, SPREAD, confirmed_study, study

SHIPMENT = Shipment(
    variant="clang-19-O3-lto",
    compiler="clang 19.1.7",
    flags=("-O3", "-flto"),
    link_flags=("-O3", "-flto", "-fuse-ld=lld"),
    files=(ShippedFile("change.patch", b""),),
    commands=("patch -p1 < change.patch", "make CC=clang-19"),
    verified=Verified((), ("the loaded bytes are equal to those that were measured",), True),  # noqa: FBT003
)


def section(page: str, heading: str) -> str:
    return page.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_it_says_what_why_and_how_to_redo() -> None:
    page = pull_request(study(), SHIPMENT, "studies/redis/quick.toml")
    assert page.startswith("# Build with -O3 -flto\n")
    assert "`-O3 -flto -fuse-ld=lld`" in section(page, "What")
    assert "clang-19-O3-lto is 4" in section(page, "Why")
    assert "14 workloads)" in section(page, "Why")
    assert "geometric mean" in section(page, "All that was measured")
    assert "loaded bytes are equal" in section(page, "Verified")
    assert "ensign ship studies/redis/quick.toml clang-19-O3-lto" in section(page, "To reproduce")
    assert "| variant |" in section(page, "All that was measured")


def doubts_of(result: Result, variant: str = SHIPMENT.variant) -> str:
    page = pull_request(result, replace(SHIPMENT, variant=variant), "s.toml")
    return section(page, "What this does not say")


def test_it_says_what_is_not_shown() -> None:
    doubts = doubts_of(study())
    assert "Without relinks it speaks of these binaries, not of these flags" in doubts
    assert "was not checked by the study" in doubts
    assert "only the baseline was relinked" in doubts_of(study(layouts=SPREAD))
    named = doubts_of(study(), "gcc-12-O3")
    assert "It is not shown that gcc-12-O3 is faster than gcc-12-O2." in named


def test_of_a_robust_winner_it_says_why_it_was_chosen() -> None:
    worst = (WorstLayout("gcc-12-O2", 1.04), WorstLayout(SHIPMENT.variant, 0.98))
    robust = study(prefer="robust", layouts=LayoutFacts(12, "object order", worst=worst))
    said = "Robust: its worst layout is 2.0 % faster than the mean of gcc-12-O2"
    assert said in section(pull_request(robust, SHIPMENT, "s.toml"), "Why")
    named = replace(SHIPMENT, variant="gcc-12-O3-lto")
    assert "Robust" not in section(pull_request(robust, named, "s.toml"), "Why")
    assert "Robust" not in section(pull_request(study(), SHIPMENT, "s.toml"), "Why")


def test_patches_of_the_study_are_said() -> None:
    patched = study(source=(("apply", "['fix.patch']"),))
    assert "with the study's own patches: \\['fix.patch'\\]." in doubts_of(patched)
    assert "own patches" not in doubts_of(study(source=(("apply", "[]"),)))


def test_findings_of_this_variant_and_of_the_whole_are_among_the_doubts() -> None:
    def finding(text: str, subject: str) -> Finding:
        return Finding("code", Severity.WARNING, text, subject)

    findings = (
        finding("mine", SHIPMENT.variant),
        finding("everyone's", ""),
        finding("another's", "gcc-12-O3"),
    )
    doubts = doubts_of(study(findings=findings))
    assert "mine (code)" in doubts
    assert "everyone's (code)" in doubts
    assert "another's" not in doubts


def test_hostile_names_stay_text() -> None:
    hostile = replace(SHIPMENT, flags=(f"-D{HOSTILE}`x`",), compiler=HOSTILE)
    page = pull_request(study(), hostile, "s.toml")
    assert f"`` -D{HOSTILE}`x` ``" in page  # a code span, in which HTML is text
    rest = page.replace(f"`` -D{HOSTILE}`x` ``", "")
    assert "<script>" not in rest


def test_a_confirmed_variant_is_judged_by_the_confirmation() -> None:
    both = confirmed_study()
    confirmation = both.confirmation
    assert confirmation is not None
    second = study({"clang-19-O3-lto": 0.93})
    both = replace(both, confirmation=replace(confirmation, result=second))
    page = pull_request(both, SHIPMENT, "s.toml")
    assert "clang-19-O3-lto is 7" in section(page, "Why")
    assert "not confirmed" not in section(page, "What this does not say")
    other = pull_request(both, replace(SHIPMENT, variant="gcc-12-O3"), "s.toml")
    assert "It is not confirmed. Exploration: " in section(other, "What this does not say")
