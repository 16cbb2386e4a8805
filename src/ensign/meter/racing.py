"""Carries out races and single unmeasured runs through the meter."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace

from ensign.meter.client import Meter
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
