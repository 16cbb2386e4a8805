from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.tools.ship import chosen
from report_data import build, confirmed_study, study

FAILED = Finding("check-failed", Severity.ERROR, "fails the check: 1 test", "clang-19-O3-lto")


def test_the_winner_is_the_best_that_passed_its_check() -> None:
    assert chosen(study(), None).variant == "clang-19-O3-lto"
    assert chosen(study(findings=(FAILED,)), None).variant == "gcc-12-O3-lto"


def test_where_nothing_is_shown_a_variant_must_be_named() -> None:
    equal = study({"gcc-12-O3": 1.002, "gcc-11-Os": 1.083})
    with pytest.raises(InputError, match=r"nothing to ship: No variant is .*Name a variant"):
        chosen(equal, None)
    with pytest.raises(
        InputError, match=r"regression that is shown: .* needs .* more .*--despite regr"
    ):
        chosen(equal, "gcc-12-O3")
    assert chosen(equal, "gcc-12-O3", ["regressions"]).variant == "gcc-12-O3"


def test_what_fails_its_check_is_shipped_only_despite_that() -> None:
    result = study(findings=(FAILED,))
    with pytest.raises(InputError, match="--despite check"):
        chosen(result, FAILED.subject, ["regressions"])
    assert chosen(result, FAILED.subject, ["check", "regressions"]).variant == FAILED.subject
    broken = replace(FAILED, code="variant-failed")
    with pytest.raises(InputError, match="cannot be shipped"):
        chosen(study(findings=(broken,)), FAILED.subject, ["check", "regressions"])
    with pytest.raises(InputError, match="--despite knows regressions and check, not 'all'"):
        chosen(result, None, ["all"])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("gcc-12-O4", "no variant called 'gcc-12-O4'; nearest is 'gcc-12-O"),
        ("gcc-12-O2", "is what the baseline gcc-12-O2 is"),
        ("same", "is what the baseline gcc-12-O2 is"),
        ("broken", r"was not built \(failed\)"),
        ("clang-19-O3-lto", r"cannot be shipped: fails the check: 1 test \(check-failed\)"),
    ],
)
def test_what_cannot_be_shipped_says_why(wanted: str, said: str) -> None:
    result = study(findings=(FAILED,))
    more = (build("same", "same as gcc-12-O2"), build("broken", "failed"))
    with pytest.raises(InputError, match=said):
        chosen(replace(result, builds=(*result.builds, *more)), wanted)


def test_of_two_phases_the_confirmation_decides() -> None:
    both = confirmed_study()
    confirmation = both.confirmation
    assert confirmation is not None
    assert confirmation.result is not None
    second = study({"clang-19-O3-lto": 0.998, "gcc-12-O3-lto": 0.97})
    other = replace(both, confirmation=replace(confirmation, result=second))
    assert chosen(both, None).variant == "clang-19-O3-lto"
    assert chosen(other, None).variant == "gcc-12-O3-lto"
    pending = replace(both, confirmation=replace(confirmation, result=None))
    with pytest.raises(InputError, match="nothing to ship: Nothing is claimed yet"):
        chosen(pending, None)
    late = replace(second, findings=(FAILED,))
    with pytest.raises(InputError, match="fails the check"):
        chosen(replace(both, confirmation=replace(confirmation, result=late)), FAILED.subject)
