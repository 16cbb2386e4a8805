from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.lab.ship.choose import chosen
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from report_data import build, study

FAILED = Finding("check-failed", Severity.ERROR, "fails the check: 1 test", "clang-19-O3-lto")


def test_the_winner_is_the_best_that_passed_its_check() -> None:
    assert chosen(study(), None).variant == "clang-19-O3-lto"
    assert chosen(study(findings=(FAILED,)), None).variant == "gcc-12-O3-lto"


def test_where_nothing_is_shown_a_variant_must_be_named() -> None:
    equal = study({"gcc-12-O3": 1.002, "gcc-11-Os": 1.083})
    with pytest.raises(InputError, match=r"nothing to ship: No variant is .*Name a variant"):
        chosen(equal, None)
    assert chosen(equal, "gcc-12-O3").variant == "gcc-12-O3"


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
