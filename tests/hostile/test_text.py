"""Texts of strangers in all that ensign prints and writes: seen, never obeyed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensign.cli.output import rewrite, write
from ensign.model.findings import Finding, Severity
from ensign.model.quoting import json_visible, quoted, visible, visible_lines
from ensign.model.results import Result
from ensign.report import as_csv, as_html, as_json, as_markdown, as_terminal
from ensign.report.github import code_block, safe
from ensign.report.terminal_page import Screen
from report_data import compared

# Title, clipboard, device control, other screen, cursor, C1 forms, turned text, invisible letters.
EVIL = (
    "\x1b]0;owned\x07\x1b]52;c;cm0gLXJmIH4=\x1b\\\x1bP+q\x1b\\\x1b[?1049h\x1b[2J\x1b[8mhidden"
    "\x9b31m\x9d52;c;aGk=\x9c\r\b\x7f\u202eexe.\u2066\u200b\u2028\u2029\x85\xad\ufeff\U000e0041"
)
ENSIGN = str(Path(sys.executable).with_name("ensign"))


def hidden(text: str) -> set[str]:
    """What in a text of several lines a terminal would obey, or nobody would see."""
    return {
        each
        for each in text
        if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") and each not in "\n\t"
    }


@given(st.text())
def test_what_is_shown_has_nothing_hidden_and_plain_text_stays(text: str) -> None:
    assert not hidden(visible(text))
    assert "\n" not in visible(text)
    assert not hidden(visible_lines(text))
    if not hidden(text):
        assert visible_lines(text) == text


@given(
    st.recursive(
        st.text() | st.integers(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_json_stays_exact(value: object) -> None:
    text = json_visible(json.dumps(value, ensure_ascii=False, indent=1))
    assert not hidden(text)
    assert json.loads(text) == json.loads(json.dumps(value))


def test_quoted_values_are_bounded() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, "x" * 10**6, list(range(10**6)), {"k" * 10**6: EVIL}, 10**10_000):
        assert len(quoted(value)) <= 200
        assert quoted(value).isprintable()


def test_all_that_goes_to_a_terminal_is_cleaned_in_one_place() -> None:
    stream = io.StringIO()
    write(stream, f"line\n{EVIL}\n")
    assert not hidden(stream.getvalue())
    assert r"\x1b]52;c;" in stream.getvalue()
    stream = io.StringIO()
    rewrite(stream, EVIL)
    assert not hidden(stream.getvalue().removeprefix("\r\x1b[K"))


def evil_result() -> Result:
    result = compared()
    finding = Finding("evil", Severity.WARNING, f"text {EVIL} @someone #12 <img src=x>", EVIL)
    return replace(
        result,
        title=f"# title {EVIL} <script>alert(1)</script>",
        question=f"- [a](javascript:x) ![i](http://e.example/i.png) {EVIL}",
        findings=(finding,),
        commands=tuple((name, f"=cmd() {EVIL}") for name, _ in result.commands),
    )


@pytest.mark.parametrize("color", [False, True])
def test_a_page_for_the_terminal_has_no_commands_but_its_own_colors(color: bool) -> None:  # noqa: FBT001
    text = as_terminal.render(evil_result(), Screen(color=color), details=True)
    if color:
        assert "\x1b[1m" in text
    assert not hidden(re.sub(r"\x1b\[[0-9;]*m", "", text))
    assert "\x1b[8m" not in text


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.handlers: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.handlers.update(name for name, _ in attrs if name.startswith("on"))


def test_html_has_no_element_of_a_strangers() -> None:
    page = as_html.render(evil_result())
    found = _Elements()
    found.feed(page)
    assert not found.seen & {"script", "img", "iframe", "object", "embed", "form", "base"}
    assert not found.handlers
    assert "default-src 'none'" in page
    assert not hidden(page) - {"\xad"}


def test_markdown_has_no_link_image_mention_or_element_of_a_strangers() -> None:
    text = as_markdown.render(evil_result())
    assert not hidden(text)
    plain = text.replace("<!-- -->", "\0")
    assert not re.search(r"@\w|#\d|://(?!\0)|(?<!\\)\]\(|<img|<script", plain)
    assert safe("# a").startswith("\\#")
    assert safe("1. a") == "1\\. a"
    assert safe("---") == "\\---"
    block = code_block(["```", "[a](b) ````", EVIL])
    assert block.startswith("`````\n")
    assert block.count("`````") == 2
    assert not hidden(block)


def test_a_cell_is_no_formula_and_numbers_stay_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv.render(evil_result()))))
    assert rows
    commands = [row["command"] for row in rows if row["command"]]
    assert all(each.startswith("'=cmd()") for each in commands)
    for row in rows:
        for name, cell in row.items():
            if cell and cell[0] in "=+-@\t\r":
                float(cell)
            assert name not in ("ratio", "low", "high") or cell == "" or float(cell) >= 0


def test_json_of_a_result_is_exact() -> None:
    text = as_json.render(evil_result())
    assert not hidden(text)
    assert any(EVIL in each["text"] for each in json.loads(text)["findings"])


def ensign(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "ENSIGN_CACHE": str(folder / "cache")}
    if "ENSIGN_RACE_LOCK" in os.environ:
        env["ENSIGN_RACE_LOCK"] = os.environ["ENSIGN_RACE_LOCK"]
    return subprocess.run(
        [ENSIGN, *arguments], cwd=folder, env=env, capture_output=True, check=False
    )


def shown_safely(done: subprocess.CompletedProcess[bytes]) -> str:
    text = (done.stdout + done.stderr).decode()
    assert not hidden(text), text
    assert "Traceback" not in text
    return text


def test_output_of_a_command_that_fails_is_seen_and_not_obeyed(tmp_path: Path) -> None:
    script = tmp_path / "fails"
    script.write_text(
        "#!/bin/sh\nprintf '\\033]52;c;aGk=\\007\\302\\235 \\342\\200\\256' >&2\nexit 7\n"
    )
    script.chmod(0o755)
    done = ensign(tmp_path, "compare", "./fails", "./fails 2")
    assert done.returncode == 3
    assert r"\x1b]52;c;aGk=\x07" in shown_safely(done)


def test_names_and_values_of_files_are_seen_and_not_obeyed(tmp_path: Path) -> None:
    evil = "a\x1b]0;x\x07\u202e"
    (tmp_path / f"{evil}.toml").write_text(f'name = "x"\n"{"k" * 5000}" = "{"v" * 5000}"\n')
    done = ensign(tmp_path, "plan", f"{evil}.toml")
    assert done.returncode == 2
    assert len(shown_safely(done)) < 5000
    assert "nearby" in shown_safely(ensign(tmp_path, "plan", "missing.toml"))
    (tmp_path / "j.toml").write_text('name = "\\u001b]0;x\\u0007"\nnonsense = ["\\u202e"]\n')
    assert ensign(tmp_path, "plan", "j.toml").returncode == 2
    shown_safely(ensign(tmp_path, "plan", "j.toml"))
    shown_safely(ensign(tmp_path, "report", evil))
    shown_safely(ensign(tmp_path, "doctor", evil))
    shown_safely(ensign(tmp_path, f"--{evil}"))
