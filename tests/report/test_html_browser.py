"""The HTML report in a real browser: no console message, no request, no sideways scrolling."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import report_data as data
from ensign.model.results import Result
from ensign.report import as_html
from report_simulation import simulated_study

Measured = dict[str, Any]

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium (packages-test.txt)")

PHONE = 380
# Chromium's window has a least width, a frame has none.
WRAPPER = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<body style="margin:0">
<iframe id="page" src="page.html" style="border:0;width:{width}px;height:2000px"></iframe>
<pre id="measured"></pre><script>
addEventListener("load", () => {{
  const frame = document.getElementById("page");
  const page = frame.contentDocument;
  for (const details of page.querySelectorAll("details")) details.open = true;
  // Words of a chart that lie over a bar, or over other words; the backdrop is taller than a bar.
  const meets = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const covered = [];
  for (const svg of page.querySelectorAll(".chart svg")) {{
    if (!svg.getClientRects().length) continue;
    const words = [...new Map([...svg.querySelectorAll("text.said")]
      .filter((text) => text.textContent.trim() && !/^\\d+$/.test(text.textContent))
      .map((text) => [text.textContent + text.getBoundingClientRect().top, text])).values()];
    const bars = [...svg.querySelectorAll("rect.bar")]
      .map((bar) => bar.getBoundingClientRect())
      .filter((box) => box.height > 3 && box.height < 30 && box.width > 0);
    for (const [index, text] of words.entries()) {{
      const box = text.getBoundingClientRect();
      const others = words.slice(index + 1).map((other) => other.getBoundingClientRect());
      if ([...bars, ...others].some((other) => meets(box, other))) covered.push(text.textContent);
    }}
  }}
  const scaled = [...page.querySelectorAll(".chart svg")].filter((svg) => svg.clientWidth)
    .map((svg) => svg.clientWidth / svg.viewBox.baseVal.width);
  const letters = [...page.querySelectorAll(".chart svg text")].map((text) =>
    text.getAttribute("font-size"));
  document.getElementById("measured").textContent = JSON.stringify({{
    scroll: page.documentElement.scrollWidth,
    client: page.documentElement.clientWidth,
    letters: scaled.length ? Math.min(...scaled) * Math.min(...letters) : null,
    scaled: scaled.length ? [Math.min(...scaled), Math.max(...scaled)] : null,
    paper: getComputedStyle(page.body).backgroundColor,
    figures: page.querySelectorAll("figure").length,
    wordless: [
      ...[...page.querySelectorAll("figure")].filter((figure) =>
        !(figure.querySelector("figcaption")?.textContent.trim())),
      ...[...page.querySelectorAll("svg")].filter((svg) =>
        svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label")
        || !svg.querySelector("desc")?.textContent),
      ...[...page.querySelectorAll(".wide-scroll")].filter((box) =>
        !box.getAttribute("aria-label") || box.tabIndex !== 0),
    ].map((element) => element.outerHTML.slice(0, 200)),
    covered,
    charts: page.querySelectorAll(".chart svg text.said").length,
    scrolls: [...page.querySelectorAll(".wide-scroll")].filter((box) =>
      box.scrollWidth > box.clientWidth).length,
    point: page.querySelector(".chart [fill='#0b5fa5']")
      ? getComputedStyle(page.querySelector(".chart [fill='#0b5fa5']")).fill : null,
  }});
}});
</script>"""
PREFERS = {"dark": "0", "light": "1"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as site:
        yield site


class Site(ThreadingHTTPServer):
    """Serves a folder on this machine and remembers what was asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        site = self

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                site.asked.append(self.path)

        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def browse(site: Site, html: str, *, width: int, mode: str = "light") -> tuple[Measured, list[str]]:
    """What the wrapper measured in a frame of that width, and the lines of the console."""
    (site.folder / "page.html").write_text(html, encoding="utf-8")
    (site.folder / "wrapper.html").write_text(WRAPPER.format(width=width), encoding="utf-8")
    site.asked.clear()
    assert BROWSER is not None
    # It makes a socket in the temporary folder, whose path may have 107 characters at most.
    env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
            "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--blink-settings=preferredColorScheme={PREFERS[mode]}",
            f"--user-data-dir={site.folder / 'profile'}", "--enable-logging=stderr", "--v=0",
            "--window-size=1300,2000", "--virtual-time-budget=5000", "--dump-dom",
            f"{site.address}/wrapper.html",
        ],
        capture_output=True, text=True, timeout=600, check=False, env=env,
    )  # fmt: skip
    found = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(found[1].replace("&quot;", '"')), console


@pytest.mark.parametrize("make", [data.study, data.extreme_study, simulated_study])
def test_no_label_lies_over_a_bar_at_390_pixels(site: Site, make: Callable[[], Result]) -> None:
    measured, _ = browse(site, as_html.render(make()), width=390)
    assert measured["charts"] >= 10
    assert measured["covered"] == []


@pytest.mark.parametrize(
    "make", [data.study, data.extreme_study, data.relinked_study, simulated_study]
)
def test_a_phone_shows_it_without_sideways_scrolling(
    site: Site, make: Callable[[], Result]
) -> None:
    measured, console = browse(site, as_html.render(make()), width=PHONE)
    assert measured["client"] == PHONE
    assert measured["scroll"] <= PHONE
    assert site.asked == ["/wrapper.html", "/page.html"]
    assert measured["letters"] > 9  # pixels
    assert measured["wordless"] == []
    assert console == []


def test_a_map_wider_than_a_phone_scrolls_within_its_box(site: Site) -> None:
    measured, _ = browse(site, as_html.render(simulated_study()), width=PHONE)
    assert measured["figures"] == 7
    assert measured["scrolls"] >= 1


def test_a_wide_page_has_larger_charts_and_a_dark_mode(site: Site) -> None:
    html = as_html.render(data.study())
    light, _ = browse(site, html, width=1200)
    dark, console = browse(site, html, width=1200, mode="dark")
    assert 1.2 < light["scaled"][1] < 1.3
    assert light["letters"] > 9
    assert (light["paper"], dark["paper"]) == ("rgb(253, 253, 252)", "rgb(21, 25, 30)")
    assert (light["point"], dark["point"]) == ("rgb(11, 95, 165)", "rgb(116, 184, 240)")
    assert console == []


def test_the_test_would_notice(site: Site) -> None:
    bad = (
        "<!doctype html><html><body><div style='width:600px'>x</div><details></details>"
        "<figure></figure><svg></svg><div class='wide-scroll'></div>"
        "<img src='missing.png'><script>console.error('wrong')</script></body></html>"
    )
    measured, console = browse(site, bad, width=PHONE)
    assert measured["scroll"] == 608  # and the margin of the body
    assert len(measured["wordless"]) == 3
    assert "/missing.png" in site.asked
    assert any("wrong" in line for line in console)
