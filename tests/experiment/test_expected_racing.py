"""How much racing is left, for the line that a study begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.study import forecast
from ensign.experiment.study_file import read_study

_STUDY = """\
name = "small"
layouts = "natural"
source = { kind = "path", path = "." }
build = { commands = [["make"]], artifact = "a" }
axes = { compiler = ["gcc-12"] }
baseline = { compiler = "gcc-12" }
race = { budget = "60s" }
workloads = [{ name = "run", command = ["{artifact}"] }]
"""


@pytest.mark.parametrize(
    ("there", "planned", "left_s"),
    [(0, None, 60.0), (1, 4, 45.0), (4, 4, 0.0), (1, 0, 0.0), (5, 4, 0.0)],
)
def test_racing_left_is_a_share_of_the_budget(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: int,
    planned: int | None,
    left_s: float,
) -> None:
    """Nothing is left where every variant failed in the first trial: no round is planned then."""
    path = tmp_path / "study.toml"
    path.write_text(_STUDY)
    monkeypatch.setattr(forecast, "_trials", lambda _: (there, planned))
    assert forecast._racing(read_study(path)).wall_s == left_s
