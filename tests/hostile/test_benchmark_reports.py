"""Programs whose figures mean harm: one clear line, within limits, and others are not touched."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from ensign.host.regular_file import read_json
from ensign.meter.client import LocalMeter
from ensign.meter.racing import race
from ensign.meter.requests import NamedPattern, ProcessSpec, RaceRequest, Report, VariantSpec
from ensign.model.errors import CommandFailed
from ensign.model.trials import Mode, NamedScore, Score, Trial
from ensign.workloads import google_benchmark

GOOD = '{"benchmarks": [{"name": "BM_a", "cpu_time": 2, "real_time": 2}]}'
_FILE = "{tmp}/report.json"
_DEADLINE_NS = 60 * 10**9


def _read(text: str) -> tuple[NamedScore, ...]:
    try:
        return google_benchmark.scores(read_json(text))
    except ValueError:
        raise CommandFailed("its report is no JSON") from None


def _variant(name: str, script: str, report: Report | None, *patterns: str) -> VariantSpec:
    named = tuple(NamedPattern("", Score(each)) for each in patterns)
    argv = ("sh", "-c", script, "sh", _FILE)
    program = ProcessSpec(argv, deadline_ns=_DEADLINE_NS)
    return VariantSpec(name, program, copy_program=False, scores=named, report=report)


def _raced(*variants: VariantSpec) -> Trial:
    request = RaceRequest(variants, Mode.ALTERNATING, 10**6, 1, 1)
    with closing(race(LocalMeter(), request)) as trials:
        return next(trials)


def _beside_a_good_one(script: str) -> tuple[Trial, str]:
    """What a run beside a good one left, and the line that its failure is."""
    report = Report(_FILE, _read)
    trial = _raced(
        _variant("good", f"printf '%s' '{GOOD}' > \"$1\"", report), _variant("bad", script, report)
    )
    assert [each.variant for each in trial.variants] == ["good"]
    (failure,) = trial.failures
    assert failure.variant == "bad"
    assert failure.text.isprintable()
    return trial, failure.text


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (":", "its report '{tmp}/report.json' is missing"),
        ('mkdir "$1"', "its report"),
        ('mkfifo "$1"', "its report"),
        ('ln -s /etc/passwd "$1"', "its report"),
        ('head -c 5000000 /dev/zero > "$1"', "more than 4 MiB"),
        ('head -c 100000 /dev/zero | tr "\\0" "[" > "$1"', "no JSON"),
        ('printf "\\377\\000" > "$1"', "no JSON"),
        ('echo "{\\"benchmarks\\": 3}" > "$1"', "no report of Google Benchmark"),
        ('echo "{\\"benchmarks\\": [{\\"name\\": \\"a\\"}]}" > "$1"', "says nothing of its speed"),
    ],
    ids=["missing", "folder", "pipe", "link", "large", "deep", "binary", "other", "no-time"],
)
def test_a_report_that_is_none_fails_its_variant_alone(script: str, why: str) -> None:
    _, said = _beside_a_good_one(script)
    assert why in said


def test_a_link_shows_nothing_of_where_it_leads(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"benchmarks": [{"name": "key-4711", "cpu_time": 1}]}))
    trial, said = _beside_a_good_one(f'ln -s {secret} "$1"')
    assert "4711" not in said + repr(trial)


def test_names_that_are_printed_command_nothing_and_are_bounded() -> None:
    script = r"""
    printf '\033[2J\033]0;owned\007 1\n'
    awk 'BEGIN { for (i = 0; i < 30000; i++) print "n" i " " i + 1 }'
    """
    pattern = r"(?m)^(?P<name>\S+) (?P<value>\d+)$"
    scores = _raced(_variant("loud", script, None, pattern)).variants[0].scores
    assert 1 < len(scores) <= 10_000
    assert all(each.name.isprintable() for each in scores)
