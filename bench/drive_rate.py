"""Requests a second of `ensign-meter drive`, and what they cost it, beside redis-benchmark.

    python bench/drive_rate.py             some ten minutes; nothing else may run
    python bench/drive_rate.py --runs 3    fewer runs of each

One server on one CPU, both generators in turn on another: GET and SET, pipelines 1 and 16, 50
connections, 100000 keys with data of 32 bytes, the same bytes as redis-benchmark sends. The drive
verifies the values that it gets; redis-benchmark does not. Writes bench/results/drive.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ensign.meter.client import find_meter
from studied_programs import built_programs

STUDY = Path(__file__).parents[1] / "studies" / "redis" / "quick.toml"
RESULTS = Path(__file__).parent / "results" / "drive.json"
PROGRAM = "gcc-12-O2"
CONNECTIONS = 50
KEYS = 100_000
DATA_BYTES = 32
REQUESTS = {1: 200_000, 16: 2_000_000}
READY_WITHIN_S = 10.0


@dataclass(frozen=True)
class Target:
    """The server that runs, and what is started against it where."""

    port: int
    benchmark: str
    meter: str
    cpu: int


@dataclass(frozen=True)
class Run:
    """One run of one generator: requests per second, and its CPU time per request."""

    rate_per_s: float
    cpu_ns: float


@contextmanager
def server(program: str, cpu: int, benchmark: str, client_cpu: int) -> Iterator[Target]:
    """A Redis without persistence on a free port, ended at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        process = subprocess.Popen(
            ["taskset", "-c", str(cpu), program, *options, "--appendonly", "no", "--hz", "1"],
            stdout=subprocess.DEVNULL,
        )
        try:
            _await_port(port)
            yield Target(port, benchmark, str(find_meter()), client_cpu)
        finally:
            process.terminate()
            process.wait()


def _await_port(port: int) -> None:
    until = time.monotonic() + READY_WITHIN_S
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)) != 0:
            if time.monotonic() > until:
                raise SystemExit(f"the server did not listen within {READY_WITHIN_S:g} s")
            time.sleep(0.05)


def drive(target: Target, command: str, pipeline: int, requests: int, pattern: str) -> Run:
    """Drives the server; its values are verified."""
    keys = {"prefix": "key:", "width": 12, "last": KEYS - 1, "pattern": pattern}
    commands = {
        "get": {"argv": ["GET", "{key}"], "keys": keys, "value": True},
        "set": {"argv": ["SET", "{key}", "{data}"], "keys": keys, "reply": "status"},
    }
    request = {
        "schema": 1,
        "address": f"127.0.0.1:{target.port}",
        "drive": {
            "connections": CONNECTIONS,
            "pipeline": pipeline,
            "operations": requests,
            "data": {"size": DATA_BYTES},
            "commands": [commands[command]],
        },
    }
    output, cpu_ns = _run(target.cpu, [target.meter, "drive"], json.dumps(request))
    records = [json.loads(line) for line in output.splitlines()]
    total = next(record for record in records if record["type"] == "drive")
    return Run(requests / total["wall_ns"] * 1e9, cpu_ns / requests)


def redis_benchmark(target: Target, command: str, pipeline: int, requests: int) -> Run:
    """The same load by redis-benchmark."""
    numbers = {"-p": target.port, "-c": CONNECTIONS, "-P": pipeline, "-n": requests}
    numbers |= {"-r": KEYS, "-d": DATA_BYTES}
    options = [str(word) for pair in numbers.items() for word in pair]
    output, cpu_ns = _run(target.cpu, [target.benchmark, *options, "-t", command, "--csv"], "")
    row = next(csv.DictReader(output.splitlines()))
    return Run(float(row["rps"]), cpu_ns / requests)


def _run(cpu: int, argv: Sequence[str], text: str) -> tuple[str, int]:
    """The output of a command, and its CPU time with that of all its processes, in nanoseconds."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as output:
        given.write(text)
        given.seek(0)
        process = subprocess.Popen(
            ["taskset", "-c", str(cpu), *argv], stdin=given, stdout=output, text=True
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read()
    if process.returncode != 0:
        raise SystemExit(f"{argv[0]} failed with status {process.returncode}: {said}")
    return said, round((usage.ru_utime + usage.ru_stime) * 1e9)


def compare(target: Target, command: str, pipeline: int, runs: int) -> list[dict[str, object]]:
    """Both generators in turn, each first in every other round, each on a server filled anew."""
    requests = REQUESTS[pipeline]
    found: dict[str, list[Run]] = {"drive": [], "redis-benchmark": []}
    for number in range(runs):
        names = sorted(found, reverse=number % 2 == 1)
        for name in names:
            drive(target, "set", 16, KEYS, "parallel")
            if name == "drive":
                found[name].append(drive(target, command, pipeline, requests, "random"))
            else:
                found[name].append(redis_benchmark(target, command, pipeline, requests))
    return [_row(name, command, pipeline, each) for name, each in found.items()]


def _row(name: str, command: str, pipeline: int, runs: Sequence[Run]) -> dict[str, object]:
    rates = [run.rate_per_s for run in runs]
    costs = [run.cpu_ns for run in runs]
    return {
        "generator": name,
        "command": command,
        "pipeline": pipeline,
        "runs": len(runs),
        "rate_per_s": round(median(rates)),
        "rate_per_s_least_most": [round(min(rates)), round(max(rates))],
        "cpu_ns_per_request": round(median(costs)),
        "cpu_ns_per_request_least_most": [round(min(costs)), round(max(costs))],
    }


def main() -> None:
    """Compares, prints and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10, help="of each generator, per row")
    parser.add_argument("--server", help="a redis-server; by default the one of the quick study")
    parser.add_argument("--benchmark", help="a redis-benchmark, likewise")
    parser.add_argument("--cpus", type=int, nargs=2, default=(0, 1), help="of server and generator")
    arguments = parser.parse_args()
    program, benchmark = arguments.server, arguments.benchmark
    if program is None or benchmark is None:
        programs, tools = built_programs(STUDY, (PROGRAM,))
        program = program or programs[PROGRAM]
        benchmark = benchmark or tools["redis-benchmark"]
    server_cpu, client_cpu = arguments.cpus
    rows: list[dict[str, object]] = []
    with server(program, server_cpu, benchmark, client_cpu) as target:
        for command in ("get", "set"):
            for pipeline in REQUESTS:
                pair = compare(target, command, pipeline, arguments.runs)
                rows += pair
                for row in pair:
                    sys.stdout.write(f"{json.dumps(row)}\n")
                    sys.stdout.flush()
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
