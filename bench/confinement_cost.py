"""What confinement costs: how much longer a confined `true` takes than a bare one.

    python bench/confinement_cost.py              half a minute; nothing else should run
    python bench/confinement_cost.py --runs 20    so many of each

Results: bench/results/confinement_cost.json. Both are started in turn; the median of the
differences is to be at most 20 ms for a started process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import Confinement, probe_confinement
from ensign.meter.client import LocalMeter, find_meter
from ensign.meter.processes import MeterProcesses

_RESULTS = Path(__file__).parent / "results/confinement_cost.json"
_MOST_MS = 20.0


def main() -> int:
    """Measure, write the results, say them; 0 where starting is within its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    confinement = probe_confinement(MeterProcesses(LocalMeter()), os.environ, find_meter())
    if not confinement.works:
        print(confinement.said)
        return 1
    found = start_cost(confinement, runs)
    _RESULTS.parent.mkdir(exist_ok=True)
    _RESULTS.write_text(json.dumps({"said": confinement.said, "start": found}, indent=1) + "\n")
    print(f"a confined process starts {found['median_ms']:.1f} ms later (median of {runs})")
    return 0 if found["median_ms"] <= _MOST_MS else 1


def start_cost(confinement: Confinement, runs: int) -> dict[str, float]:
    """By how much a confined `true` takes longer, in milliseconds; what is shown is a build's."""
    request = ConfinementRequest(
        os.environ.get("PATH", os.defpath), os.environ.get("HOME", ""), read=(find_meter(),)
    )
    argv = (*confinement.argv(request), "true")
    differences = []
    for _ in range(runs):
        bare_ms, confined_ms = timed_ms(("true",)), timed_ms(argv)
        differences.append(confined_ms - bare_ms)
    ordered = sorted(differences)
    return {
        "runs": runs,
        "median_ms": statistics.median(ordered),
        "p95_ms": ordered[int(0.95 * (runs - 1))],
        "mounts": sum(word in ("--ro-bind", "--bind", "--tmpfs") for word in argv),
    }


def timed_ms(argv: Sequence[str]) -> float:
    """How long a command takes from before its start to its end."""
    start_ns = time.monotonic_ns()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic_ns() - start_ns) / 1e6


if __name__ == "__main__":
    sys.exit(main())
