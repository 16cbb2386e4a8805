"""Facts on the code of functions that differ, of real programs."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.explain.code_facts import CodeDifference, SampledFunction, code_differences
from ensign.meter.client import find_meter
from ensign.meter.questions import MachineCode, disassembled, located

SOURCE = """
__attribute__((noipa)) void work(float *a, const float *b, int n)
  { for (int i = 0; i < n; i++) a[i] = a[i] * b[i] + 1.0f; }
int main(int count, char **words) { float a[64] = {0}, b[64] = {0};
  (void)words; work(a, b, 64); return (int)a[count & 63]; }
"""


SAME = "the same instructions before and after: other data, another place, or more calls"


def built(folder: Path, name: str, *flags: str, source: str = SOURCE) -> SampledFunction:
    """`work`, sampled evenly at all its instructions."""
    (folder / "w.c").write_text(source)
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
    (found,) = code_differences([pair])
    one, two = pair
    facts = found.facts
    assert facts[0] == f"{one.size_bytes:,} bytes of code before, {two.size_bytes:,} after"
    assert any("of its time in vectors of 128 bits" in fact for fact in facts)


def test_the_same_code_at_another_place_is_told(tmp_path: Path) -> None:
    # Of two programs: other code before it, and calls and data elsewhere.
    text = """
    int counts[64]; __attribute__((noipa)) int other(int n) { return n + 1; }
    __attribute__((noipa)) int work(int n) { int sum = 0;
      for (int i = 0; i < n; i++) sum += other(counts[i & 63]); return sum; }
    int main(int count, char **words) { (void)words; return work(count); }
    """
    more = "int before[99] = {1}; __attribute__((noipa)) int first(int n) { return before[n] * 3; }"
    here = built(tmp_path, "here", "-O2", source=text)
    there = built(tmp_path, "there", "-O2", source=more + text)
    other = built(tmp_path, "other", "-O2", source=text.replace("sum +=", "sum -="))
    (moved,), (changed,) = code_differences([(here, there)]), code_differences([(here, other)])
    assert moved.facts[0] == SAME
    assert (moved.same, changed.same) == (True, False)
    assert SAME not in changed.facts


def test_the_hottest_loop_of_each_side_is_listed(
    pair: tuple[SampledFunction, SampledFunction],
) -> None:
    (found,) = code_differences([pair])
    plain, vectors = found.code
    assert any(line.text.startswith("mulss") for line in plain)
    assert any(line.text.startswith("mulps") for line in vectors)
    assert sum(line.share for line in plain) == pytest.approx(1, abs=0.5)
    assert all(line.share <= 1 for line in (*plain, *vectors))
    assert [line.offset for line in plain] == sorted(line.offset for line in plain)
    few = replace(pair[0], samples=Counter({0: 3}))
    assert code_differences([(few, None)])[0].code == ((), ())


def test_a_long_loop_is_listed_around_its_hottest_instruction(tmp_path: Path) -> None:
    steps = "".join(f"a[i] = a[i] * {n}.5f + b[i];" for n in range(60))
    text = SOURCE.replace("a[i] = a[i] * b[i] + 1.0f;", f"{{ {steps} }}")
    one = built(tmp_path, "long", "-O1", source=text)
    hot = sorted(one.samples)[len(one.samples) // 2]
    one.samples[hot] += 1000
    ((before, _),) = (found.code for found in code_differences([(one, None)]))
    assert len(before) == 32
    assert max(before, key=lambda line: line.share).offset == hot


def test_a_loop_that_was_moved_is_told(pair: tuple[SampledFunction, SampledFunction]) -> None:
    one, _ = pair
    samples = Counter(dict.fromkeys(range(one.size_bytes // 3, one.size_bytes), 10))
    here = SampledFunction(one.path, one.offset, one.size_bytes, {64}, samples)
    moved = SampledFunction(one.path, one.offset, one.size_bytes, {96}, samples)
    relinked = SampledFunction(one.path, one.offset, one.size_bytes, {96, 128}, samples)
    (found,) = code_differences([(here, moved)])
    assert found.facts[0] == SAME
    assert found.facts[1].startswith("its hottest loop begins at")
    assert code_differences([(here, relinked)])[0].facts == (SAME,)


def test_what_is_gone_or_has_no_code_has_no_facts(
    pair: tuple[SampledFunction, SampledFunction], tmp_path: Path
) -> None:
    one, _ = pair
    lost = SampledFunction(tmp_path / "none", 0, 10, {0}, Counter({1: 99}))
    found = code_differences([(one, None), (None, one), (one, lost), (None, None)])
    assert [each.facts for each in found] == [()] * 4
    assert found[0].code[0]
    assert found[3] == CodeDifference()


def test_the_same_loop_after_other_code_is_told_by_its_places(tmp_path: Path) -> None:
    text = """
    __attribute__((noipa)) unsigned long work(unsigned long n) {
      __asm__ volatile(".p2align 6\\n .nops SKEW\\n 1: xor $9, %0\\n dec %0\\n STEP %0\\n jnz 1b"
                       : "+r"(n)); return n; }
    int main(int count, char **words) { (void)words; return count > 9 && work(count); }
    """

    def skewed(skew: int, step: str = "dec") -> SampledFunction:
        source = text.replace("SKEW", str(skew)).replace("STEP", step)
        found = built(tmp_path, f"skewed-{skew}-{step}", "-O2", source=source)
        hot = sorted(found.samples)[-6:]  # the loop, and what returns
        return replace(found, samples=Counter(dict.fromkeys(hot, 100)))

    aligned, moved, other = skewed(0), skewed(40), skewed(40, "inc")
    found, changed, still = code_differences(
        [(aligned, moved), (aligned, other), (aligned, aligned)]
    )
    assert found.same
    assert found.loop_starts is not None
    assert (found.loop_starts[1] - found.loop_starts[0]) % 64 == 40
    assert (changed.same, changed.loop_starts) == (False, None)
    assert still.loop_starts is None
