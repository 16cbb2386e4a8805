"""Questions that the meter answers line by line, without running anything."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from ensign.host.bounded_run import Bounded, run_bounded
from ensign.meter.exit_errors import ended_early
from ensign.model.errors import DeadlineMet, InternalError

_BOUNDS = Bounded(deadline_s=60.0, most_bytes=1 << 30)

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
    said = run_bounded(
        (str(executable), about), os.environ, _BOUNDS, lines.encode(), with_errors=False
    )
    if said.was_ended:
        raise DeadlineMet(f"{said.problem}; run it again")
    if said.status is not None and said.status < 0:
        raise ended_early(said.status)
    try:
        answers = tuple(answer.model_validate_json(line) for line in said.output.splitlines())
    except ValidationError as error:
        raise InternalError(f"{executable} {about}: {error}; run 'make setup'") from None
    if len(answers) != len(questions):
        why = said.problem or f"status {said.status}"
        raise InternalError(f"{executable} {about} did not answer ({why}); run 'make setup'")
    return answers
