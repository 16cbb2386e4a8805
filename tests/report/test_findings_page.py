import runpy
from pathlib import Path

from ensign.model.finding_kinds.catalog import CATALOG

DOCS = Path(__file__).parents[2] / "docs"
findings_page = runpy.run_path(str(DOCS / "reference" / "make.py"))["findings_page"]


def test_the_page_in_the_docs_is_current() -> None:
    (page,) = DOCS.rglob("findings.md")
    assert page.read_text() == findings_page(), "'make reference' writes it anew"


def test_each_code_has_one_row_with_all_its_severities() -> None:
    rows = [line for line in findings_page().splitlines() if line.startswith("| `")]
    assert len(rows) == len({kind.code for group in CATALOG for kind in group.kinds})
    (row,) = (row for row in rows if row.startswith("| `flags-differ` |"))
    severities = row.split("|")[2]
    assert [part.split(":")[0].strip() for part in severities.split("<br>")] == [
        "error",
        "warning",
        "note",
    ]
