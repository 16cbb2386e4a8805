"""`ensign diff-studies` of a study measured twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from end_to_end.conftest import Ensign, Line


def test_a_bundle_of_then_against_the_study_of_now(
    ensign: Ensign, complaint: Line, measured: Path
) -> None:
    assert ensign("bundle", "study.toml", "-o", "then.zip").status == 0
    assert "the same measurement" in complaint("diff-studies then.zip study.toml")
    shutil.rmtree(measured.parent / ".ensign")
    assert ensign("run", "study.toml").status == 0
    done = ensign("diff-studies", "then.zip", "study.toml")
    assert done.status == 0, done.err
    assert "Same builds" in done.said
    assert "Same machine" in done.said
    said = json.loads(ensign("diff-studies", "--json", "-", "then.zip", "study.toml").out)
    assert [row["variant"] for row in said["suite"]] == ["gcc-12-O2", "twin"]
    assert {row["workload"] for row in said["workloads"]} == {"short", "long"}
    assert ensign("diff-studies", "then.zip", "study.toml", "--markdown", "d.md").out == ""
    assert "| gcc-12-O2 |" in (ensign.folder / "d.md").read_text()
    # As if one of them were another host's.
    assert "trials in common" in complaint("merge then.zip then.zip")
    assert "no such kind" in complaint("merge a=then.zip a=study.toml --share b=1")
    done = ensign("merge", "a=then.zip", "a=study.toml", "--share", "a=100%")
    assert done.status == 0, done.err
    assert "1 kind, 2 hosts" in done.said
    said = json.loads(ensign("merge", "then.zip", "study.toml", "--json", "-").out)
    assert [len(row["hosts"]) for row in said["suite"]] == [2, 2]
    assert ensign("merge", "a=then.zip", "b=study.toml", "--markdown", "m.md").out == ""
    assert "single host" in (ensign.folder / "m.md").read_text()
    assert "does not exist" in complaint("diff-studies then.zip study.toml --json no/where.json")
