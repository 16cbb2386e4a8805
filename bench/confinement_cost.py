"""What confinement costs: at the start of a process, and in what a race says.

    python bench/confinement_cost.py              under six minutes; nothing else should run
    python bench/confinement_cost.py --runs 20 --rounds 2    so many starts and rounds

Results: bench/results/confinement_cost.json. A bare and a confined `true` are started in turn; the
median of the differences is to be at most 20 ms. gzip is raced against itself and against 4 % more
work, with and without confinement in turn: both ratios are to agree within 0.3 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ensign.experiment.confinement import ProgramRules, Sandboxed
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import Confinement, probe_confinement
from ensign.meter.client import LocalMeter, find_meter
from ensign.meter.processes import MeterProcesses

_RESULTS = Path(__file__).parent / "results/confinement_cost.json"
_MOST_MS = 20.0
_MOST_MOVED = 0.003
_EXECUTIONS = 4


def main() -> int:
    """Measure, write the results, say them; 0 where starting is within its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    runs = asked.runs
    confinement = probe_confinement(MeterProcesses(LocalMeter()), os.environ, find_meter())
    if not confinement.works:
        print(confinement.said)
        return 1
    found = start_cost(confinement, runs)
    ratios = race_ratios(confinement, asked.rounds)
    _RESULTS.parent.mkdir(exist_ok=True)
    results = {"said": confinement.said, "start": found, "ratios": ratios}
    _RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"a confined process starts {found['median_ms']:.1f} ms later (median of {runs})")
    moved = max(abs(each["confined"] / each["bare"] - 1) for each in ratios.values())
    for name, each in ratios.items():
        print(f"{name}: ratio {each['bare']:.4f} bare, {each['confined']:.4f} confined")
    return 0 if found["median_ms"] <= _MOST_MS and moved <= _MOST_MOVED else 1


def race_ratios(confinement: Confinement, rounds: int) -> dict[str, dict[str, float]]:
    """CPU time over the baseline's, of the same work and of more, bare and confined."""
    with tempfile.TemporaryDirectory(prefix="ensign-tmp-") as folder:
        base, more = Path(folder, "base"), Path(folder, "more")
        text = "".join(f"{number * number} {number}\n" for number in range(500_000))
        base.write_text(text[: len(text) * 24 // 25])
        more.write_text(text)
        Path(folder).chmod(0o755)
        rules = ProgramRules(read=(base, more))
        meters = {
            "bare": LocalMeter(),
            "confined": LocalMeter(surroundings=Sandboxed(confinement, os.environ, rules)),
        }
        request = _request(str(base), str(more))
        logs: dict[str, dict[str, list[float]]] = {"same work": {}, "more work": {}}
        for seed in range(rounds):
            for place, meter in meters.items():
                cpu_ns = _raced(meter, {**request, "seed": seed})
                for name, found in logs.items():
                    cost = math.log(cpu_ns[name] / cpu_ns["base"])
                    found.setdefault(place, []).append(cost)
    return {
        name: {place: math.exp(statistics.fmean(costs)) for place, costs in each.items()}
        for name, each in logs.items()
    }


def _request(base: str, more: str) -> dict[str, object]:
    files = {"base": base, "same work": base, "more work": more}
    variants = [
        {"name": name, "program": {"argv": ["gzip", "-6", "-c"], "stdin": path}}
        for name, path in files.items()
    ]
    return {"schema": 1, "executions": _EXECUTIONS, "variants": variants}


def _raced(meter: LocalMeter, request: Mapping[str, object]) -> dict[str, float]:
    """Total CPU time of each variant, ns."""
    totals: dict[str, float] = {}
    for record in meter.run("race", request):
        if record["type"] == "error":
            raise SystemExit(str(record["text"]))
        if record["type"] == "variant":
            name, cpu_ns = str(record["variant"]), float(str(record["cpu_ns"]))
            totals[name] = totals.get(name, 0) + cpu_ns
    return totals


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
