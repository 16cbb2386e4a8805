"""The bytes of an archive of a stranger, unpacked as they are asked for, and bounded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from ensign.model.errors import InputError
from ensign.model.units import format_duration, format_size

_CHUNK_BYTES = 1 << 16
# A header of a tar is read in one piece; none that means something is larger.
_LARGEST_READ_BYTES = 1 << 20
# What unpacking by xz may need: 'xz -9' takes 65 MiB.
_XZ_MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Limits of an archive. Its content may be so many times as large as the archive is.

    What it may come to in any case is `free_bytes`; small archives of text are packed tightly.
    """

    members: int = 1_000_000
    size_bytes: int = 16 << 30
    ratio: int = 200
    free_bytes: int = 256 << 20
    name_bytes: int = 3500
    seconds: float = 15 * 60.0


class Allowance:
    """Rest of the limits while one archive is unpacked; InputError beyond them."""

    def __init__(
        self,
        title: str,
        archive_bytes: int,
        limits: UnpackLimits,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = title
        self._limits = limits
        self._clock_s = clock_s
        self._ends_s = clock_s() + limits.seconds
        by_ratio = limits.free_bytes + limits.ratio * archive_bytes
        self.most_bytes = min(limits.size_bytes, by_ratio)
        self._members = 0
        self._written_bytes = 0

    def member(self, name: str, size_bytes: int) -> None:
        """Count a member that says to be so large."""
        self._members += 1
        if self._members > self._limits.members:
            raise InputError(f"{self._title} has more than {self._limits.members:,} members")
        if len(name.encode("utf-8", "surrogateescape")) > self._limits.name_bytes:
            raise InputError(f"{self._title} has a member with a name that is too long")
        if size_bytes < 0 or size_bytes > self.most_bytes:
            raise self._too_large()

    def wrote(self, count: int) -> None:
        """Count what is written to the disk."""
        self._written_bytes += count
        if self._written_bytes > self.most_bytes:
            raise self._too_large()
        self.in_time()

    def at(self, position: int) -> None:
        """Note how far the unpacked stream was read, headers and padding with it."""
        if position > self.most_bytes + 1024 * self._limits.members:
            raise self._too_large()
        self.in_time()

    def in_time(self) -> None:
        """InputError when the time is over."""
        if self._clock_s() > self._ends_s:
            most = format_duration(self._limits.seconds * 1e9)
            raise InputError(f"{self._title} cannot be unpacked within {most}")

    def _too_large(self) -> InputError:
        most = format_size(self.most_bytes)
        return InputError(
            f"{self._title} is refused: it would unpack to more than {most}, which is more than a "
            "source of its size has"
        )


class BoundedStream(io.RawIOBase):
    """A stream that is read forwards; never much of it at once, and never beyond the allowance."""

    def __init__(self, inner: IO[bytes], allowance: Allowance) -> None:
        super().__init__()
        self._inner = inner
        self._allowance = allowance
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """EOFError where more is asked for than any header has."""
        if size is None or size < 0 or size > _LARGEST_READ_BYTES:
            raise EOFError("a header in it is absurdly large")
        parts = []
        while size > 0 and (data := self._inner.read(min(size, _CHUNK_BYTES))):
            parts.append(data)
            size -= len(data)
            self._position += len(data)
        self._allowance.at(self._position)
        return b"".join(parts)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Forwards alone, by reading; EOFError otherwise. Beyond the end it stays there."""
        if whence != io.SEEK_SET or offset < self._position:
            raise EOFError("it is not in order")
        self._allowance.at(offset)
        while self._position < offset:
            data = self._inner.read(min(offset - self._position, _CHUNK_BYTES))
            if not data:
                break
            self._position += len(data)
            self._allowance.at(self._position)
        return self._position

    def tell(self) -> int:
        """Number of bytes that were read."""
        return self._position


class _Xz(io.RawIOBase):
    """As lzma.LZMAFile, but with a limit of memory."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__()
        self._packed = packed
        self._decoder = self._new()

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)

    def read(self, size: int | None = -1, /) -> bytes:
        """At most so many bytes; EOFError where the file is cut off."""
        wanted = _CHUNK_BYTES if size is None or size < 0 else size
        while wanted:
            given = b""
            if self._decoder.eof:
                # Several files one after another are one; zeros between them fill up.
                rest = self._decoder.unused_data.lstrip(b"\0")
                while not rest:
                    read = self._packed.read(_CHUNK_BYTES)
                    if not read:
                        return b""
                    rest = read.lstrip(b"\0")
                self._decoder, given = self._new(), rest
            elif self._decoder.needs_input:
                given = self._packed.read(_CHUNK_BYTES)
                if not given:
                    raise EOFError("it is cut off")
            data = self._decoder.decompress(given, wanted)
            if data:
                return data
        return b""


class _Opener(Protocol):
    def __call__(self, file: IO[bytes], /) -> IO[bytes]: ...


def _by_gzip(file: IO[bytes]) -> IO[bytes]:
    return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]


def _by_bzip2(file: IO[bytes]) -> IO[bytes]:
    return bz2.BZ2File(file)


def _by_xz(file: IO[bytes]) -> IO[bytes]:
    return _Xz(file)  # type: ignore[return-value]


_PACKED: tuple[tuple[bytes, _Opener], ...] = (
    (b"\x1f\x8b", _by_gzip),
    (b"BZh", _by_bzip2),
    (b"\xfd7zXZ\0", _by_xz),
    (b"\x5d\0\0", _by_xz),  # the older form, .lzma
)


@contextmanager
def unpacked_stream(archive: Path, allowance: Allowance) -> Iterator[BoundedStream]:
    """Content of an archive after unpacking, or the file itself where it is not packed."""
    with archive.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        opener = next((by for magic, by in _PACKED if start.startswith(magic)), None)
        if opener is None:
            yield BoundedStream(file, allowance)
            return
        with opener(file) as inner:
            yield BoundedStream(inner, allowance)


def is_packed(archive: Path) -> bool:
    """True if it is packed as a stream (gz, bz2, xz), which a zip is not."""
    with archive.open("rb") as file:
        start = file.read(8)
    return any(start.startswith(magic) for magic, _ in _PACKED)
