"""Facts on the code of functions that differ, of real programs."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ensign.explain.code_facts import SampledFunction, code_facts
from ensign.meter.client import find_meter
from ensign.meter.questions import MachineCode, disassembled, located

SOURCE = """
__attribute__((noipa)) void work(float *a, const float *b, int n)
  { for (int i = 0; i < n; i++) a[i] = a[i] * b[i] + 1.0f; }
int main(int count, char **words) { float a[64] = {0}, b[64] = {0};
  (void)words; work(a, b, 64); return (int)a[count & 63]; }
"""


def built(folder: Path, name: str, *flags: str) -> SampledFunction:
    """`work`, sampled evenly at all its instructions."""
    (folder / "w.c").write_text(SOURCE)
    program = folder / name
    subprocess.run(["gcc", *flags, "w.c", "-o", name], cwd=folder, check=True)
    said = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    at = next(int(line.split()[0], 16) for line in said.splitlines() if line.endswith(" work"))
    (place,) = located(find_meter(), {program: [at]})[program]
    assert place.size is not None
    assert place.within == 0
    code = program.read_bytes()[at : at + place.size]
    (instructions,) = disassembled(find_meter(), [MachineCode(64, 0, code)])
    samples = Counter({each.address: 10 for each in instructions})
    return SampledFunction(program, at, place.size, {at}, samples)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[SampledFunction, SampledFunction]:
    folder = tmp_path_factory.mktemp("facts")
    return built(folder, "plain", "-O2", "-fno-tree-vectorize"), built(folder, "vectors", "-O3")


def test_size_and_vectors_are_told(pair: tuple[SampledFunction, SampledFunction]) -> None:
    (facts,) = code_facts([pair])
    one, two = pair
    assert facts[0] == f"{one.size_bytes:,} bytes of code before, {two.size_bytes:,} after"
    assert any("of its time in vectors of 128 bits" in fact for fact in facts)


def test_the_same_code_has_no_facts(pair: tuple[SampledFunction, SampledFunction]) -> None:
    one, _ = pair
    assert code_facts([(one, one)]) == ((),)


def test_a_loop_that_was_moved_is_told(pair: tuple[SampledFunction, SampledFunction]) -> None:
    one, _ = pair
    samples = Counter(dict.fromkeys(range(one.size_bytes // 3, one.size_bytes), 10))
    here = SampledFunction(one.path, one.offset, one.size_bytes, {64}, samples)
    moved = SampledFunction(one.path, one.offset, one.size_bytes, {96}, samples)
    relinked = SampledFunction(one.path, one.offset, one.size_bytes, {96, 128}, samples)
    (facts,) = code_facts([(here, moved)])
    assert len(facts) == 1
    assert facts[0].startswith("its hottest loop begins at")
    assert code_facts([(here, relinked)]) == ((),)


def test_what_is_gone_or_has_no_code_has_no_facts(
    pair: tuple[SampledFunction, SampledFunction], tmp_path: Path
) -> None:
    one, _ = pair
    lost = SampledFunction(tmp_path / "none", 0, 10, {0}, Counter({1: 99}))
    assert code_facts([(one, None), (None, one), (one, lost), (None, None)]) == ((),) * 4
