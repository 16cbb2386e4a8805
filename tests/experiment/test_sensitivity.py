"""Programs whose hot loop moves between relinks: what is said of them, and when nothing is."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.sensitivity import sensitivity_findings
from ensign.experiment.study.variants import VariantSet
from ensign.model.study import Study
from ensign.model.trials import TWIN, CodeSamples, Mode, SampledFile, Trial, VariantTotals
from ensign.proof.sampled_code import read_code_map

RELINKS, ROUNDS = 8, 32
SCRATCH = "/x/ensign-meter-1234567-0123456789abcdef/bin-000"
SOURCE = """
    .intel_syntax noprefix
    .text
    .p2align 12
    .skip {skip}
    .globl hot
    .type hot, @function
hot:
    .cfi_startproc
1:  .rept 17
    nop
    .endr
    dec rdi
    jne 1b
    ret
    .cfi_endproc
    .size hot, .-hot
    .p2align 6
    .globl cold
    .type cold, @function
cold:
    .cfi_startproc
    ret
    .cfi_endproc
    .size cold, .-cold
    .globl _start
    .type _start, @function
_start:
    ret
    .section .note.GNU-stack,"",@progbits
"""


def is_across(number: int) -> bool:
    """Whether a relink has its loop of 22 bytes across a line: one in two, others of the twin."""
    return bool(number % 2 if number < RELINKS else number & 2)


@pytest.fixture(scope="module")
def relinks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The last ones are the twin's."""
    made = []
    for number in range(2 * RELINKS):
        folder = tmp_path_factory.mktemp("relink")
        skip = 64 * (number + 1) + (48 if is_across(number) else 0)
        (folder / "program.s").write_text(SOURCE.format(skip=skip))
        command = (
            "gcc",
            "-nostdlib",
            "-static-pie",
            "-o",
            folder / "program",
            folder / "program.s",
        )
        subprocess.run(command, check=True)
        made.append(folder / "program")
    return tuple(made)


def places_of(program: Path) -> tuple[int, int]:
    """Where the loop and the other function lie in the file."""
    code = read_code_map(program)
    assert code is not None
    at, _, address = code.segments[0]
    hot, cold = (code.starts[code.names.index(name)] for name in ("hot", "cold"))
    return hot - address + at + 3, cold - address + at


def a_study(margin: str | None = "1%") -> Study:
    return Study.model_validate(
        {
            "name": "s",
            "source": {"kind": "path", "path": "x"},
            "build": {"commands": [["make"]], "artifact": "program"},
            "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
            "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
            "layouts": {"count": RELINKS},
            "race": {"rounds": ROUNDS, **({} if margin is None else {"margin": margin})},
            "workloads": [{"name": "w", "command": ["{artifact}"]}],
        }
    )


def raced(relinks: tuple[Path, ...]) -> VariantSet:
    """The other variant is the same program, whose relinks do not differ."""
    paths = tuple(map(str, relinks))
    still = tuple(paths[2 * number % RELINKS] for number in range(RELINKS))
    return VariantSet(
        (("base", "/b/base/program"), ("still", "/b/still/program")),
        {},
        CpuPlan((1,), (0,), (0,)),
        relinks={"base": paths[:RELINKS], "still": still, TWIN: paths[RELINKS:]},
        rotation=RELINKS,
    )


def executed(
    rng: np.random.Generator,
    variants: VariantSet,
    round_index: int,
    *,
    slower: float,
    count: int,
) -> Trial:
    """Cold code takes as long as the loop does where that lies in one line."""
    used = variants.in_round(round_index)
    artifacts = {**dict(used.artifacts), TWIN: used.twin or ""}
    totals = []
    for name, artifact in artifacts.items():
        own = variants.relinks[name].index(artifact)
        across = name != "still" and is_across(own + RELINKS * (name == TWIN))
        hot = 1 + slower * across
        cost = int(1e8 * (hot + 1) * np.exp(rng.normal(0, 0.002)))
        place, cold = places_of(Path(artifact))
        in_loop = int(rng.binomial(count, hot / (hot + 1)))
        file = SampledFile(f"{SCRATCH}/program", ((place, in_loop), (cold, count - in_loop)))
        totals.append(
            VariantTotals(
                variant=name, wall_ns=cost, cpu_ns=cost, user_ns=cost, system_ns=0, load_cpu_ns=0,
                operations=1, peak_memory_bytes=0, voluntary_switches=0, involuntary_switches=0,
                slices=count, code_samples=CodeSamples((file,)),
            )
        )  # fmt: skip
    return Trial(
        workload="w", round_index=round_index, seed=1, mode=Mode.INTERLEAVED, freezer="cgroup",
        slice_ns=5_000_000, started_unix_s=0.0, wall_ns=1, running_share=1.0,
        variants=tuple(totals), slices=(),
    )  # fmt: skip


def trials(
    variants: VariantSet, *, slower: float = 0.3, count: int = 120, rounds: int = ROUNDS
) -> list[Trial]:
    rng = np.random.default_rng(1)
    return [executed(rng, variants, n, slower=slower, count=count) for n in range(rounds)]


def test_the_function_of_slow_relinks_is_named_with_where_its_loop_lies(
    relinks: tuple[Path, ...],
) -> None:
    variants = raced(relinks)
    (found,) = sensitivity_findings(a_study(), variants, trials(variants))
    assert (found.code, found.subject) == ("layout-sensitive", "base")
    assert "of their time in hot, fast ones" in found.text
    assert "cold" not in found.text
    assert "(22 bytes, 100 % of its samples)" in found.text
    assert "crosses a line of 64 bytes in 8 of 8 slow relinks and in 0 of 8 fast" in found.text
    assert "begins at 48 and 0 modulo 64" in found.text


def test_nothing_is_said_without_a_spread_beyond_the_margin(relinks: tuple[Path, ...]) -> None:
    variants = raced(relinks)
    assert sensitivity_findings(a_study(), variants, trials(variants, slower=0.0)) == ()
    assert sensitivity_findings(a_study("20%"), variants, trials(variants)) == ()
    assert sensitivity_findings(a_study(None), variants, trials(variants))


def test_nothing_is_said_of_few_samples_or_single_executions(relinks: tuple[Path, ...]) -> None:
    variants = raced(relinks)
    assert sensitivity_findings(a_study(), variants, trials(variants, count=3)) == ()
    assert sensitivity_findings(a_study(), variants, trials(variants, rounds=RELINKS)) == ()
    assert sensitivity_findings(a_study(), replace(variants, rotation=0), trials(variants)) == ()


def test_a_spread_that_samples_do_not_show_is_not_explained(relinks: tuple[Path, ...]) -> None:
    """Costs follow the layouts, and shares do not."""
    variants = raced(relinks)
    even = [
        replace(
            trial,
            variants=tuple(
                replace(each, code_samples=even_samples(each.code_samples))
                for each in trial.variants
            ),
        )
        for trial in trials(variants)
    ]
    assert sensitivity_findings(a_study(), variants, even) == ()


def even_samples(samples: CodeSamples | None) -> CodeSamples:
    assert samples is not None
    (file,) = samples.files
    places = tuple((place, 60) for place, _ in file.places)
    return CodeSamples((replace(file, places=places),))


def test_a_kernel_that_does_not_tell_is_said_once(relinks: tuple[Path, ...]) -> None:
    variants = raced(relinks)
    untold = [
        replace(
            trial,
            variants=tuple(
                replace(each, code_samples=CodeSamples(unknown=9)) for each in trial.variants
            ),
        )
        for trial in trials(variants)
    ]
    (found,) = sensitivity_findings(a_study(), variants, untold)
    assert (found.code, found.subject) == ("places-unknown", "")
