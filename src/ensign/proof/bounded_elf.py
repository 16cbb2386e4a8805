"""ELF files of anybody, read within bounds: the one place that knows how pyelftools fails.

It believes what it reads: lengths, counts and offsets of a damaged or hostile file lead it to
allocate terabytes, to walk tables for hours, and to whatever exception comes of that. So it reads
through streams that give no more than there is and that end after so many reads, and whatever it
raises is a DamagedFile.
"""

from __future__ import annotations

import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from ensign.host.os_errors import shortage_behind

# Programs, libraries and objects take a fraction of that: 0.1 reads and 1 byte for each of theirs.
_READS = 50_000
_READS_PER_BYTE = 0.5
_BYTES = 8 << 20
_BYTES_PER_BYTE = 8
# Bytes of one number (LEB128): no number is so long, and each one makes the number slower to read.
_LONGEST_NUMBER = 1000
_CONTINUES = b"\x80"
# Debug information compresses to a fifth or so.
_MOST_PER_COMPRESSED_BYTE = 100
_MOST_ABSENT_BYTES = 64 << 20
_OLD_HEADER_BYTES = 12
_WIDE_BITS = 64


class DamagedFile(Exception):
    """Bytes that cannot be read as what they should be; the text says why."""


class _Budget:
    """Budget of reads of one file, for all that read it."""

    def __init__(self, size_bytes: int) -> None:
        self.reads = _READS + int(_READS_PER_BYTE * size_bytes)
        self.bytes = _BYTES + _BYTES_PER_BYTE * size_bytes


class _BoundedStream(io.RawIOBase):
    """A stream that never reads beyond its end, nor more than the budget."""

    def __init__(self, stream: BinaryIO, budget: _Budget | None = None) -> None:
        self._stream = stream
        self.size_bytes = stream.seek(0, io.SEEK_END)
        self.budget = budget or _Budget(self.size_bytes)
        self._at = 0
        self._continued = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Beyond the end there is nothing, wherever that is."""
        base = (0, self._at, self.size_bytes)[whence]
        self._at = min(max(base + offset, 0), self.size_bytes)
        self._continued = 0
        return self._at

    def tell(self) -> int:
        """Position of the next read."""
        return self._at

    def seekable(self) -> bool:
        """It is."""
        return True

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """At most so many bytes. DamagedFile where there were too many."""
        left = self.size_bytes - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        self.budget.reads -= 1
        self.budget.bytes -= wanted
        if self.budget.reads < 0 or self.budget.bytes < 0:
            raise DamagedFile("its tables lead in circles")
        self._stream.seek(self._at)
        data = self._stream.read(wanted)
        self._at += len(data)
        if wanted == 1:
            self._count_continued(data)
        return data

    def _count_continued(self, data: bytes) -> None:
        self._continued = self._continued + 1 if data >= _CONTINUES else 0
        if self._continued > _LONGEST_NUMBER:
            raise DamagedFile("a number in it does not end")


class BoundedElf(ELFFile):
    """An ELF file, of which everything that may be asked is bounded by its size."""

    def __init__(self, stream: BinaryIO) -> None:
        self.bounded = _BoundedStream(stream)
        self._made: dict[tuple[str, int], Any] = {}
        super().__init__(cast("BinaryIO", self.bounded))

    def get_section(self, n: int, type: Any = None) -> Any:  # noqa: A002  # as pyelftools has it
        """Made once, whoever asks for one by its name."""
        if ("section", n) not in self._made:
            self._made["section", n] = super().get_section(n)
        return self._made["section", n] if type is None else super().get_section(n, type)

    def get_segment(self, n: int) -> Any:
        """Made once, too."""
        if ("segment", n) not in self._made:
            self._made["segment", n] = super().get_segment(n)
        return self._made["segment", n]

    def _make_elf_hash_section(self, section_header: Any, name: str) -> Any:
        """Unread: nobody asks for hash tables, and pyelftools reads them number by number."""
        return Section(section_header, name, self)

    _make_gnu_hash_section = _make_elf_hash_section

    @property
    def is_wide(self) -> bool:
        """True if it is of 64 bits."""
        return bool(self.elfclass == _WIDE_BITS)

    @property
    def size_bytes(self) -> int:
        """Size of the whole file."""
        return self.bounded.size_bytes

    def piece(self, at: int, size_bytes: int) -> bytes:
        """Bytes of the file."""
        self.bounded.seek(at)
        return self.bounded.read(size_bytes)


def check_size(section: Section) -> None:
    """DamagedFile where a section's content would be more than its bytes in the file can be."""
    size, kept = section.data_size, section["sh_size"]
    # A file of debug information alone says so much of each section that is elsewhere.
    absent = section["sh_type"] == "SHT_NOBITS"
    most = _MOST_ABSENT_BYTES if absent else kept * _MOST_PER_COMPRESSED_BYTE
    if (absent or section.compressed) and size > most:
        raise DamagedFile(f"{section.name} would be of {size} bytes")
    if section.name.startswith(".zdebug_"):
        # The old form, whose own length is looked at after it is unpacked.
        unpacking = zlib.decompressobj()
        unpacking.decompress(section.data()[_OLD_HEADER_BYTES:], kept * _MOST_PER_COMPRESSED_BYTE)
        if unpacking.unconsumed_tail:
            raise DamagedFile(f"{section.name} would be too large")


def data_of(section: Section) -> bytes:
    """The content of a section. DamagedFile as `check_size`."""
    check_size(section)
    data: bytes = section.data()
    return data


@contextmanager
def damage_told() -> Iterator[None]:
    """Whatever reading raises is a DamagedFile, save what the system refused."""
    try:
        yield
    except DamagedFile:
        raise
    except Exception as error:
        shortage = shortage_behind(error)  # of memory, too: what is asked for is bounded
        if shortage is not None:
            raise shortage from None
        why = getattr(error, "strerror", None) or repr(error)
        raise DamagedFile(f"it cannot be read: {why}"[:200]) from error


@contextmanager
def opened_file(path: Path) -> Iterator[BinaryIO]:
    """A regular file; nobody waits at a pipe, or reads of a device for ever. DamagedFile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DamagedFile("it is no file")
        yield file


@contextmanager
def elf_of(source: Path | bytes) -> Iterator[BoundedElf]:
    """A file, or the content of one. DamagedFile where it, or what is asked of it, is damaged."""
    with damage_told():
        if isinstance(source, bytes):
            yield BoundedElf(io.BytesIO(source))
        else:
            with opened_file(source) as file:
                yield BoundedElf(file)
