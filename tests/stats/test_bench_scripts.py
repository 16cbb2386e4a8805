"""The scripts behind the constants and tables run; their numbers are tested elsewhere."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ensign.experiment.study_file import read_study

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        (
            "statistics_constants.py",
            ["--replications", "4000", "--horizon", "2000"],
            ["| 0.95 | 5 | 9 |", "0.0155 (used)"],
        ),
        ("statistics_error_rates.py", ["--races", "400"], ["False alarms of one pair", "twin"]),
        ("statistics_confirmation.py", ["--studies", "200"], ["flattered by", "| 50 | 0.4 % |"]),
        ("statistics_layouts.py", ["--studies", "200"], ["counting relinks", "band holds"]),
        (
            "statistics_relinks.py",
            ["--studies", "50", "--relinks", "3"],
            ["Fresh link (90 %)", "the baseline alone", "| 3 | 9 |"],
        ),
        (
            "statistics_relink_shares.py",
            ["--studies", "40"],
            ["another one named", "| 12 | 1000 | 10 %, in one function |"],
        ),
        ("statistics_speed.py", ["--samples", "2000"], ["on 2000 samples", "signed rank"]),
        (
            "report_speed.py",
            ["--workloads", "1", "--rounds", "3", "--slices", "2", "--reports", "terminal", "html"],
            ["| terminal |", "| html |"],
        ),
    ],
)
def test_scripts_print_their_tables(
    script: str, arguments: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(BENCH / script))["main"](arguments)
    printed = capsys.readouterr().out
    for text in expected:
        assert text in printed


def test_the_studies_of_groups_are_those_tests_raced_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    script = runpy.run_path(str(BENCH / "groups.py"))
    script["main"](["--write-only", "--folder", str(tmp_path), "--budget", "20m"])
    both = [read_study(tmp_path / f"{name}.toml").study for name in ("groups", "one")]
    assert [study.race.group_size for study in both] == ["auto", "all"]
    for study in both:
        assert (study.race.budget, study.race.rounds, study.race.confirm) == ("20m", None, None)
        assert study.suite is not None
        assert study.suite.tests == list(script["TESTS"])
    half = {"suite": 0.002, "workload": 0.01}
    row = {"rounds": 9, "racing_s": 60.0, "told": half, "reached": None}
    assert "| one | 9 | 60 s | 0.20% - | 1.00% - |" in script["table"]({"one": row})


def test_intervals_of_spreads_over_those_of_edits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    judged = runpy.run_path(str(BENCH / "harmless_edits.py"))["judged"]
    rng = np.random.default_rng(1)

    def drawn(sd: float, mean: float) -> NDArray[np.float64]:
        return rng.normal(mean, sd, (20, 1)) + rng.normal(0, 0.005, (20, 3))

    held, biases, still = 0, [], 0
    for _ in range(100):
        rows = {
            "edits": drawn(0.02, 0.0),
            "padding": drawn(0.03, 0.01),
            "copies": drawn(0.0, 0.0),
        }
        _, padding, copies = judged("demo", rows)
        held += padding.ratio_low <= 1.5 <= padding.ratio_high
        biases.append(padding.bias)
        still += copies.sd_low == 0
    assert 0.82 <= held / 100 <= 0.97
    assert np.median(biases) == pytest.approx(0.5, abs=0.15)
    assert still / 100 > 0.88
