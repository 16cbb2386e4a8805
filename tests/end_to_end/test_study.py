"""`ensign run` and its relatives on a small study with real builds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from end_to_end.conftest import Ensign, Line
from end_to_end.small_study import BATCH, SERVER, write_study

MORE = '\n[[include]]\noptimization = "-O0"\n'


def results(ensign: Ensign, *options: str) -> dict[str, list[dict[str, Any]]]:
    done = ensign("report", "study.toml", "--json", "-", *options)
    assert done.status == 0, done.err
    parsed: dict[str, list[dict[str, Any]]] = json.loads(done.out)
    return parsed


def trials(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.glob(".ensign/*/trials/*/*.csv.gz")}


def test_a_study_from_source_to_report(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH + MORE)
    planned = ensign("plan", "study.toml")
    assert planned.status == 0, planned.err
    for word in ("gcc-12-O1", "gcc-12-O2", "gcc-12-O0", "short", "long"):
        assert word in planned.out
    assert not (ensign.folder / ".ensign").exists()

    done = ensign.end(ensign.start("run", "study.toml", COLUMNS="60"))
    assert done.status == 0, done.err
    assert "\x1b" not in done.out + done.err
    # The path of the page is told whole, however long.
    assert max(len(line) for line in done.out.splitlines() if "Report: " not in line) <= 60
    assert len(trials(ensign.folder)) == 6

    said = results(ensign)
    judged = {"withheld": type(None), "correlation": type(None), "other_metric": dict}
    suite = {
        "variant": str, "ratio": float, "low": float, "high": float, "level": float,
        "direction": str, "size": str, "workloads": int, "within_layout_spread": type(None),
        "non_inferior": bool, "not_shown": list, **judged,
    }  # fmt: skip
    assert [entry["variant"] for entry in said["suite"]] == ["gcc-12-O2", "gcc-12-O0", "twin"]
    for entry in said["suite"]:
        assert {key: type(value) for key, value in entry.items()} == suite
    workload = {
        "workload": str, "variant": str, "metric": str, "ratio": float, "low": float,
        "high": float, "direction": str, "size": str, "executions": int,
        "within_layout_spread": type(None), "baseline_cost_ns": float, "variant_cost_ns": float,
        "baseline_score": type(None), "variant_score": type(None), "unit": str,
        "user_share": float, **judged,
    }  # fmt: skip
    assert len(said["workloads"]) == 6
    for entry in said["workloads"]:
        assert {key: type(value) for key, value in entry.items()} == workload
    assert [build["status"] for build in said["builds"]] == ["built"] * 3
    assert all(set(finding) >= {"code", "severity", "text"} for finding in said["findings"])


def test_a_second_run_does_nothing_again(ensign: Ensign, measured: Path) -> None:
    before = {path: (measured.parent / path).stat().st_mtime_ns for path in trials(measured.parent)}
    again = ensign("run", "study.toml")
    assert again.status == 0, again.err
    # Two builds and their checks.
    assert again.err.count("already there") == 4
    for path, changed_ns in before.items():
        assert (measured.parent / path).stat().st_mtime_ns == changed_ns


def test_the_page_is_drawn_again_only_where_it_says_something_else(
    ensign: Ensign, measured: Path
) -> None:
    (page,) = ensign.folder.glob(".ensign/*/report.html")
    first = page.read_text()
    page.write_text(f"{first}<!-- kept -->")
    assert ensign("run", "study.toml").status == 0
    assert "<!-- kept -->" in page.read_text()
    measured.write_text(
        measured.read_text().replace('name = "small"', 'name = "small"\ntitle = "T"')
    )
    assert ensign("run", "study.toml").status == 0
    assert "<h1>T</h1>" in page.read_text()
    page.unlink()
    assert ensign("run", "study.toml").status == 0
    assert page.exists()


def test_servers_and_their_load(ensign: Ensign) -> None:
    write_study(ensign.folder, SERVER)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert len(trials(ensign.folder)) == 3
    said = results(ensign)
    assert [entry["metric"] for entry in said["workloads"]] == ["cpu", "cpu"]


def test_a_named_workload_alone(ensign: Ensign, measured: Path) -> None:
    whole = trials(measured.parent)
    done = ensign("run", "study.toml", "--workload", "long")
    assert done.status == 0, done.err
    assert {entry["workload"] for entry in results(ensign)["workloads"]} == {"long"}
    # Another budget per workload: none of the earlier trials may be mixed in.
    assert len(trials(measured.parent) - whole) == 3


def test_equal_variants_are_measured_once(ensign: Ensign) -> None:
    write_study(
        ensign.folder,
        BATCH,
        ('"-O1", "-O2"]', '"-O1", "-O2"]\nflags = ["", "-Wall"]'),
        ("[baseline]", '[baseline]\nflags = ""'),
    )  # fmt: skip
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    assert [build["status"] for build in said["builds"]] == ["built", "same", "built", "same"]
    same_as = [build.get("same_as") for build in said["builds"]]
    assert same_as == [None, "gcc-12-O1", None, "gcc-12-O2"]
    assert [entry["variant"] for entry in said["suite"]] == ["gcc-12-O2", "twin"]


def test_a_study_of_one_variant_is_the_baseline_against_its_twin(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, ('"-O1", "-O2"]', '"-O1"]'))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "No variant was compared" in done.said
    assert [entry["variant"] for entry in results(ensign)["suite"]] == ["twin"]


def test_paths_start_at_the_study(ensign: Ensign) -> None:
    (ensign.folder / "deep").mkdir()
    write_study(
        ensign.folder / "deep",
        BATCH,
        ('command = ["{artifact}", "1000000"]', 'command = ["./twice.sh", "{artifact}"]'),
    )
    script = ensign.folder / "deep" / "twice.sh"
    script.write_text("#!/bin/sh\n$1 1000000 && $1 1000000\n")
    script.chmod(0o755)
    done = ensign("run", "deep/study.toml")
    assert done.status == 0, done.err
    assert len(trials(ensign.folder / "deep")) == 6


@pytest.mark.parametrize("option", ["--json", "--csv", "--markdown", "--html"])
@pytest.mark.usefixtures("measured")
def test_a_report_that_cannot_be_written(complaint: Line, option: str) -> None:
    assert "does not exist" in complaint(f"report study.toml {option} no/folder/file")
    assert "it is a folder" in complaint(f"report study.toml {option} .")


def test_a_report_after_a_workload_was_renamed(complaint: Line, measured: Path) -> None:
    measured.write_text(measured.read_text().replace('name = "short"', 'name = "brief"'))
    assert "no longer has the workload short" in complaint("report study.toml")


def test_a_damaged_record_is_written_anew(ensign: Ensign, complaint: Line, measured: Path) -> None:
    record = measured.parent / ".ensign" / "small" / "study.json"
    record.write_text("{}")
    assert "run the study again" in complaint("report study.toml")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert len(trials(measured.parent)) == 6


def test_a_damaged_trial_is_named_and_raced_again(
    ensign: Ensign, complaint: Line, measured: Path
) -> None:
    path = measured.parent / min(trials(measured.parent))
    path.write_bytes(path.read_bytes()[:100])
    (path.parent / ".0000-short.csv.gz.0123456789ab.part").write_bytes(b"half")
    assert path.name in complaint("report study.toml")
    path.unlink()
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert len(trials(measured.parent)) == 6
    assert list(path.parent.glob(".*")) == []
