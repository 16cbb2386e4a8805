"""Questions that the meter answers line by line, without running anything."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from ensign.host.refusals import refusal
from ensign.meter.failed import ended_early
from ensign.model.errors import DeadlineMet, InternalError

_DEADLINE_S = 60.0

Answer = TypeVar("Answer", bound=BaseModel)


def ask(
    executable: Path,
    about: Literal["check", "parse"],
    questions: Sequence[Mapping[str, object]],
    answer: type[Answer],
) -> tuple[Answer, ...]:
    """One answer to each question. InternalError where the meter gives none.

    CommandFailed where it is killed or does not end, OSError where the system refuses to start it.
    """
    lines = "".join(f"{json.dumps(each)}\n" for each in questions)
    try:
        done = subprocess.run(
            [str(executable), about],
            input=lines.encode(),
            capture_output=True,
            timeout=_DEADLINE_S,
            check=False,
        )
        answers = tuple(answer.model_validate_json(line) for line in done.stdout.splitlines())
    except subprocess.TimeoutExpired as error:
        raise DeadlineMet(f"{executable} {about}: {error}; run it again") from None
    except (OSError, ValidationError) as error:
        if refusal(error) is not None:
            raise
        raise InternalError(f"{executable} {about}: {error}; run 'make setup'") from None
    if done.returncode < 0:
        raise ended_early(done.returncode)
    if len(answers) != len(questions):
        said = done.stderr.decode(errors="replace")
        raise InternalError(f"{executable} {about} did not answer: {said!r}; run 'make setup'")
    return answers
