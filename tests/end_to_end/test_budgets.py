"""A budget is a promise: it is used, and what cannot fit is refused with what would."""

from __future__ import annotations

import json
import re

import pytest

from end_to_end.conftest import Ensign, Programs
from ensign.experiment.compare import plan


@pytest.mark.parametrize("rounds", ["200000", "30000000"])
@pytest.mark.parametrize(
    "options", [("--precision", "0.01%"), ("--precision", "0.01%", "--margin", "90%")]
)
def test_a_race_goes_on_until_the_precision_or_the_budget(
    ensign: Ensign, programs: Programs, rounds: str, options: tuple[str, ...]
) -> None:
    """Also where a margin is settled long before the precision is reached."""
    done = ensign(
        "compare", f"{programs.cheap} {rounds}", f"{programs.cheap} {rounds} 0",
        "--mode", "interleaved", "--budget", "8s", *options, "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    row = said["comparisons"][0]
    reached = row["high"] is not None and (row["high"] - row["low"]) / 2 <= 0.0001
    if not reached:
        assert said["experiment"]["stopped"] == "budget"
        longest_s = max(trial["wall_ns"] for trial in said["trials"][-4:]) / 1e9
        # Starting the meter once more takes a moment, too.
        assert said["experiment"]["used_s"] + longest_s + 0.5 > 8


@pytest.mark.parametrize(
    ("first", "second"), [("sleep 1.2", "sleep 1.2"), ("sleep 0.1", "sleep 5")]
)
def test_what_cannot_fit_is_refused_with_what_would(
    ensign: Ensign, first: str, second: str
) -> None:
    done = ensign("compare", first, second, "--budget", "3s")
    assert done.status == 2
    assert "--budget 3 s is too small" in done.complaint
    assert "pass --budget" in done.complaint
    assert "2 executions" in done.complaint


def test_a_server_that_cannot_fit_is_refused_after_its_first_look(
    ensign: Ensign, programs: Programs
) -> None:
    """Each and the twin are followed once and run once by turns; nobody is looked at again."""
    load = "sh -c 'echo once >> loads; sleep 1.2; : {port}'"
    server = f"{programs.server} {{port}}"
    done = ensign("compare", server, server, "--load", load, "--race-same", "--budget", "7s")
    assert done.status == 2
    assert "--budget 7 s is too small" in done.complaint
    assert "pass --budget" in done.complaint
    loads = (ensign.folder / "loads").read_text().splitlines()
    assert len(loads) <= 6


def test_a_command_that_takes_far_longer_is_not_waited_for(
    ensign: Ensign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_PATIENCE_NS", 10**9)
    done = ensign("compare", "sleep 300", "sleep 300", "--budget", "4s")
    assert done.status == 2
    assert "'sleep 300' alone takes more than 1 s" in done.complaint
    assert "8 times what it takes" in done.complaint


def test_what_is_unclear_says_what_time_would_tell(ensign: Ensign, programs: Programs) -> None:
    """Each takes one to five parts of work in turn, so that the ratios sum to nothing."""
    moody = (
        "n=$(cat {{variant}}.n 2>/dev/null || echo 0); echo $((n + 1)) > {{variant}}.n; "
        f"exec {programs.cheap} $((((n + {{}}) * 2 % 5 + 1) * 4000000))"
    )
    commands = (f"bash -c '{moody.format(0)}'", f"bash -c '{moody.format(1)}'")
    done = ensign("compare", *commands, "--budget", "6s", "--export-json", "out.json")
    assert done.status == 0, done.err
    found = json.loads((ensign.folder / "out.json").read_text())["findings"]
    (text,) = (each["text"] for each in found if each["code"] == "longer-would-tell")
    assert re.search(r"a difference of 5 % here .* --budget \d+[smh]$", text), text
