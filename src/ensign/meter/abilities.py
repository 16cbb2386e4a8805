"""What `ensign-meter` can do on this machine, for this user: it tried, with `probe`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ensign.host.refusals import refusal
from ensign.meter.failed import ended_early
from ensign.model.errors import DeadlineMet, InternalError

_DEADLINE_S = 10.0


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
    """Ask the meter. InternalError where it does not answer.

    CommandFailed where it is killed or does not end, OSError where the system refuses to start it.
    """
    try:
        done = subprocess.run(
            [str(executable), "probe"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeadlineMet(f"{executable} probe: {error}; run it again") from None
    except OSError as error:
        if refusal(error) is not None:
            raise
        raise InternalError(f"{executable} probe: {error}") from None
    if done.returncode < 0:
        raise ended_early(done.returncode)
    return parse_abilities(done.stdout.decode(errors="replace"))


def parse_abilities(text: str) -> MeterAbilities:
    """The one JSON line of `ensign-meter probe`. InternalError where it is none. Pure."""
    try:
        line = ProbeLine.model_validate_json(text)
    except ValidationError:
        raise InternalError(f"'ensign-meter probe' said {text[:80]!r}; run 'make setup'") from None
    return MeterAbilities(line.meter, line.freezer, line.obstacle or "", line.counters)
