"""Reading a text that a person wrote, with words for what may go wrong."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from ensign.host.regular_file import read_regular
from ensign.model.errors import InputError
from ensign.model.quoting import visible

_MOST_NEIGHBOURS = 10_000
_LARGEST_BYTES = 10 * 2**20


def read_text(path: Path, *, largest_bytes: int = _LARGEST_BYTES) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    InputError, without the path, where it is missing, a folder, unreadable, too large, not UTF-8
    or empty.
    """
    try:
        data = read_regular(path, largest_bytes + 1)
    except FileNotFoundError:
        raise InputError(f"there is no such file{_neighbours(path)}") from None
    except IsADirectoryError:
        raise InputError(f"is a folder; name a file in it{_neighbours(path / 'x')}") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    if len(data) > largest_bytes:
        raise InputError(f"is larger than {largest_bytes // 2**20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not UTF-8 text (line {line}); save it as UTF-8") from None
    if not text.strip():
        raise InputError("is empty")
    return text


def _neighbours(path: Path) -> str:
    try:
        with os.scandir(path.parent) as entries:
            names = (entry.name for entry in islice(entries, _MOST_NEIGHBOURS))
            found = sorted(name for name in names if name.endswith(".toml"))[:3]
    except OSError:
        return ""
    return f"; nearby: {', '.join(map(visible, found))}" if found else ""
