"""Smaller key spaces for a test. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.model.drive import Data, Drive, DriveCommand, Keys
from ensign.workloads.redis_specification.translate import Test

# What a test of few keys measures, it no longer would with fewer.
SMALL_KEYS = 1000


def scaled(test: Test, scale: float, *, values: bool) -> Test:
    """The test with that share of its keys, preloaded and fixed operations, and values if asked."""
    if scale == 1:
        return test
    requests = None if test.requests is None else _part(test.requests, scale)
    return replace(
        test,
        drive=_drive(test.drive, scale, values=values),
        preload=tuple(_drive(each, scale, values=values) for each in test.preload),
        requests=requests,
    )


def _part(number: int, scale: float) -> int:
    """Ranges and counts shrink by one rule, so that a preload still covers what is read."""
    return max(round(number * scale), min(number, SMALL_KEYS))


def _drive(drive: Drive, scale: float, *, values: bool) -> Drive:
    commands = [_command(each, scale, drive) for each in drive.commands]
    operations = drive.operations
    if operations is not None:
        operations = _part(operations, _share(drive.commands, commands, scale))
    changes: dict[str, object] = {"operations": operations, "commands": commands}
    if values:
        changes["data"] = _data(drive.data, scale)
    return drive.model_copy(update=changes)


def _share(old: Sequence[DriveCommand], new: Sequence[DriveCommand], scale: float) -> float:
    """What is left of the ranges: as many operations per key as before, however few keys stay."""
    pairs = zip(old, new, strict=True)
    ranges = [(a.keys, b.keys) for a, b in pairs if a.keys and b.keys and a.keys.number > 1]
    return max((b.number / a.number for a, b in ranges), default=scale)


def _command(command: DriveCommand, scale: float, drive: Drive) -> DriveCommand:
    if command.keys is None:
        return command
    return command.model_copy(update={"keys": _keys(command.keys, scale, drive.connections)})


def _keys(keys: Keys, scale: float, connections: int) -> Keys:
    number = _part(keys.number, scale)
    if keys.pattern == "parallel":  # one for each connection, at least
        number = max(number, min(connections, keys.number))
    share = number / keys.number
    changes: dict[str, object] = {"last": keys.first + number - 1}
    if keys.center is not None:
        changes["center"] = keys.first + (keys.center - keys.first) * share
    if keys.deviation is not None:
        changes["deviation"] = keys.deviation * share
    return keys.model_copy(update=changes)


def _data(data: Data, scale: float) -> Data:
    def part(size: int) -> int:
        return max(1, round(size * scale)) if size else 0

    if data.sizes is not None:
        least, most = data.sizes
        return data.model_copy(update={"sizes": (part(least), part(most))})
    if data.weighted is not None:
        return data.model_copy(
            update={"weighted": [(part(size), weight) for size, weight in data.weighted]}
        )
    return data.model_copy(update={"size": part(round(data.mean_bytes))})
