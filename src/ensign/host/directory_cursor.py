"""Going down into trees of strangers by descriptors: deep ones, long names, nothing followed."""

from __future__ import annotations

import errno
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

# Deeper folders are closed, and found again through "..", of which nobody can make a link.
_MOST_OPEN = 16
_SHOWN = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class _Level:
    name: str
    identity: tuple[int, int]


class Descent:
    """A place in a tree of any depth, with at most 17 descriptors open.

    OSError, with a name that can be shown, where a folder cannot be opened or was exchanged.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._levels: list[_Level] = []
        # The root may be a link, which who names it means.
        top = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
        self._open = deque([top])
        self._top = _identity(top)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    @property
    def descriptor(self) -> int:
        """The folder that this is in; valid until the next step."""
        return self._open[-1]

    @property
    def depth(self) -> int:
        """Number of folders below the root."""
        return len(self._levels)

    def name(self, last: str = "") -> str:
        """The relative name of something here, or of the folder itself."""
        parts = [level.name for level in self._levels]
        return "/".join([*parts, last] if last else parts)

    def shown(self, last: str = "") -> str:
        """The whole path, shortened in its middle."""
        text = f"{self._root}/{self.name(last)}".rstrip("/")
        half = _SHOWN // 2
        return text if len(text) <= _SHOWN else f"{text[:half]} … {text[-half:]}"

    def down(self, name: str) -> None:
        """Step into a folder; never through a link."""
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=self.descriptor)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.shown(name)) from None
        self._open.append(descriptor)
        self._levels.append(_Level(name, _identity(descriptor)))
        if len(self._open) > _MOST_OPEN:
            os.close(self._open.popleft())

    def up(self) -> str:
        """Step out of the folder; its name. OSError (ESTALE) where it was moved elsewhere."""
        if len(self._open) == 1:
            above = self._levels[-2].identity if self.depth > 1 else self._top
            try:
                parent = os.open("..", _FOLDER, dir_fd=self.descriptor)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self.shown()) from None
            if _identity(parent) != above:
                os.close(parent)
                raise OSError(errno.ESTALE, "was moved meanwhile", self.shown())
            self._open.appendleft(parent)
        os.close(self._open.pop())
        return self._levels.pop().name


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
