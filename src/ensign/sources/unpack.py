"""Unpacking archives of strangers: nothing lands outside the folder, modes are plain, all ends."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ensign.host.files import remove_tree, storage_errors
from ensign.host.regular_file import archive_errors, open_sized
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.sources.archive_stream import (
    Allowance,
    BoundedStream,
    UnpackLimits,
    is_packed,
    unpacked_stream,
)

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


_CHUNK_BYTES = 1 << 16
_DEEPEST = 200
_LIMITS = UnpackLimits()


def unpack(  # what holds for it
    archive: Path,
    target: Path,
    strip: int,
    title: str,
    limits: UnpackLimits = _LIMITS,
    *,
    is_root: bool = False,
) -> None:
    """Unpack a tar (plain, gz, bz2, xz) or zip archive into a new folder, dropping components.

    InputError, naming `title`, if it is neither, damaged or beyond the limits, or if a member would
    land outside the folder; StorageFailed where it cannot be written. Nothing is left then.
    Links of a root directory may lead anywhere: they are followed within it alone. It is never
    written through one.
    Python's own filter for this is not in every Python 3.11, so it is done by hand.
    """
    allowance = Allowance(title, archive.stat().st_size, limits)
    target.mkdir(parents=True)
    try:
        with archive_errors(f"{title} cannot be unpacked"), storage_errors(target):
            tree = _Unpacking(target, strip, title, allowance, is_root=is_root)
            for member in members_of(archive, title, allowance):
                tree.place(member)
            tree.finish()
    except BaseException:
        remove_tree(target)
        raise


class _Unpacking:
    """A folder that is being filled. It never goes through a link, and never removes a folder."""

    def __init__(
        self, root: Path, strip: int, title: str, allowance: Allowance, *, is_root: bool = False
    ) -> None:
        self._is_root = is_root
        self._root = root
        self._strip = strip
        self._title = title
        self._allowance = allowance
        self._folders: dict[tuple[str, ...], float] = {}
        self._links: list[tuple[str, ...]] = []
        # Folders that are known to be some, from the root down to where the last member went.
        self._known: tuple[str, ...] = ()

    def place(self, member: ArchiveMember) -> None:
        """Put a member where it belongs."""
        self._allowance.in_time()
        parts = Path(member.name).parts[self._strip :]
        if not parts:
            return
        if Path(member.name).is_absolute() or ".." in parts:
            raise self._outside(member)
        if len(parts) > _DEEPEST:
            raise InputError(f"{self._title} is nested too deeply: {quoted(member.name)}")
        path = self._root.joinpath(*parts)
        try:
            self._enter(parts if member.kind == "folder" else parts[:-1], member)
            if member.kind == "folder":
                self._folders[parts] = member.mtime_s
                return
            _clear_the_way(path)
            self._put(member, path, parts)
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.EISDIR, errno.EEXIST, errno.EILSEQ):
                shown = quoted(member.name)
                raise InputError(
                    f"{self._title} has a member that cannot be unpacked: {shown}: {error.strerror}"
                ) from error
            raise

    def finish(self) -> None:
        """Look again where links lead, now that all is there; give folders their times."""
        for parts in self._links:
            self._allowance.in_time()
            if not self._is_root and not self._is_inside(self._root.joinpath(*parts)):
                raise InputError(
                    f"{self._title} has a link out of its folder: {quoted('/'.join(parts))}"
                )
        for parts, mtime_s in reversed(self._folders.items()):
            os.utime(self._root.joinpath(*parts), (mtime_s, mtime_s))
        if not any(self._root.iterdir()):
            raise InputError(
                f"{self._title} holds nothing after dropping {self._strip} leading path components"
            )

    def _put(self, member: ArchiveMember, path: Path, parts: tuple[str, ...]) -> None:
        if member.kind == "link":
            inside = not Path(member.link).is_absolute() and self._is_inside(
                path.parent / member.link
            )
            if not self._is_root and not inside:
                raise self._leading_out(member)
            path.symlink_to(member.link)
            self._links.append(parts)
        elif member.kind == "hard":
            with self._original(member).open("rb") as content:
                _write(path, content, self._allowance)
                mode = os.fstat(content.fileno()).st_mode
            path.chmod(stat.S_IMODE(mode))
            os.utime(path, (member.mtime_s, member.mtime_s))
        elif member.content is not None:
            _write(path, member.content, self._allowance)
            path.chmod(0o755 if member.executable else 0o644)
            os.utime(path, (member.mtime_s, member.mtime_s))

    def _enter(self, parts: tuple[str, ...], member: ArchiveMember) -> None:
        """Make the folders, each unless it is there; a link in the place of one is refused."""
        same = 0
        while same < min(len(parts), len(self._known)) and parts[same] == self._known[same]:
            same += 1
        for count in range(same + 1, len(parts) + 1):
            folder = self._root.joinpath(*parts[:count])
            try:
                folder.mkdir()
                self._allowance.member("", 0)
            except FileExistsError:
                mode = folder.lstat().st_mode
                if stat.S_ISLNK(mode):
                    raise InputError(
                        f"{self._title} has a member behind a link of its own: "
                        f"{quoted(member.name)}"
                    ) from None
                if not stat.S_ISDIR(mode):
                    raise
        self._known = parts

    def _original(self, member: ArchiveMember) -> Path:
        """The file that a hard link names: a member before it, not behind a link."""
        named = Path(member.link)
        parts = named.parts[self._strip :]
        if named.is_absolute() or ".." in parts or not parts or len(parts) > _DEEPEST:
            raise self._leading_out(member)
        path = self._root
        for part in parts[:-1]:
            path /= part
            if path.is_symlink():
                raise self._leading_out(member)
        path /= parts[-1]
        if path.is_symlink() or not path.is_file():
            raise self._leading_out(member)
        return path

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._root))

    def _outside(self, member: ArchiveMember) -> InputError:
        return InputError(f"{self._title} has a member outside its folder: {quoted(member.name)}")

    def _leading_out(self, member: ArchiveMember) -> InputError:
        return InputError(f"{self._title} has a link out of its folder: {quoted(member.name)}")


def _clear_the_way(path: Path) -> None:
    """Removes an earlier member of the same name, as tar itself does; but no folder goes."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except PermissionError as error:
        if path.is_dir():  # how some systems say that it is one
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from error
        raise


def _write(path: Path, content: IO[bytes], allowance: Allowance) -> None:
    with path.open("xb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            allowance.wrote(len(chunk))
            file.write(chunk)
