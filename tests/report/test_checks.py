"""How each report shows that a variant fails its check."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ensign.model.builds import BuildError, CheckStatus
from ensign.model.results import Result
from ensign.report import as_html, as_json, as_markdown, as_terminal
from ensign.report.terminal_page import Screen
from ensign.report.view import status_of, view_of
from report_data import build, study

FASTEST = "clang-19-O3-lto"


@pytest.fixture
def result() -> Result:
    facts: dict[str, dict[str, Any]] = {
        FASTEST: {
            "check": CheckStatus.FAILED,
            "check_failed": "'./runtest' ended with status 1",
            "check_tail": "[err]: <strings> differ\n",
        },
        "gcc-12-O3": {"check": CheckStatus.PASSED},
    }
    plain = study()
    return replace(
        plain, builds=tuple(replace(b, **facts.get(b.variant, {})) for b in plain.builds)
    )


def test_the_row_of_a_variant_that_fails_says_so(result: Result) -> None:
    labels = {row.name: row.label for row in view_of(result).suite}
    assert labels[FASTEST] == f"{FASTEST} (fails its check)"
    assert labels["gcc-12-O3"] == "gcc-12-O3"


def test_the_status_of_a_build_has_its_check() -> None:
    assert status_of(build("gcc-12-O2", "cached")) == "cached"
    assert status_of(replace(build("gcc-12-O2"), check=CheckStatus.PASSED)) == "built, check passed"


def test_every_report_shows_it(result: Result) -> None:
    text = as_terminal.render(result, Screen(width=120), details=True)
    assert "built, check FAILED" in text
    assert f"{FASTEST}: last lines of its check" in text
    assert "[err]: <strings> differ" in text
    html = as_html.render(result)
    assert "built, check FAILED" in html
    assert "[err]: &lt;strings&gt; differ" in html
    assert "(fails its check)" in as_markdown.render(result)
    builds = {one["variant"]: one for one in json.loads(as_json.render(result))["builds"]}
    assert builds[FASTEST]["check"] == "failed"
    assert builds[FASTEST]["check_failed"] == "'./runtest' ended with status 1"
    assert builds["gcc-12-O2"]["check"] == "not checked"


def test_variants_that_fail_for_one_reason_are_one_row() -> None:
    error = BuildError("dc.c", 64, "call to undeclared function 'x'", "compile with -Wno-y")
    failed = [replace(build(name, "failed"), error=error) for name in ("clang-O2", "clang-O3")]
    other = replace(build("gcc-Os", "failed"), error=replace(error, line=7))
    view = view_of(study(builds=(build("gcc-12-O2"), *failed, other)))
    rows = [each for each in view.unmeasured if "dc.c" in each.reason]
    assert [each.label for each in rows] == ["clang-O2 and clang-O3", "gcc-Os"]
    assert rows[0].reason == (
        "its build failed: dc.c:64: call to undeclared function 'x'; "
        "log: .ensign/redis-quick/builds/clang-O2.log; compile with -Wno-y"
    )
