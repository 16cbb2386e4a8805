"""Walking a tree of any depth: its entries in a fixed order, each with what leads to it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ensign.host.directory_cursor import Descent

# No program opens a longer name; where there are such, reading them has no end that is of use.
LONGEST_NAME_BYTES = 1 << 14
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """Something below a root, to be looked at before the next one is asked for.

    `depth` counts the folders between; `status` is its own, no link is followed.
    """

    base: str
    status: os.stat_result
    place: Descent

    @property
    def name(self) -> str:
        """Relative to the root."""
        return self.place.name(self.base)

    @property
    def depth(self) -> int:
        """Folders between the root and it."""
        return self.place.depth

    @property
    def is_folder(self) -> bool:
        """True if it is a folder, which a link to one is not."""
        return stat.S_ISDIR(self.status.st_mode)

    def open(self) -> int:
        """A descriptor of a regular file. OSError where it is none any more."""
        try:
            descriptor = os.open(self.base, _READING, dir_fd=self.place.descriptor)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.place.shown(self.base)) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.ESTALE, "was exchanged meanwhile", self.place.shown(self.base))
        return descriptor

    def target(self) -> str:
        """Target of a link."""
        try:
            return os.readlink(self.base, dir_fd=self.place.descriptor)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.place.shown(self.base)) from None


Refused = Callable[[OSError], None]


def walk(
    root: Path,
    exclude: Sequence[str] = (),
    on_error: Refused | None = None,
    *,
    longest_bytes: int | None = LONGEST_NAME_BYTES,
) -> Iterator[TreeEntry]:
    """Everything below a folder, each folder before what is in it; names in their order.

    `exclude` is as for `tree_entries`. Without `on_error`, what cannot be looked at is an OSError
    whose `filename` can be shown; with it, that is told and left out. The same where a name is
    longer than `longest_bytes` (None: there is no such limit).
    """
    told = on_error or _raise
    patterns = tuple(pattern.rstrip("/") for pattern in exclude)
    with Descent(root) as place:
        pending = [_listed(place)]
        while pending:
            if not pending[-1]:
                pending.pop()
                if pending:
                    place.up()
                continue
            base = pending[-1].pop()
            try:
                status = os.stat(base, dir_fd=place.descriptor, follow_symlinks=False)
            except OSError as error:
                told(OSError(error.errno, error.strerror, place.shown(base)))
                continue
            if patterns and _excluded(place, base, patterns):
                continue
            yield TreeEntry(base, status, place)
            if stat.S_ISDIR(status.st_mode):
                try:
                    _require_short(place, base, longest_bytes)
                    pending.append(_entered(place, base))
                except OSError as error:
                    told(error)


def _require_short(place: Descent, base: str, longest_bytes: int | None) -> None:
    if longest_bytes is None or place.depth % 64:
        return
    if len(os.fsencode(place.name(base))) > longest_bytes:
        raise OSError(errno.ENAMETOOLONG, "is nested too deeply", place.shown(base))


def _entered(place: Descent, base: str) -> list[str]:
    place.down(base)
    try:
        return _listed(place)
    except OSError:
        place.up()
        raise


def _listed(place: Descent) -> list[str]:
    """Names in the folder, the first one last."""
    try:
        return sorted(os.listdir(place.descriptor), reverse=True)  # noqa: PTH208  # by descriptor
    except OSError as error:
        raise OSError(error.errno, error.strerror, place.shown()) from None


def _excluded(place: Descent, base: str, patterns: Sequence[str]) -> bool:
    whole = place.name(base) if any("/" in pattern for pattern in patterns) else ""
    return any(fnmatch(whole if "/" in p else base, p.lstrip("/")) for p in patterns)


def passed_over(error: OSError) -> None:
    """For `on_error`: what cannot be looked at counts nothing."""
    del error


def _raise(error: OSError) -> None:
    raise error
