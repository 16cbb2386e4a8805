from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.study_file import parse_study
from ensign.model.errors import InputError
from ensign.tools.bundles import expanded_again, expansion
from ensign_redis.expand import expanded
from experiment.test_driven_studies import STUDY
from suite_sources import source

SUITE = """
[suite]
kind = "redis-benchmarks-specification"
path = "."
scale = 0.5
tests = ["a", "b"]
"""
TESTS = {
    "memtier_benchmark-a": source("--pipeline 4 --data-size-range=8-64 --expiry-range=1-9"),
    "memtier_benchmark-b": source("--command 'GET __key__' --rate-limiting 100", name="b"),
}


def test_what_a_suite_became_is_read_back_as_it_was(tmp_path: Path) -> None:
    text = STUDY + SUITE
    whole = parse_study(text, Path("s.toml"), expand=lambda study: expanded(study, TESTS))
    assert len(whole.study.workloads) == 3
    path = tmp_path / "suite.json"
    path.write_bytes(expansion(whole.study))
    again = parse_study(text, Path("s.toml"), expand=lambda study: expanded_again(path, study))
    assert again.study == whole.study
    assert again.suite == whole.suite
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match="does not say what its suite's tests are"):
        expanded_again(path, whole.study)
