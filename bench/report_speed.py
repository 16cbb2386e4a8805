"""Time and peak memory of `ensign report` on a large study, made up from a seed.

python bench/report_speed.py                # 50 workloads × 26 variants × 16 rounds × 200 slices
python bench/report_speed.py --folder big   # keeps the study, and uses it again
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ensign.experiment.record import Record
from ensign.experiment.study.record import write_record
from ensign.experiment.study_file import read_study
from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.results import MachineFacts
from ensign.model.trials import TWIN, Mode, SliceRecord, Trial, VariantTotals
from ensign.store.folder import StudyFolder
from ensign.variants.expand import expand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.model.variants import Variant

LIMIT_S, LIMIT_BYTES = 10.0, 2 * 2**30
SLICE_NS = 5_000_000
KEY = "invented"
KINDS = ("terminal", "html", "markdown", "csv", "json")
# 3 × 2 × 2 × 2 builds and one more; with the twin 26 variants.
STUDY = """
name = "large"
[source]
kind = "path"
path = "."
[build]
commands = [["true"]]
artifact = "program"
[axes]
compiler = ["gcc-12", "gcc-11", "clang-19"]
optimization = ["-O2", "-O3"]
lto = ["off", "full"]
plt = ["default", "off"]
[[include]]
compiler = "clang-19"
optimization = "-O3"
floating_point = "fast"
[baseline]
compiler = "gcc-12"
optimization = "-O2"
lto = "off"
plt = "default"
[race]
margin = "1%"
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the study is; `slices` are those of one variant in one execution."""

    workloads: int
    rounds: int
    slices: int


@dataclass(frozen=True, slots=True)
class Used:
    """What one report took; CPU time tells a slow report from a busy machine."""

    wall_s: float
    cpu_s: float
    peak_bytes: int

    @property
    def is_within(self) -> bool:
        """Whether it kept both limits."""
        return self.wall_s <= LIMIT_S and self.peak_bytes <= LIMIT_BYTES


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workloads", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--slices", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reports", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args(argv)
    size = Size(options.workloads, options.rounds, options.slices)
    with tempfile.TemporaryDirectory() as spare:
        folder = options.folder or Path(spare)
        study = folder / "large.toml"
        if not study.exists():
            make_study(study, size, options.seed)
        print(f"| report | wall s | CPU s | peak MiB | within {LIMIT_S:.0f} s and 2 GiB |")
        print("| --- | --- | --- | --- | --- |")
        for kind in options.reports:
            used = report(study, kind)
            print(
                f"| {kind} | {used.wall_s:.1f} | {used.cpu_s:.1f} "
                f"| {used.peak_bytes / 2**20:.0f} | {'yes' if used.is_within else 'no'} |"
            )


def make_study(path: Path, size: Size, seed: int) -> None:
    """Writes a study file and a results folder as a finished run leaves it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [f"workload-{index}" for index in range(size.workloads)]
    tables = [f'[[workloads]]\nname = "{name}"\ncommand = ["{{artifact}}"]\n' for name in names]
    path.write_text(f"{STUDY}rounds = {size.rounds}\n{''.join(tables)}", encoding="utf-8")
    study = read_study(path).study
    variants = expand(study)
    folder = StudyFolder.beside(path, study.name)
    rng = np.random.default_rng(seed)
    raced = (*(variant.name for variant in variants), TWIN)
    effects = np.append(np.linspace(0, -0.1, len(variants)), 0.0)
    for round_index in range(size.rounds):
        for name in names:
            costs_ns = 1e9 * np.exp(effects + rng.normal(0, 0.005, len(raced)))
            folder.write_trial(KEY, trial((name, round_index), raced, costs_ns, size.slices))
    write_record(folder, record(variants, size.rounds, tuple(names)))


def trial(
    place: tuple[str, int], variants: Sequence[str], costs_ns: np.ndarray, slices: int
) -> Trial:
    """One execution of one workload; variants take turns, slice by slice."""
    turns = tuple(
        SliceRecord(
            variant,
            (turn * len(variants) + index) * SLICE_NS,
            SLICE_NS,
            SLICE_NS - 1000,
            0,
            filler=False,
        )
        for turn in range(slices)
        for index, variant in enumerate(variants)
    )
    totals = tuple(
        VariantTotals(variant, int(cost), int(cost), int(cost * 0.7), int(cost * 0.3), 0, 1,
                  2**24, 5, 9, slices)
        for variant, cost in zip(variants, costs_ns, strict=True)
    )  # fmt: skip
    workload, round_index = place
    return Trial(
        workload, round_index, 1, Mode.INTERLEAVED, "cgroup", SLICE_NS, 1.7e9, int(costs_ns.sum()),
        0.98, totals, turns,
    )  # fmt: skip


def record(variants: Sequence[Variant], rounds: int, workloads: tuple[str, ...]) -> Record:
    """What a run would have written beside its trials."""
    builds = tuple(
        BuildFacts(
            variant=variant.name, choices=variant.choices, compiler=variant.compiler,
            flags=(variant.optimization,), link_flags=(), status=BuildStatus.BUILT,
            build_s=30.0 + index,
            size_bytes=7_000_000 + 1000 * index, text_bytes=2_000_000, loadable_sha256=variant.name,
        )
        for index, variant in enumerate(variants)
    )  # fmt: skip
    return Record(
        key=KEY, raced=tuple(variant.name for variant in variants), rounds_planned=rounds,
        builds=builds, machine=MachineFacts((("CPU", "invented"),)), findings=(),
        commands=tuple((name, "program") for name in workloads), toolchains=(), source=(),
        version="0", made_at="now", complete=True, workloads=workloads,
    )  # fmt: skip


def report(study: Path, kind: str) -> Used:
    """One report, in a process of its own."""
    asked = [] if kind == "terminal" else [f"--{kind}", str(study.with_name(f"report.{kind}"))]
    program = Path(sys.executable).with_name("ensign")
    start = time.perf_counter()
    with subprocess.Popen([program, "report", study, *asked], stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"the {kind} report failed"
    wall_s = time.perf_counter() - start
    return Used(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


if __name__ == "__main__":
    main()
