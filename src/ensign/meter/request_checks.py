"""What the meter would refuse in requests, asked before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ensign.meter.questions import ask
from ensign.meter.requests import RaceRequest, race_json


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
