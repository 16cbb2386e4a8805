"""The ends of slices tell in which functions a program spends its time."""

from __future__ import annotations

import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path

from ensign.experiment.study.sensitivity import SampleReader
from ensign.meter.client import LocalMeter, find_meter
from ensign.meter.racing import race
from ensign.meter.requests import ProcessSpec, RaceRequest, VariantSpec
from ensign.model.trials import Mode

# Turns that are short beside a slice: its ends cannot fall in step with them.
_ROUNDS = """
__attribute__((noinline)) void seventy(void) { for (volatile int i = 0; i < 7000; i++) ; }
__attribute__((noinline)) void thirty(void) { for (volatile int i = 0; i < 3000; i++) ; }
int main(void) { for (int i = 0; i < 40000; i++) { seventy(); thirty(); } return 0; }
"""


def test_functions_of_70_and_30_percent_are_told_apart(tmp_path: Path) -> None:
    program = tmp_path / "two"
    (tmp_path / "two.c").write_text(_ROUNDS)
    subprocess.run(("gcc", "-O1", "-o", program, tmp_path / "two.c"), check=True)
    variants = tuple(VariantSpec(name, ProcessSpec((str(program),))) for name in "ab")
    request = RaceRequest(variants, Mode.INTERLEAVED, 500_000, 1, seed=1, code_samples=True)
    with closing(race(LocalMeter(find_meter()), request)) as trials:
        (trial,) = trials
    samples = [totals.code_samples for totals in trial.variants if totals.code_samples]
    assert len(samples) == len(variants)
    found = SampleReader({}).read(str(program), samples)
    own = Counter({name: found.functions["two", name] for name in ("seventy", "thirty")})
    assert own.total() > 100
    assert own.total() > 0.9 * found.functions.total()
    assert 0.55 < own["seventy"] / own.total() < 0.85
