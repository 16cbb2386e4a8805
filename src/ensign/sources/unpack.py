"""Unpacking archives of strangers: nothing lands outside the folder, modes are plain."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ensign.host.archive_errors import archive_errors
from ensign.host.files import storage_errors
from ensign.model.errors import InputError


@dataclass(frozen=True, slots=True)
class _ArchiveMember:
    name: str
    kind: str  # file, folder, link or hard
    executable: bool
    mtime_s: float
    link: str = ""
    content: IO[bytes] | None = None


def unpack(archive: Path, target: Path, strip: int, title: str) -> None:
    """Unpack a tar (plain, gz, bz2, xz) or zip archive into a new folder, dropping components.

    InputError, naming `title`, if it is neither, or if a member would land outside the folder.
    Python's own filter for this is not in every Python 3.11, so it is done by hand.
    """
    target.mkdir(parents=True)
    folders: list[tuple[Path, float]] = []
    with archive_errors(f"{title} cannot be unpacked"), storage_errors(target):
        for member in _members(archive, title):
            parts = Path(member.name).parts[strip:]
            if parts:
                _place(member, target, parts, strip, title)
                if member.kind == "folder":
                    folders.append((target.joinpath(*parts), member.mtime_s))
        for folder, mtime_s in reversed(folders):
            os.utime(folder, (mtime_s, mtime_s))
    if not any(target.iterdir()):
        raise InputError(f"{title} holds nothing after dropping {strip} leading path components")


def _members(archive: Path, title: str) -> Iterator[_ArchiveMember]:
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
    elif tarfile.is_tarfile(archive):
        yield from _tar_members(archive)
    else:
        raise InputError(f"{title} is neither a tar nor a zip archive that can be read here")


def _tar_members(archive: Path) -> Iterator[_ArchiveMember]:
    with tarfile.open(archive) as tar:
        for info in tar:
            executable = bool(info.mode & stat.S_IXUSR)
            if info.isdir():
                yield _ArchiveMember(info.name, "folder", executable, info.mtime)
            elif info.issym():
                yield _ArchiveMember(info.name, "link", executable, info.mtime, info.linkname)
            elif info.islnk():
                yield _ArchiveMember(info.name, "hard", executable, info.mtime, info.linkname)
            elif info.isreg():
                content = tar.extractfile(info)
                yield _ArchiveMember(info.name, "file", executable, info.mtime, content=content)


def _zip_members(archive: Path) -> Iterator[_ArchiveMember]:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            mode = info.external_attr >> 16
            mtime_s = time.mktime((*info.date_time, 0, 0, -1))
            if info.is_dir():
                yield _ArchiveMember(info.filename, "folder", executable=True, mtime_s=mtime_s)
            elif stat.S_ISLNK(mode):
                link = os.fsdecode(file.read(info))
                yield _ArchiveMember(
                    info.filename, "link", executable=False, mtime_s=mtime_s, link=link
                )
            else:
                with file.open(info) as content:
                    executable = bool(mode & stat.S_IXUSR)
                    yield _ArchiveMember(
                        info.filename, "file", executable, mtime_s, content=content
                    )


def _place(
    member: _ArchiveMember, root: Path, parts: tuple[str, ...], strip: int, title: str
) -> None:
    path = root.joinpath(*parts)
    if Path(member.name).is_absolute() or ".." in parts or not _inside(path.parent, root):
        raise InputError(f"{title} has a member outside its folder: '{member.name}'")
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.kind == "folder":
        path.mkdir(exist_ok=True)
        return
    if path.is_symlink() or path.is_file():
        path.unlink()
    if member.kind == "link":
        if Path(member.link).is_absolute() or not _inside(path.parent / member.link, root):
            raise InputError(f"{title} has a link out of its folder: '{member.name}'")
        path.symlink_to(member.link)
        return
    if member.kind == "hard":
        original = root.joinpath(*Path(member.link).parts[strip:])
        if not _inside(original, root) or not original.is_file():
            raise InputError(f"{title} has a link out of its folder: '{member.name}'")
        shutil.copy2(original, path)
        return
    if member.content is not None:
        with path.open("wb") as file:
            shutil.copyfileobj(member.content, file)
    path.chmod(0o755 if member.executable else 0o644)
    os.utime(path, (member.mtime_s, member.mtime_s))


def _inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
