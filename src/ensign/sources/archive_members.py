"""What a tar or a zip archive of a stranger says that it holds, member by member."""

from __future__ import annotations

import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ensign.host.regular_file import open_sized
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.sources.archive_stream import Allowance, BoundedStream, is_packed, unpacked_stream

_LATEST_S = 1 << 33  # later than that is nobody's time, and some file systems cannot keep it
_LONGEST_LINK_BYTES = 4095
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_LARGEST_DIRECTORY_BYTES = 64 << 20
_LOCAL_HEADER_BYTES = 30


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """One thing in an archive; `content` is to be read before the next member is asked for."""

    name: str
    kind: Literal["file", "folder", "link", "hard"]
    executable: bool
    mtime_s: float
    link: str = ""
    content: IO[bytes] | None = None


def members_of(archive: Path, title: str, allowance: Allowance) -> Iterator[ArchiveMember]:
    """All members in their order; devices, pipes and the like are passed over.

    InputError, naming `title`, where it is neither a tar nor a zip archive, or beyond what the
    allowance has.
    """
    if not is_packed(archive):
        with open_sized(archive) as opened:
            if zipfile.is_zipfile(opened):
                yield from _zip_members(opened, title, allowance)
                return
    with unpacked_stream(archive, allowance) as stream:
        yield from _tar_members(stream, title, allowance)


def _tar_members(
    stream: BoundedStream, title: str, allowance: Allowance
) -> Iterator[ArchiveMember]:
    try:
        tar = tarfile.open(fileobj=stream, mode="r:")  # noqa: SIM115
    except tarfile.ReadError:
        raise InputError(
            f"{title} is neither a tar nor a zip archive that can be read here"
        ) from None
    with tar:
        while (info := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # it keeps all, for looking up by name
            allowance.member(info.name, info.size)
            executable, mtime_s = bool(info.mode & stat.S_IXUSR), _plain_time(info.mtime)
            if info.isdir():
                yield ArchiveMember(info.name, "folder", executable, mtime_s)
            elif info.issym():
                yield ArchiveMember(info.name, "link", executable, mtime_s, info.linkname)
            elif info.islnk():
                yield ArchiveMember(info.name, "hard", executable, mtime_s, info.linkname)
            elif info.isreg():
                content = tar.extractfile(info)
                yield ArchiveMember(info.name, "file", executable, mtime_s, content=content)


class _Directory:
    """The file of a zip, of which no huge part is read at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1, /) -> bytes:
        """BadZipFile where its directory is absurdly large."""
        if size > _LARGEST_DIRECTORY_BYTES:
            raise zipfile.BadZipFile("its directory is absurdly large")
        return self._file.read(size)


def _zip_members(opened: IO[bytes], title: str, allowance: Allowance) -> Iterator[ArchiveMember]:
    with zipfile.ZipFile(_Directory(opened)) as file:
        _check_apart(file, title)
        for info in file.infolist():
            allowance.member(info.filename, info.file_size)
            shown = quoted(info.filename)
            if info.flag_bits & _ENCRYPTED:
                raise InputError(f"{title} is encrypted ({shown}); that cannot be unpacked here")
            if info.compress_type not in _METHODS:
                raise InputError(f"{title} uses an unsupported compression method ({shown})")
            mode = info.external_attr >> 16
            mtime_s = _time_of(info)
            if info.is_dir():
                yield ArchiveMember(info.filename, "folder", executable=True, mtime_s=mtime_s)
            elif stat.S_ISLNK(mode):
                if info.file_size > _LONGEST_LINK_BYTES:
                    raise InputError(f"{title} has a link that is too long: {shown}")
                link = os.fsdecode(file.read(info))
                yield ArchiveMember(info.filename, "link", False, mtime_s, link)  # noqa: FBT003
            elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
                with file.open(info) as content:
                    executable = bool(mode & stat.S_IXUSR)
                    yield ArchiveMember(info.filename, "file", executable, mtime_s, content=content)


def _check_apart(file: zipfile.ZipFile, title: str) -> None:
    """InputError where members share bytes: so a small file becomes a huge tree."""
    infos = sorted(file.infolist(), key=lambda info: info.header_offset)
    end = 0
    for info in infos:
        if info.header_offset < end:
            raise InputError(f"{title} is refused: its members overlap ({quoted(info.filename)})")
        end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size


def _time_of(info: zipfile.ZipInfo) -> float:
    try:
        return _plain_time(time.mktime((*info.date_time, 0, 0, -1)))
    except (OverflowError, ValueError):
        return 0.0


def _plain_time(seconds: float) -> float:
    """A time that any file system keeps; of one that is none the beginning."""
    return float(seconds) if 0 <= seconds < _LATEST_S else 0.0
