"""The catalog of findings: complete, used, and what the docs speak of."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ensign.model.finding_kinds.catalog import CATALOG
from ensign.model.findings import Finding, FindingKind, Severity

ROOT = Path(__file__).parents[2]
KINDS = [kind for group in CATALOG for kind in group.kinds]
CODES = {kind.code for kind in KINDS}
DEFINITIONS = ROOT / "src/ensign/model/finding_kinds"


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def defined() -> set[str]:
    found = set()
    for path in DEFINITIONS.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and path.stem != "catalog":
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_each_code_and_severity_is_in_the_catalog_once() -> None:
    pairs = [(kind.code, kind.severity) for kind in KINDS]
    assert len(pairs) == len(set(pairs))
    assert len(defined()) == len(KINDS)


def test_a_code_of_several_severities_says_when_it_has_which() -> None:
    for code in CODES:
        several = [kind for kind in KINDS if kind.code == code]
        assert all(bool(kind.when) == (len(several) > 1) for kind in several), code
        assert len({(kind.meaning, kind.remedy) for kind in several}) == 1, code


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.code}-{kind.severity}")
def test_a_kind_is_told_in_whole_sentences(kind: FindingKind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)
    for text in (kind.meaning, kind.remedy):
        assert text.endswith(".")
        assert "|" not in text
        assert "  " not in text
    assert not kind.when.endswith(".")


def test_each_kind_is_used() -> None:
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        if DEFINITIONS not in path.parents:
            used |= names_in(path)
    assert defined() <= used


def test_findings_are_made_from_kinds_alone() -> None:
    calls = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Finding", "FindingKind")
        and DEFINITIONS not in path.parents
    }
    assert calls == {"src/ensign/model/findings.py"}


def test_a_finding_is_of_its_kind_whatever_its_severity() -> None:
    kind = FindingKind("some-code", Severity.ERROR, "It is so.", "Mend it.", "it is sure")
    milder = kind.as_severity(Severity.WARNING, "it may be so")
    other = FindingKind("other-code", Severity.ERROR, "It is so.", "Mend it.")
    assert milder.found("a text", "a variant") == Finding(
        "some-code", Severity.WARNING, "a text", "a variant"
    )
    assert milder.found("a text").is_a(kind)
    assert milder.found("a text").is_a(other, kind)
    assert not milder.found("a text").is_a(other)
    assert not milder.found("a text").is_a()


_NAMED = re.compile(r"\bfindings?(?:\s+is)?\s+((?:(?:,|and|or|\s)*`[a-z]+(?:-[a-z]+)*`)+)")
_CODE = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")


def in_docs() -> dict[str, set[str]]:
    """What the pages call a finding: named as one, or in the first column of a table of them."""
    found: dict[str, set[str]] = {}
    for page in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        text = page.read_text()
        codes = {code for named in _NAMED.findall(text) for code in _CODE.findall(named)}
        of_findings = False
        for line in text.splitlines():
            of_findings = line.startswith("|") and (of_findings or line.startswith("| finding"))
            if of_findings:
                codes |= set(_CODE.findall(line.split("|")[1]))
        found[page.name] = codes
    return found


def test_what_the_docs_call_a_finding_is_one() -> None:
    said = in_docs()
    assert {page: codes - CODES for page, codes in said.items() if codes - CODES} == {}
    assert said["findings.md"] == CODES
    assert "no-spread" in said["one-pair.md"]
