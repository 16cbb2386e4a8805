"""Files and trees of files: written whole or not at all, hashed, copied, locked."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from ensign.model.errors import InputError, StorageFailed

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that it has its old content or the new, whatever happens meanwhile.

    StorageFailed where it cannot be written; no temporary file is left then.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    with storage_errors(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write into a StorageFailed that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            advice = "make space there ('ensign clean' empties ensign's own cache)"
            raise StorageFailed(f"cannot write {path}: the disk is full; {advice}") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EIO):
            raise StorageFailed(f"cannot write {path}: {error.strerror}") from error
        raise


def check_writable(path: Path) -> None:
    """InputError where a file could not be written, so that this shows before hours of work."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: the folder {folder} does not exist")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: writing to {folder} is not permitted")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_entries(root: Path, exclude: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Everything below a folder, in a fixed order, as relative name and path.

    `exclude` has glob patterns; one without a slash is matched against each last component, one
    with a slash against the whole relative name, with or without a slash before it. What is below
    an excluded folder is left out.
    """
    yield from _walk(root, "", tuple(pattern.rstrip("/") for pattern in exclude))


def _walk(folder: Path, prefix: str, exclude: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        relative = prefix + path.name
        if any(fnmatch(relative if "/" in p else path.name, p.lstrip("/")) for p in exclude):
            continue
        yield relative, path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, relative + "/", exclude)


def is_file(path: Path) -> bool:
    """Whether there is such a file; a word that is too long for a name is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """As `is_file`, of folders."""
    try:
        return path.is_dir()
    except OSError:
        return False


def tree_sha256(root: Path, exclude: Sequence[str] = ()) -> str:
    """SHA-256 over names, kinds, contents, link targets and the executable bit of a tree.

    Times and owners do not count, nor do the other permission bits, which depend on the umask of
    whoever unpacked it.
    """
    digest = hashlib.sha256()
    for name, path in tree_entries(root, exclude):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            kind, content = b"link", os.fsencode(path.readlink())
        elif stat.S_ISDIR(status.st_mode):
            kind, content = b"folder", b""
        elif stat.S_ISREG(status.st_mode):
            executable = status.st_mode & stat.S_IXUSR
            kind = b"program" if executable else b"file"
            content = file_sha256(path).encode()
        else:
            continue  # sockets, pipes, devices: nobody copies them
        for part in (os.fsencode(name), kind, content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def copy_tree(source: Path, target: Path, exclude: Sequence[str] = ()) -> None:
    """Copy a tree into a new folder: links stay links, times stay, files get their own inodes.

    Whoever copies may write to the copy, also where the original is read-only. Sockets, pipes and
    devices are left out. StorageFailed when the disk is full.
    """
    with storage_errors(target):
        target.mkdir(parents=True)
        folders = [(source, target)]
        for name, path in tree_entries(source, exclude):
            copy = target / name
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                copy.symlink_to(path.readlink())
            elif stat.S_ISDIR(mode):
                copy.mkdir()
                folders.append((path, copy))
            elif stat.S_ISREG(mode):
                copy_file(path, copy)
        for original, copy in reversed(folders):
            shutil.copystat(original, copy)
            copy.chmod(stat.S_IMODE(copy.stat().st_mode) | stat.S_IRWXU)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file with its times and rights; whoever copies may write to the copy."""
    shutil.copy2(source, target)
    mode = stat.S_IMODE(target.stat().st_mode)
    if not mode & stat.S_IWUSR:
        target.chmod(mode | stat.S_IWUSR)


def tree_size_bytes(root: Path) -> int:
    """Return the bytes that a tree takes on disk; a file with several names counts once."""
    seen: set[int] = set()
    total = 0
    for _, path in tree_entries(root):
        status = path.lstat()
        if status.st_ino not in seen:
            seen.add(status.st_ino)
            total += status.st_blocks * 512
    return total


def remove_tree(root: Path) -> None:
    """Remove a folder and all below it, also where a build took away its own permissions."""

    def allow(function: object, path: str, error: object) -> None:
        del function, error
        Path(path).parent.chmod(0o700)
        if Path(path).is_dir() and not Path(path).is_symlink():
            Path(path).chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    if root.exists():
        shutil.rmtree(root, onerror=allow)


def try_lock(path: Path, *, shared: bool) -> int | None:
    """Lock a file or folder for as long as the descriptor returned is open; None if another has it.

    The lock ends with the process that holds it, also when it is killed.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for, and hold, the lock of a file, which is made where it is missing."""
    with storage_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
