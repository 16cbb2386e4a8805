"""Noise of this machine: two seconds of one program racing itself."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ensign.host.temporary import temporary_folder
from ensign.host.topology import CpuChoice
from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.meter.requests import ProcessSpec, RaceRequest, VariantSpec
from ensign.model.errors import CommandFailed, InputError, InternalError
from ensign.model.trials import BASELINE, TWIN, Metric, Mode, Trial
from ensign.stats.pair import PairRule, Rule, half_width, log_interval
from ensign.stats.trials import log_ratios

_BUDGET_NS = 2 * 10**9
_SLICE_NS = 5_000_000
_MOST_EXECUTIONS = 100
_FEWEST_EXECUTIONS = 5
_DEADLINE_NS = 10 * 10**9
_DATA_BYTES = 1_000_000
_WORDS = 5000


@dataclass(frozen=True, slots=True)
class Noise:
    """Outcome of the race. `trouble` is why there is no number, else empty.

    `half_width` is a share (0.005 for ±0.5 %) of the 95 % interval after `executions` executions
    in two seconds; `excludes_1` whether two copies of one program seemed to differ;
    `running_share` the share of the time in which a copy was running.
    """

    trouble: str = ""
    executions: int = 0
    half_width: float = 0.0
    excludes_1: bool = False
    running_share: float = 0.0


def measure_noise(meter: Meter, program: str, cpus: CpuChoice) -> Noise:
    """Race `program -6 -c FILE` against itself for two seconds."""
    with _data() as path:
        request = race_request((program, "-6", "-c", str(path)), cpus)
        try:
            with closing(race(meter, request)) as trials:
                finished = tuple(trials)
        except (CommandFailed, InputError, InternalError) as error:
            return Noise(trouble=str(error))
    return noise_of(finished)


def race_request(argv: tuple[str, ...], cpus: CpuChoice) -> RaceRequest:
    """Two seconds of one command as baseline and twin, on the default CPUs. Pure."""
    process = ProcessSpec(argv=argv, cpus=cpus.variants, deadline_ns=_DEADLINE_NS)
    return RaceRequest(
        variants=(VariantSpec(BASELINE, process), VariantSpec(TWIN, process)),
        mode=Mode.INTERLEAVED,
        slice_ns=_SLICE_NS,
        executions=_MOST_EXECUTIONS,
        seed=1,
        meter_cpus=cpus.meter,
        budget_ns=_BUDGET_NS,
    )


def noise_of(finished: Sequence[Trial]) -> Noise:
    """Noise by the trials of an A/A race, by CPU time. Pure."""
    if len(finished) < _FEWEST_EXECUTIONS:
        text = f"only {len(finished)} executions in two seconds"
        return Noise(text, len(finished))
    # Nobody looks before the end.
    rule = PairRule(rule=Rule.T)
    interval = log_interval(log_ratios(finished, TWIN, BASELINE, Metric.CPU), rule)
    return Noise(
        executions=len(finished),
        half_width=half_width(interval),
        excludes_1=interval.low > 0 or interval.high < 0,
        running_share=sum(trial.running_share for trial in finished) / len(finished),
    )


@contextmanager
def _data() -> Iterator[Path]:
    """A file that takes gzip some tens of milliseconds; the same bytes everywhere."""
    chance = random.Random(1)  # noqa: S311  # data, not secrets
    words = [chance.randbytes(chance.randint(2, 9)).hex().encode() for _ in range(_WORDS)]
    text = b" ".join(chance.choices(words, k=_DATA_BYTES // 11))
    with temporary_folder("doctor") as folder:
        file = folder / "data"
        file.write_bytes(text)
        yield file
