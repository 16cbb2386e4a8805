"""Every page that somebody names is there, is listed, and is part of the site."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
_FOLDERS = ("bench", "docs", "meter/src", "src", "studies", "tests")
_TEXTS = {".html", ".md", ".py", ".rs", ".toml", ".yml"}
_NAMED = re.compile(r"(?<![\w/])docs/[\w./-]*\w")
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")


def _texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.suffix in _TEXTS)
    yield ROOT / "Makefile"
    for folder in _FOLDERS:
        files = (ROOT / folder).rglob("*")
        yield from (path for path in files if path.suffix in _TEXTS and path != Path(__file__))


def test_every_path_below_docs_that_is_named_exists() -> None:
    named = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in _texts()
        for name in _NAMED.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(named) > len(PAGES)
    assert [(where, name) for where, name in named if not (ROOT / name).exists()] == []


def test_every_link_between_files_leads_to_a_file() -> None:
    links = [
        (path, link)
        for path in _texts()
        if path.suffix == ".md"
        for link in _LINK.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(links) > len(PAGES)
    broken = [(path.name, link) for path, link in links if not (path.parent / link).exists()]
    assert broken == []


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    statistics = ROOT / "docs" / "background" / "statistics" / "README.md"
    listed = {
        (page.parent / link).relative_to(ROOT).as_posix()
        for page in (index, statistics)
        for link in _LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert listed | {"docs/README.md"} == set(PAGES)


def test_the_site_has_every_page_and_no_broken_link(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    built = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    names = {page.removeprefix("docs/").replace("README.md", "index.md") for page in PAGES}
    pages = {
        path.relative_to(tmp_path).with_suffix(".md").as_posix()
        for path in tmp_path.rglob("*.html")
    }
    assert pages - names == {"404.md", "search.md"}
    assert names <= pages
