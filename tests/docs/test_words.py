"""One word per idea: what the glossary replaces is no identifier, option, key or message."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ensign.model.study import study_schema
from ensign.report.formats import results_schema_text

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src"
GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
MODULES = sorted(PACKAGE.rglob("*.py"))
NOT = re.compile(r"Not: ([^.]+)\.")
# Where another idea has the word by right: entries of the cache, of folders, entry points.
ALLOWED = {
    "entry": (
        "ensign/tools/doctor",
        "ensign/builders",
        "ensign/host",
        "ensign/proof",
        "ensign/sources",
        "ensign/ship",
        "ensign/toolchains",
        "ensign/workloads/plugin",
        "ensign/workloads/registry",
        "ensign_redis",
    )
}
# These would say nothing to a reader. In parts, since no file may have them.
PRIVATE = [
    re.compile("".join(parts), flags)
    for parts, flags in (
        ((r"\bTell", r"ing\b"), 0),
        (("Ente", "red"), 0),
        ((r"Sea", r"ts\b"), 0),
        (("work", "shop"), re.IGNORECASE),
        (("counting", " program"), re.IGNORECASE),
    )
]
FILES = ("*.py", "*.rs", "*.md", "*.toml", "*.yml", "*.json", "*.html", "Makefile")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def replaced() -> list[str]:
    return [word for words in NOT.findall(GLOSSARY) for word in re.split(r",\s+", words)]


def test_the_glossary_says_of_each_idea_of_a_race_what_it_is_not_called() -> None:
    assert {"arm", "candidate", "entry", "sweep", "gated", "learning"} <= set(replaced())
    assert len(replaced()) == len(set(replaced()))
    defined = set(re.findall(r"\*\*([^*]+)\*\*", GLOSSARY))
    assert not defined & set(replaced())


@pytest.mark.parametrize("word", replaced())
def test_a_replaced_word_is_in_no_identifier_and_no_message(word: str) -> None:
    forms = _forms(word)
    found = [
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in MODULES
        if not path.relative_to(PACKAGE).as_posix().startswith(ALLOWED.get(word, ()))
        for text, parts in _said(path)
        if forms & parts
    ]
    assert found == []


@pytest.mark.parametrize("word", replaced())
def test_a_replaced_word_is_no_key_and_no_option(word: str) -> None:
    keys: set[str] = set()
    schemas: tuple[dict[str, Any], ...] = (study_schema(), json.loads(results_schema_text()))
    for schema in schemas:
        for table in (schema, *schema["$defs"].values()):
            keys |= set(table.get("properties", {}))
    options = re.findall(r"--([a-z-]+)", (ROOT / "docs/reference/options.md").read_text("utf-8"))
    assert "fail-on" in options
    assert [key for key in (*keys, *options) if _forms(word) & set(_parts(key))] == []


def test_no_private_word_is_left() -> None:
    texts = [
        path
        for folder in ("bench", "docs", "meter", "src", "studies", "tests", ".")
        for pattern in FILES
        for path in (
            (ROOT / folder).glob(pattern) if folder == "." else (ROOT / folder).rglob(pattern)
        )
        if not {"target", ".ensign"} & set(path.relative_to(ROOT).parts)
    ]
    assert len(texts) > len(MODULES)
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts
        for pattern in PRIVATE
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@cache
def _said(path: Path) -> tuple[tuple[str, frozenset[str]], ...]:
    """Every identifier of a module, and every text in it, with the words that it is made of."""
    return tuple((name, frozenset(_parts(name))) for name in dict.fromkeys(_names(path)))


def _names(path: Path) -> Iterator[str]:
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[object] = [
            getattr(node, each, None) for each in ("id", "name", "attr", "arg", "asname")
        ]
        if isinstance(node, ast.Constant):
            names.append(node.value)
        yield from (name for name in names if isinstance(name, str))


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PART.findall(name)]


def _forms(word: str) -> set[str]:
    return {word, f"{word}s", f"{word[:-1]}ies" if word.endswith("y") else word}
