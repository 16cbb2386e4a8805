"""What a sink costs a program that writes: CPU and wall time of writers into each of them.

Run on a quiet machine: `.venv/bin/python bench/sinks.py [RUNS]`. Prints a table: medians over the
runs, and the spread (interquartile range over median).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

from ensign.meter.client import LocalMeter
from ensign.meter.racing import race
from ensign.meter.requests import ProcessSpec, RaceRequest, Sink, VariantSpec
from ensign.model.trials import Mode

_WRITERS = {
    "much at a time": ("head", "-c", "300M", "/dev/zero"),
    "line by line": (sys.executable, "-c", "for i in range(400000): print(i, flush=True)"),
    "little": (sys.executable, "-c", "print(sum(range(3000000)))"),
}


def main() -> None:
    """Writes the table to standard output."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print(f"{'writer':16} {'sink':8} {'CPU ms':>8} {'±':>6} {'wall ms':>8} {'±':>6}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for writer, argv in _WRITERS.items():
            sinks = {
                "null": ProcessSpec(argv, sink=Sink.NULL),
                "pipe": ProcessSpec(argv),
                "memory": ProcessSpec(argv, stdout=str(Path(memory, "{variant}"))),
            }
            variants = tuple(VariantSpec(name, process) for name, process in sinks.items())
            for mode in (Mode.ALTERNATING, Mode.INTERLEAVED):
                request = RaceRequest(variants, mode, 5_000_000, runs, seed=1)
                trials = list(race(LocalMeter(), request))
                for name in sinks:
                    totals = [trial.variant(name) for trial in trials]
                    cpu = _shown([each.cpu_ns / 1e6 for each in totals])
                    wall = _shown([each.wall_ns / 1e6 for each in totals])
                    print(f"{writer:16} {name:8} {cpu} {wall}  {mode}")


def _shown(values: list[float]) -> str:
    low, _, high = quantiles(values, n=4)
    return f"{median(values):8.2f} {(high - low) / median(values):6.1%}"


if __name__ == "__main__":
    main()
