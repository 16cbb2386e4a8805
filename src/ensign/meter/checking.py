"""What the meter would refuse of requests, found before any of them is carried out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ensign.meter.documents import race_json
from ensign.meter.requests import RaceRequest
from ensign.model.errors import InternalError

_DEADLINE_S = 60.0


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


class _Answer(BaseModel):
    problems: tuple[RequestProblem, ...]


def check_races(
    executable: Path, requests: Sequence[RaceRequest]
) -> tuple[tuple[RequestProblem, ...], ...]:
    """What is wrong with each race; nothing is started. InternalError without an answer."""
    asked = [json.dumps({"verb": "race", "request": race_json(each)}) for each in requests]
    try:
        done = subprocess.run(
            [str(executable), "check"],
            input="".join(f"{line}\n" for line in asked).encode(),
            capture_output=True,
            timeout=_DEADLINE_S,
            check=False,
        )
        answers = [_Answer.model_validate_json(line) for line in done.stdout.splitlines()]
    except (OSError, subprocess.TimeoutExpired, ValidationError) as error:
        raise InternalError(f"{executable} check: {error}; run 'make setup'") from None
    if len(answers) != len(asked):
        raise InternalError(f"{executable} check said {done.stderr.decode(errors='replace')!r}")
    return tuple(answer.problems for answer in answers)
