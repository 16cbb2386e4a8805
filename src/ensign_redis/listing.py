"""The rows of a listing of tests. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ensign.model.drive import Drive
from ensign.model.study_suite import Listed
from ensign_redis.redis_versions import Version, not_runnable
from ensign_redis.translate import Inexpressible, Test


def listed(test: Test | Inexpressible, version: Version) -> Listed:
    """The row of a test, for a server of that version."""
    if isinstance(test, Inexpressible):
        return Listed(test.name, test.groups, test.commands, hindrance=test.reason)
    drive = test.drive
    drawn = [command.keys for command in drive.commands if command.keys is not None]
    return Listed(
        name=test.name,
        groups=test.groups,
        commands=test.commands,
        pipeline=drive.pipeline,
        connections=drive.connections,
        value_bytes=_value_bytes(test),
        keys=max((keys.number for keys in drawn), default=0),
        preload_operations=sum(each.operations or 0 for each in test.preload),
        preload_bytes=_preload_bytes(test),
        fixed_requests=test.requests,
        sent=tuple(_sent(test)),
        follows_replies=any("{cursor}" in line for line in test.sent()),
        missing=not_runnable(test.sent(), test.settings, version),
        notes=test.notes,
    )


def _sent(test: Test) -> Iterable[str]:
    """Each measured command with its pattern of keys: what tells tests from each other."""
    for command in test.drive.commands:
        pattern = "" if command.keys is None else f" [{command.keys.pattern}]"
        for line in command.lines:
            yield " ".join((line[0].upper(), *line[1:])) + pattern


def _value_bytes(test: Test) -> int:
    """Of the measured load; of the preload where the load only reads."""
    for drive in (test.drive, *test.preload):
        words = [word for command in drive.commands for word in command.texts()]
        if "{data}" in words:
            return round(drive.data.mean_bytes)
    return 0


def _preload_bytes(test: Test) -> int:
    total = 0.0
    for drive in test.preload:
        shares = sum(command.share for command in drive.commands)
        size = sum(
            command.share * sum(_bytes(word, drive) for word in command.texts())
            for command in drive.commands
        )
        total += size / shares * (drive.operations or 0)
    return round(total)


def _bytes(word: str, drive: Drive) -> float:
    return drive.data.mean_bytes if word == "{data}" else len(word)
