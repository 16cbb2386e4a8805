from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import report_data as data
from ensign.model.results import Result
from ensign.report import as_html, drawing
from report_simulation import simulated_study

VOID = {"meta", "link", "br", "hr", "img", "input", "path", "line", "rect"}
REQUESTS = re.compile(r"""(?:src|href|srcset|action|data|poster)\s*=\s*["']([^"'#][^"']*)""")


@pytest.mark.parametrize(
    "study",
    [
        data.study(),
        data.empty_study(),
        data.confirmed_study(),
        simulated_study(),
        data.curved_study(),
    ],
)
def test_figures_are_numbered_without_gaps(study: Result) -> None:
    numbers = [int(each) for each in re.findall(r"<b>Figure (\d+)\.</b>", as_html.render(study))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_what_artifacts_show_is_among_the_builds() -> None:
    study = data.study()
    proof = ("compile units by level: -O3 9", "PGO: 3 of 4 functions profiled (75%) <b>")
    first = replace(study.builds[0], evidence=proof)
    page = as_html.render(replace(study, builds=(first, *study.builds[1:])))
    builds = page[page.index('id="builds"') : page.index('id="findings"')]
    assert "compile units by level" in builds
    assert "functions profiled (75%) &lt;b&gt;" in builds
    assert "functions profiled" not in as_html.render(study)


class Page(HTMLParser):
    """Tags and text as a browser sees them; complains about what is left open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module", params=["study", "extreme_study", "empty_study"])
def html(request: pytest.FixtureRequest) -> str:
    return as_html.render(getattr(data, request.param)())


@pytest.fixture(scope="module")
def usual() -> str:
    return as_html.render(data.study())


def test_a_page_knows_of_what_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    page = as_html.render(data.study())
    assert as_html.shows(page, data.study())
    assert not as_html.shows(page, data.study(question="Another one?"))
    assert not as_html.shows(page, data.study(suite=()))
    assert not as_html.shows("", data.study())
    monkeypatch.setattr(as_html, "__version__", "9.9")
    assert not as_html.shows(page, data.study())


def test_it_is_well_formed(html: str) -> None:
    page = Page(html)
    assert page.wrong == []
    assert page.open == []


def test_it_asks_for_nothing(html: str) -> None:
    outside = [address for address in REQUESTS.findall(html) if address != "data:,"]
    assert outside == []
    assert "url(" not in html
    assert "@import" not in html
    tags = {tag for tag, _ in Page(html).tags}
    assert not tags & {"script", "iframe", "object", "embed", "img"}


def test_identifiers_are_unique(html: str) -> None:
    ids = [attributes["id"] for _, attributes in Page(html).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_hostile_names_are_text() -> None:
    html = as_html.render(data.extreme_study())
    assert "<script" not in html
    assert data.HOSTILE in "".join(Page(html).texts)
    assert "\x1b" not in html


def test_the_answer_comes_first_and_the_sections_follow(usual: str) -> None:
    order = [
        "clang-19-O3-lto</span> is 4.0", 'id="suite"', 'id="figures"', 'id="bands"', 'id="heat"',
        'id="user"', 'id="trade"', 'id="workloads"', 'id="twin"', 'id="builds"', 'id="findings"',
        'id="machine"', 'id="method"', 'id="redo"',
    ]  # fmt: skip
    places = [usual.index(part) for part in order]
    assert places == sorted(places)


def test_it_shows_flags_failures_facts_and_scope(usual: str) -> None:
    text = " ".join("".join(Page(usual).texts).split())
    parts = (
        "-O3 -flto",
        "unable to execute command: ld.lld",
        "same as gcc-12-O2: no effect",
        "Enhanced IBRS",
        "not of these flags",
        "ensign run studies/redis/quick.toml",
        "redis-benchmark -p {port} -t lrange_100",
        "a few executions decide this",
    )
    for part in parts:
        assert part in text


def test_every_chart_has_words_for_those_who_do_not_see_it(usual: str) -> None:
    page = Page(usual)
    charts = [attributes for tag, attributes in page.tags if tag == "svg"]
    # Bars, bands, user time, and two scatter plots; and the workloads of seven builds.
    assert len(charts) == 5 + 7
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)
    assert usual.count("<desc>") == len(charts)


def test_charts_follow_the_mode_in_every_color(usual: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", usual, flags=re.DOTALL))
    known = {color.light for color in drawing.ALL} | {"none", "transparent"}
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', drawn))
    assert used <= known, "a color that the dark mode does not replace"


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colors, WCAG 2.2."""

    def luminance(color: str) -> float:
        parts = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read(mode: str) -> None:
    paper = getattr(drawing.PAPER, mode)
    for color in (drawing.INK, drawing.MUTED, drawing.FASTER, drawing.SLOWER, drawing.UNCLEAR):
        assert contrast(getattr(color, mode), paper) >= 4.5, color.name
    for texts, backs in (
        (drawing.BAND_TEXTS, drawing.BANDS),
        (drawing.HEAT_TEXTS, drawing.HEAT),
    ):
        for text, back in zip(texts, backs, strict=True):
            assert contrast(getattr(text, mode), getattr(back, mode)) >= 4.0, back.name


def test_the_question_stands_under_the_title_and_its_answer_next() -> None:
    study = data.study()
    texts = [text.strip() for text in Page(as_html.render(study)).texts if text.strip()]
    at = texts.index(study.question)
    assert texts[at - 1] == study.title
    assert "faster than gcc-12-O2" in " ".join(texts[at + 1 : at + 8])
