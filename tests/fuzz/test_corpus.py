"""Every parser of others' bytes gets its corpus, and damage of it: it reads or refuses them.

In processes of their own, whose memory is limited; the same damage each time. `make fuzz` is for
long.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.check import CORPUS
from fuzz.mutate import mutated
from fuzz.targets import TARGETS

MUTATIONS = "100"
# Targets that start processes are slow, and others' start takes longer than they do.
GROUPS = (
    ("elf", "object", "archive", "doctor", "unpack", "wheel", "build-record", "loader-cache"),
    ("bundle", "report", "unbundle", "diff", "merge", "trial", "comparison", "record", "cached"),
    tuple(
        name
        for name, target in TARGETS.items()
        if target.kind in ("text", "toml", "yaml", "json", "lines")
        and name not in ("comparison", "record", "cached")
    ),
)
SLOW = ("doctor-folder",)


def checked(mutations: str, names: tuple[str, ...]) -> None:
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.check", mutations, *names],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("names", GROUPS, ids=("files", "evidence", "texts"))
def test_nothing_but_a_refusal_comes_of_damage(names: tuple[str, ...]) -> None:
    checked(MUTATIONS, names)


def test_nothing_but_a_refusal_comes_of_damaged_evidence_beside_a_build() -> None:
    checked("20", SLOW)


def test_every_target_is_checked_and_has_inputs() -> None:
    named = [name for group in GROUPS for name in group]
    assert sorted((*named, *SLOW)) == sorted(TARGETS)
    for target in TARGETS.values():
        assert any((CORPUS / target.inputs).iterdir()), target.name


def test_damage_follows_from_the_seed_alone() -> None:
    data = (CORPUS / "record" / "seed-1").read_bytes()
    some = [mutated(data, "json", [data], seed) for seed in range(50)]
    assert some == [mutated(data, "json", [data], seed) for seed in range(50)]
    assert len(set(some)) > 40


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < 2 << 20
