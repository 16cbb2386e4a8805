"""Reader of the JSON of programs made with Google Benchmark. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ensign.model.errors import CommandFailed
from ensign.model.trials import NamedScore
from ensign.model.validation import first_error
from ensign.workloads.framework_text import all_scores, failed_score, named_score

# Where it writes what it measured, whatever else it prints.
FILE = "{tmp}/google-benchmark.json"
OPTIONS = (f"--benchmark_out={FILE}", "--benchmark_out_format=json")

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# Its own word for benchmarks that are to be judged by the time on the wall.
_AGGREGATES = ("mean", "median", "stddev", "cv", "BigO", "RMS")
_BY_WALL = ("/real_time", "/manual_time")


class _Measurement(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    run_name: str = ""
    run_type: str = ""
    aggregate_name: str = ""
    real_time: float = 0.0
    cpu_time: float = 0.0
    time_unit: str = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""

    @property
    def benchmark(self) -> str:
        return self.run_name or self.name

    @property
    def seconds(self) -> float:
        by_wall = any(part in self.benchmark for part in _BY_WALL)
        time = self.real_time if by_wall else self.cpu_time
        return time * _SECONDS.get(self.time_unit, float("nan"))


class _Report(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    benchmarks: Annotated[list[_Measurement], Field(max_length=200_000)]


def scores(document: object) -> tuple[NamedScore, ...]:
    """One for each benchmark: the mean over its repetitions, in seconds per iteration.

    That is CPU time, or wall time for `/real_time` and `/manual_time`. Where only aggregates were
    written, it is the mean among these. CommandFailed for what is no such report.
    """
    try:
        report = _Report.model_validate(document)
    except ValidationError as error:
        raise CommandFailed(f"no report of Google Benchmark: {first_error(error)}") from None
    return all_scores(_scores(report))


def _scores(report: _Report) -> Iterator[NamedScore]:
    measured: dict[str, list[_Measurement]] = {}
    means: dict[str, list[_Measurement]] = {}
    old = all(not benchmark.run_type for benchmark in report.benchmarks)
    for measurement in _told_apart(report.benchmarks) if old else report.benchmarks:
        if measurement.run_type == "aggregate":
            if measurement.aggregate_name == "mean":
                means.setdefault(measurement.benchmark, []).append(measurement)
        else:
            measured.setdefault(measurement.benchmark, []).append(measurement)
    for name, of_name in {**means, **measured}.items():
        failed = next((run for run in of_name if run.error_occurred or run.skipped), None)
        if failed is None:
            yield named_score(name, (run.seconds for run in of_name))
        else:
            reason = failed.error_message or failed.skip_message or "without a word"
            yield failed_score(name, f"it failed: {reason}")


def _told_apart(rows: Sequence[_Measurement]) -> Iterator[_Measurement]:
    """The rows of a release before 1.5 (2019), which told aggregates by the ends of names alone."""
    names = {measurement.name for measurement in rows}
    for row in rows:
        stem, _, kind = row.name.rpartition("_")
        # Without rows of their own they are there together.
        known = stem in names or {f"{stem}_mean", f"{stem}_stddev"} <= names
        if kind in _AGGREGATES and known:
            told = {"run_name": stem, "run_type": "aggregate", "aggregate_name": kind}
            yield row.model_copy(update=told)
        else:
            yield row
