"""Carries out races and single unmeasured runs through the meter."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ensign.meter.client import Meter
from ensign.meter.questions import ask
from ensign.meter.records import OutcomeLine, TrialPlace, asked_scores, outcome_of, trials
from ensign.meter.requests import ExecRequest, ProcessSpec, RaceRequest, exec_json, race_json
from ensign.model.trials import Trial


def race(
    meter: Meter,
    request: RaceRequest,
    *,
    workload: str = "",
    first_round: int = 0,
    names: Mapping[str, str] | None = None,
) -> Generator[Trial, None, None]:
    """Trials as they end. Closing the iterator ends the race and everything in it.

    `names` are what the user calls the variants, for messages.
    """
    asked = asked_scores(request)
    place = TrialPlace(workload, first_round, request.seed, request.slice_ns, names or {}, asked)
    with closing(meter.run("race", race_json(request))) as records:
        yield from trials(records, place)


def run_once(meter: Meter, process: ProcessSpec) -> OutcomeLine:
    """One unmeasured run. InputError where the command cannot be started."""
    with closing(meter.run("exec", exec_json(ExecRequest(process)))) as records:
        return outcome_of(records)


def observe_once(meter: Meter, process: ProcessSpec, *, digest: bool) -> OutcomeLine:
    """One unmeasured run with looks at its tasks; with `digest` all its output is hashed.

    Otherwise that flows away as in a race. InputError where the command cannot be started.
    """
    asked = ExecRequest(replace(process, digest=digest), observe=True, keep_output=digest)
    with closing(meter.run("exec", exec_json(asked))) as records:
        return outcome_of(records)


class RequestProblem(BaseModel):
    """One mistake: `path` is the JSON pointer of the wrong value in the request."""

    model_config = ConfigDict(frozen=True)

    code: str
    path: str
    text: str

    @property
    def steps(self) -> tuple[str | int, ...]:
        """The keys and indices of the pointer."""
        parts = self.path.split("/")[1:]
        return tuple(
            int(part) if part.isdigit() else part.replace("~1", "/").replace("~0", "~")
            for part in parts
        )


class _Checked(BaseModel):
    problems: tuple[RequestProblem, ...]


def check_races(
    executable: Path, requests: Sequence[RaceRequest]
) -> tuple[tuple[RequestProblem, ...], ...]:
    """Problems of each race; nothing is started. InternalError without an answer."""
    asked = [{"verb": "race", "request": race_json(request)} for request in requests]
    return tuple(answer.problems for answer in ask(executable, "check", asked, _Checked))
