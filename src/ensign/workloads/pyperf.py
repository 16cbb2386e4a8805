"""Reader of the JSON of scripts made with pyperf. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ensign.model.errors import CommandFailed
from ensign.model.trials import NamedScore
from ensign.model.validation import first_error
from ensign.workloads.framework_text import all_scores, failed_score, named_score

FILE = "{tmp}/pyperf.json"
OPTIONS = ("--output", FILE)

_MOST = 200_000


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    metadata: dict[str, Any] = {}


class _Run(_Part):
    values: Annotated[list[float], Field(max_length=_MOST)] = []


class _Benchmark(_Part):
    runs: Annotated[list[_Run], Field(max_length=_MOST)]


class _Report(_Part):
    benchmarks: Annotated[list[_Benchmark], Field(max_length=_MOST)]


def scores(document: object) -> tuple[NamedScore, ...]:
    """One for each benchmark: the mean of all values of all its processes, in seconds.

    CommandFailed for what is no such report. What counts bytes or integers is none of it.
    """
    try:
        report = _Report.model_validate(document)
    except ValidationError as error:
        raise CommandFailed(f"no report of pyperf: {first_error(error)}") from None
    return all_scores(_scores(report))


def _scores(report: _Report) -> Iterator[NamedScore]:
    for number, benchmark in enumerate(report.benchmarks, start=1):
        metadata = {**report.metadata, **_first(benchmark), **benchmark.metadata}
        name, unit = (
            str(metadata.get("name", f"benchmark-{number}")),
            metadata.get("unit", "second"),
        )
        if unit == "second":
            yield named_score(name, (value for run in benchmark.runs for value in run.values))
        else:
            yield failed_score(name, f"its unit is '{unit}'")


def _first(benchmark: _Benchmark) -> dict[str, Any]:
    """Facts of its processes, which may be more than it says itself."""
    return benchmark.runs[0].metadata if benchmark.runs else {}
