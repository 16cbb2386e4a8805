import report_data as data
from ensign.report import as_html
from ensign.report.verdict import verdict_of


def test_the_verdict_is_that_of_the_confirmation() -> None:
    verdict = verdict_of(data.confirmed_study())
    assert verdict.headline.startswith("clang-19-O3-lto is 3.2 % faster than gcc-12-O2")
    assert "Raced again: " in verdict.details[-1]
    assert "97.5 %" in verdict.details[-1]


def test_before_its_end_nothing_is_claimed() -> None:
    verdict = verdict_of(data.confirmed_study(result=None, rounds_done=5))
    assert verdict.headline.startswith("Nothing is claimed yet: 5 of 16 confirming rounds")
    page = as_html.render(data.confirmed_study(result=None, rounds_done=5))
    assert "Nothing is claimed yet" in page
    assert 'id="confirmation"' not in page


def test_an_unconfirmed_exploration_and_one_without_finalists() -> None:
    unplanned = verdict_of(data.confirmed_study(result=None, finalists=(), plan_sha256=""))
    assert unplanned.headline == (
        "Nothing is claimed yet: this is an exploration, and it is not confirmed."
    )
    nobody = verdict_of(data.confirmed_study(result=None, finalists=()))
    assert "there was nothing to confirm" in nobody.headline


def test_the_page_shows_the_confirmation_first_and_the_exploration_as_one() -> None:
    page = as_html.render(data.confirmed_study())
    assert page.index('id="confirmation"') < page.index('id="suite"')
    assert "Exploration: all workloads together" in page
    assert "Nothing is claimed of it" in page.replace("\n", " ")
    assert 'id="confirmation"' not in as_html.render(data.study())
