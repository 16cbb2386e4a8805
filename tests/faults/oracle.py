"""What must hold of a command that met a fault, and of the same command after it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from faults.calls import Done
from faults.scenarios import Json, Scenario, claims
from faults.surroundings import temporary_files

# Measured; a condition of --fail-on; wrong input; a command failed; interrupted.
_DOCUMENTED = (0, 1, 2, 3, 4)
_TRACES = ("Traceback", "should not have happened", "Exception ignored", "internal error")
_MOST_LINES = 3
_WORDS = {
    "ENOSPC": "the disk is full", "MEMORY": "memory", "ENOMEM": "memory",
    "EMFILE": "too many files", "EAGAIN": "no more processes", "EIO": "is its disk sound",
}  # fmt: skip

Trials = dict[str, tuple[int, str]]


def stored_trials(folder: Path) -> Trials:
    """The trials that a study has, each with the time and hash of its file."""
    found = folder.glob(".ensign/*/trials/*/*.csv.gz")
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in found
    }


def wrong_with_fault(
    done: Done, folder: Path, kind: str, *, later: str = "", mute: bool = False
) -> Iterator[str]:
    """What a command did wrong that met a fault of that kind (empty: any), or a `later` one.

    A `mute` one could not write to standard error either: its status is all that it can say.
    """
    if done.status is None:
        yield "never ended"
    elif done.status not in _DOCUMENTED:
        yield f"exit status {done.status}"
    yield from (f"says {text!r}" for text in _TRACES if text in done.err + done.out)
    yield from (f"left {each}" for each in done.left)
    complaints = [line for line in done.err.splitlines() if line.startswith("ensign: ")]
    if done.status not in (0, None) and not mute and not 0 < len(complaints) <= _MOST_LINES:
        yield f"{len(complaints)} complaints"
    # A build's own words follow the complaint.
    if (
        done.status in (2, 3)
        and kind
        and not mute
        and not any(names(each)(line) for each in {kind, later} for line in done.err.splitlines())
    ):
        yield f"the reason ({kind}) is not told"
    path = folder / "results.json"
    if path.exists():
        try:
            yield from claims(json.loads(path.read_text()))
        except ValueError:
            yield "half a results.json"


class names:  # noqa: N801  # reads as what it does: any(map(names(kind), lines))
    """Whether a line tells of a failure of that kind."""

    def __init__(self, kind: str) -> None:
        said = _WORDS.get(kind)
        number = getattr(errno, kind, None)
        self.words = [each for each in (said, number and os.strerror(number)) if each]

    def __call__(self, line: str) -> bool:
        return any(word.lower() in line.lower() for word in self.words)


def wrong_afterwards(
    scenario: Scenario, done: Done, folder: Path, reference: Json, before: Trials
) -> Iterator[str]:
    """What is wrong after the same command without a fault. `before` is what was stored."""
    if done.status != 0:
        yield f"afterwards: exit status {done.status}: {done.err[-400:]}"
        return
    yield from (f"afterwards left {each}" for each in (*done.left, *temporary_files(folder)))
    now = stored_trials(folder)
    for path, stored in before.items():
        if now.get(path) != stored:
            yield f"afterwards: trial {path} was lost or raced again"
    yield from (f"afterwards: {each}" for each in other_outcome(scenario, folder, reference))


def other_outcome(scenario: Scenario, folder: Path, reference: Json) -> Iterator[str]:
    """In what the outcome is another one than without a fault."""
    outcome = json.loads(json.dumps(scenario.outcome(folder)))
    for name, value in reference.items():
        if outcome.get(name) != value:
            yield f"{name} is {str(outcome.get(name))[:400]}, not {str(value)[:400]}"
