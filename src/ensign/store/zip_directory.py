"""How large the list of an archive's files is, before it is read: reading it takes all of it."""

from __future__ import annotations

import os
import struct
from typing import IO

_MEMBER = b"PK\x01\x02"
_END, _LOCATOR, _END_64 = b"PK\x05\x06", b"PK\x06\x07", b"PK\x06\x06"
_END_BYTES, _LOCATOR_BYTES, _END_64_BYTES = 22, 20, 56
_LONGEST_COMMENT_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20


def listed_files(file: IO[bytes], most_bytes: int) -> int | None:
    """How many files are listed, or more; None where the list is larger than `most_bytes`.

    0 for what is no archive. Found where `zipfile` finds it, and counted, whatever is said there.
    """
    end_at, size_bytes = _end_of(file)
    if end_at < 0:
        return 0
    if size_bytes > most_bytes:
        return None
    start = max(0, end_at - _LOCATOR_BYTES - _END_64_BYTES - size_bytes)
    file.seek(start)
    left, found, before = end_at - start, 0, b""
    while left > 0:
        data = before + file.read(min(left, _CHUNK_BYTES))
        if len(data) == len(before):
            break
        found += data.count(_MEMBER)
        left -= len(data) - len(before)
        before = data[-(len(_MEMBER) - 1) :]
    return found


def _end_of(file: IO[bytes]) -> tuple[int, int]:
    """Where the list ends, and how many bytes it is said to have."""
    whole = file.seek(0, os.SEEK_END)
    start = max(0, whole - _END_BYTES - _LONGEST_COMMENT_BYTES)
    file.seek(start)
    tail = file.read(whole - start)
    plain = tail[-_END_BYTES:]
    if plain.startswith(_END) and plain.endswith(b"\0\0"):
        at = len(tail) - _END_BYTES
    else:
        at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        return -1, 0
    (size_bytes,) = struct.unpack_from("<L", tail, at + 12)
    end_at = start + at
    return end_at, max(size_bytes, _size_64(file, end_at))


def _size_64(file: IO[bytes], end_at: int) -> int:
    """As said in the record of large archives, which counts where there is one."""
    place = end_at - _LOCATOR_BYTES - _END_64_BYTES
    if place < 0:
        return 0
    file.seek(place)
    data = file.read(_END_64_BYTES + _LOCATOR_BYTES)
    if not data.startswith(_END_64) or data[_END_64_BYTES:][:4] != _LOCATOR:
        return 0
    size_bytes: int = struct.unpack_from("<Q", data, 40)[0]
    return size_bytes
