"""Files as one bundle: a zip with a manifest of their hashes, the same bytes for the same files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from pydantic import BaseModel, ConfigDict

from ensign.host.files import storage_errors
from ensign.host.regular_file import archive_errors, open_sized, read_json, read_regular
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.units import format_size
from ensign.store.trial_file import SUFFIX as TRIAL

SCHEMA = 2
SUFFIX = ".zip"
_MANIFEST = "manifest.json"
_SIGNATURE = "manifest.json.sig"
_START = b"PK\x03\x04"
_TIME = (1980, 1, 1, 0, 0, 0)
_FILE_MODE = 0o100644
_UNIX = 3
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MANIFEST_LIMIT_BYTES = 64 << 20
_SIGNATURE_LIMIT_BYTES = 64 << 10
_LARGEST_DIRECTORY_BYTES = 1 << 20
_NAME_BYTES = 160  # of a file in the list, with what is said of it
_MEMBER = b"PK\x01\x02"
_END, _LOCATOR, _END_64 = b"PK\x05\x06", b"PK\x06\x07", b"PK\x06\x06"
_END_BYTES, _LOCATOR_BYTES, _END_64_BYTES = 22, 20, 56
_LONGEST_COMMENT_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BundleLimits:
    """Limits of a bundle, before anything of it is unpacked."""

    members: int = 200_000
    member_bytes: int = 256 << 20
    size_bytes: int = 4 << 30


class _BundleMember(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    sha256: str
    size_bytes: int


class Manifest(BaseModel):
    """Manifest of a bundle: name of its study file, who made it, hash and size by name."""

    model_config = ConfigDict(frozen=True, strict=True)

    schema_version: int
    study: str
    ensign: str
    members: Mapping[str, _BundleMember]


class BundleChanged(InputError):
    """A bundle whose content is not what its manifest says."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Signed text, the manifest with all hashes, and the signature; None without one."""

    manifest: bytes
    signature: bytes | None


def pack(
    study: str,
    version: str,
    members: Mapping[str, bytes],
    sign: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """The bundle of these files. Pure; equal files give equal bytes, whenever they were made.

    `study` is the study file's name among the members, `version` that of the ensign that packs.
    `sign` gives the signature of the manifest, which travels inside.
    """
    document = {
        "schema_version": SCHEMA,
        "study": study,
        "ensign": version,
        "members": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
            for name, data in members.items()
        },
    }
    manifest = json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
    first = {_MANIFEST: manifest, **({} if sign is None else {_SIGNATURE: sign(manifest)})}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in [*first.items(), *sorted(members.items())]:
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = _UNIX, _FILE_MODE << 16
            stored = name.endswith(TRIAL)
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def is_bundle(path: Path) -> bool:
    """True if a file is one by its first bytes or its name: also where the rest is damaged."""
    try:
        return read_regular(path, len(_START)) == _START or path.suffix == SUFFIX
    except OSError:
        return False


def unpack(path: Path, folder: Path, limits: BundleLimits = BundleLimits()) -> Manifest:
    """Writes the files of a bundle below an empty folder.

    InputError where it is cut off, changed, of a newer ensign, too large, or where a name leads out
    of the folder; names and sizes are judged before anything is written.
    """
    with _archive(path, limits) as archive:
        infos = _infos(path, archive)
        manifest = _manifest(path, archive, infos.pop(_MANIFEST, None))
        infos.pop(_SIGNATURE, None)
        _check_members(path, manifest, infos, limits)
        for name, info in infos.items():
            data = archive.read(info)
            if hashlib.sha256(data).hexdigest() != manifest.members[name].sha256:
                raise _changed(path, name)
            _write(folder / name, data)
    return manifest


def read_signed(path: Path, limits: BundleLimits = BundleLimits()) -> Signed:
    """Signed part of a bundle. InputError as `unpack`."""
    with _archive(path, limits) as archive:
        infos = _infos(path, archive)
        _manifest(path, archive, infos.get(_MANIFEST))
        info = infos.get(_SIGNATURE)
        if info is None:
            return Signed(archive.read(_MANIFEST), None)
        if info.file_size > _SIGNATURE_LIMIT_BYTES or not _is_plain(info):
            raise _changed(path, _SIGNATURE)
        return Signed(archive.read(_MANIFEST), archive.read(info))


@contextmanager
def _archive(path: Path, limits: BundleLimits) -> Iterator[zipfile.ZipFile]:
    """Opens it. InputError where it is no archive, or larger than any bundle."""
    try:
        file = open_sized(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    damaged = f"{path} is not a complete bundle of ensign; copy or make it again"
    with archive_errors(damaged), file:
        _require_bounded(path, file, limits)
        with zipfile.ZipFile(file) as archive:
            yield archive


def _require_bounded(path: Path, file: IO[bytes], limits: BundleLimits) -> None:
    """InputError where merely listing what is in it would take much memory."""
    listed = listed_files(file, limits.members * _NAME_BYTES + _LARGEST_DIRECTORY_BYTES)
    if listed is None or listed > limits.members + len((_MANIFEST, _SIGNATURE)):
        raise InputError(
            f"{path} is refused: it lists more files than a bundle may hold ({limits.members:,})"
        )
    file.seek(0)


def _infos(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) != len(archive.infolist()):
        raise InputError(f"{path} is damaged: it has two files of one name")
    return infos


def _manifest(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo | None) -> Manifest:
    if info is None or info.file_size > _MANIFEST_LIMIT_BYTES or not _is_plain(info):
        raise InputError(f"{path} is no bundle of ensign: it has no {_MANIFEST}")
    try:
        manifest = read_json(archive.read(info))
        schema = manifest["schema_version"]
        if isinstance(schema, int) and schema != SCHEMA:
            other = "a newer" if schema > SCHEMA else "the older"
            raise InputError(
                f"{path} is a bundle of schema {schema}, made by ensign {manifest.get('ensign')}; "
                f"this ensign reads schema {SCHEMA}: use {other} one"
            )
        return Manifest.model_validate(manifest)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged: its {_MANIFEST} cannot be read") from None


def _check_members(
    path: Path, manifest: Manifest, infos: Mapping[str, zipfile.ZipInfo], limits: BundleLimits
) -> None:
    sizes = [info.file_size for info in infos.values()]
    large = max(sizes, default=0) > limits.member_bytes or sum(sizes) > limits.size_bytes
    if large or len(sizes) > limits.members:
        raise InputError(
            f"{path} is refused: it would unpack to {len(sizes)} files, "
            f"{format_size(sum(sizes))} in all, the largest of {format_size(max(sizes))}"
        )
    for name, info in infos.items():
        if not _is_safe(name):
            raise InputError(f"{path} is refused: {quoted(name)} would lead out of its folder")
        known = manifest.members.get(name)
        if known is None or known.size_bytes != info.file_size or not _is_plain(info):
            raise _changed(path, name)
    missing = sorted(set(manifest.members).difference(infos))
    if missing or manifest.study not in infos:
        raise _changed(path, (missing or [manifest.study])[0])


def _changed(path: Path, name: str) -> InputError:
    return BundleChanged(
        f"{path} was changed after it was made: {quoted(name)} is not what its manifest says"
    )


def _is_plain(info: zipfile.ZipInfo) -> bool:
    return info.compress_type in _METHODS


def _is_safe(name: str) -> bool:
    pure = PurePosixPath(name)
    odd = "\\" in name or not name.isprintable()
    return not (odd or pure.is_absolute() or ".." in pure.parts or str(pure) != name or name == ".")


def _write(target: Path, data: bytes) -> None:
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def listed_files(file: IO[bytes], most_bytes: int) -> int | None:
    """Number of files that are listed; None where the list is larger than `most_bytes`.

    0 for what is no archive. Found where `zipfile` finds it, and counted, whatever is said there.
    """
    end_at, size_bytes = _end_of(file)
    if end_at < 0:
        return 0
    if size_bytes > most_bytes:
        return None
    start = max(0, end_at - _LOCATOR_BYTES - _END_64_BYTES - size_bytes)
    file.seek(start)
    left, count, before = end_at - start, 0, b""
    while left > 0:
        data = before + file.read(min(left, _CHUNK_BYTES))
        if len(data) == len(before):
            break
        count += data.count(_MEMBER)
        left -= len(data) - len(before)
        before = data[-(len(_MEMBER) - 1) :]
    return count


def _end_of(file: IO[bytes]) -> tuple[int, int]:
    """End of the list, and how many bytes it is said to have."""
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
