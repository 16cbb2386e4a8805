"""What `ensign-meter` can do on this machine, for this user: it tried, with `probe`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ensign.host.bounded_run import Bounded, run_bounded
from ensign.meter.exit_errors import ended_early
from ensign.model.errors import DeadlineMet, InternalError

_BOUNDS = Bounded(deadline_s=10.0, most_bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class MeterAbilities:
    """`freezer` is `cgroup` or `signal`, `obstacle` why there are no control groups (or empty).

    `counters` are the names that can be counted; `version` is the meter's.
    """

    version: str
    freezer: str
    obstacle: str
    counters: tuple[str, ...]


class ProbeLine(BaseModel):
    """The meter's own words."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    meter: str
    freezer: str
    obstacle: str | None = None
    counters: tuple[str, ...] = ()


def read_abilities(executable: Path) -> MeterAbilities:
    """Ask the meter. Errors as those of `said_by`."""
    return parse_abilities(said_by(executable, "probe"))


def said_by(executable: Path, verb: str) -> str:
    """What the meter says of this machine. InternalError where it does not answer.

    CommandFailed where it is killed or does not end, OSError where the system refuses to start it.
    """
    said = run_bounded((str(executable), verb), os.environ, _BOUNDS, with_errors=False)
    if said.was_ended:
        raise DeadlineMet(f"{said.problem}; run it again")
    if said.problem:
        raise InternalError(f"{executable} {verb}: {said.problem}")
    if said.status is not None and said.status < 0:
        raise ended_early(said.status)
    return said.text


def parse_abilities(text: str) -> MeterAbilities:
    """The one JSON line of `ensign-meter probe`. InternalError where it is none. Pure."""
    try:
        line = ProbeLine.model_validate_json(text)
    except ValidationError:
        raise InternalError(f"'ensign-meter probe' said {text[:80]!r}; run 'make setup'") from None
    return MeterAbilities(line.meter, line.freezer, line.obstacle or "", line.counters)
