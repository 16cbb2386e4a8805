"""What is trained on must not be what is measured. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ensign.model.drive import Drive
from ensign.model.finding_kinds.race import TRAINING_OVERLAPS_TESTS
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload

_NUMBER = r"\d+"


def overlap_findings(study: Study) -> tuple[Finding, ...]:
    """An error where a training workload is a test, by what it runs; a name alone says nothing.

    Commands are equal whatever number stands for `{requests}`. Drives overlap where they have a
    command with the same pattern of keys in common, whatever their connections or sizes.
    """
    if study.training is None:
        return ()
    pairs = [
        f"{trained.name} runs the command of {test.name}"
        for trained in study.training.workloads
        for test in study.workloads
        if _same_command(trained, test)
    ]
    if not pairs:
        return ()
    text = (
        f"training and tests overlap ({'; '.join(pairs)}): what PGO and BOLT gain here, "
        "they gain on what they have seen"
    )
    return (TRAINING_OVERLAPS_TESTS.found(text),)


def _same_command(one: Workload, other: Workload) -> bool:
    if one.drive is not None and other.drive is not None:
        return not _sent(one.drive).isdisjoint(_sent(other.drive))
    commands = (one.load or one.command or (), other.load or other.command or ())
    return (one.stdin, one.env) == (other.stdin, other.env) and _same(*commands)


def _sent(drive: Drive) -> set[tuple[object, ...]]:
    """Each command of a drive, with how its keys are drawn."""
    return {
        (line[0].upper(), line[1:], command.keys and command.keys.pattern)
        for command in drive.commands
        for line in command.lines
    }


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(
        a == b or _matches(a, b) or _matches(b, a) for a, b in zip(one, other, strict=True)
    )


def _matches(pattern: str, text: str) -> bool:
    """Whether `text` is `pattern` with a number for `{requests}`."""
    parts = [re.escape(part) for part in pattern.split("{requests}")]
    return re.fullmatch(_NUMBER.join(parts), text) is not None
