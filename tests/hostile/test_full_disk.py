"""A disk that is full is said to be full: which one, and what to do; never something else."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from ensign.host.cache import Cache
from ensign.host.files import copy_tree, storage_errors, write_atomically
from ensign.host.processes import Outcome, ProcessRequest
from ensign.host.storage import full_file_system, storage_failure
from ensign.model.errors import CommandFailed, EnsignError, InputError, StorageFailed
from ensign.sources.unpack import unpack
from ensign.toolchains.find import ToolchainFinder
from fakes import FakeProcesses

ENSIGN = str(Path(sys.executable).with_name("ensign"))
GCC = shutil.which("gcc-12") or shutil.which("gcc")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB; its own mount, which needs root."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=1777", "none", str(place)],
        capture_output=True, check=False,
    ) if shutil.which("mount") else None  # fmt: skip
    if mounted is None or mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, left_bytes: int = 0) -> None:
    """Leave so many bytes."""
    with (place / "filling").open("wb", buffering=0) as file, storage_expected():
        while True:
            room = os.statvfs(place)
            least = room.f_bavail * room.f_frsize - left_bytes
            file.write(bytes(min(max(least, 1), 1 << 16)))
            if room.f_bavail * room.f_frsize <= left_bytes:
                return


class storage_expected:  # noqa: N801  # a context manager
    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        return isinstance(error, OSError) and error.errno == errno.ENOSPC


def ensign(
    *arguments: str, env: dict[str, str], cwd: Path, stdout: int | IO[str] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    lock = {name: os.environ[name] for name in ("ENSIGN_RACE_LOCK",) if name in os.environ}
    return subprocess.run(
        [ENSIGN, *arguments], cwd=cwd, env={"PATH": os.environ["PATH"], **lock, **env},
        stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=280,
    )  # fmt: skip


def assert_full(done: subprocess.CompletedProcess[str], status: int = 3) -> None:
    assert done.returncode == status, done.stderr
    assert "disk is full" in done.stderr, done.stderr
    assert "neither GCC nor Clang" not in done.stderr
    assert "Traceback" not in done.stderr


def study(folder: Path, build: str = "gcc-12 -O2 -o program main.c") -> Path:
    source = folder / "source"
    source.mkdir()
    (source / "main.c").write_text("int main(void) { return 0; }\n")
    compiler = Path(GCC or "gcc").name
    path = folder / "s.toml"
    path.write_text(
        'name = "s"\n[source]\nkind = "path"\npath = "source"\n[build]\n'
        f"commands = [{['sh', '-c', build.replace('gcc-12', compiler)]!r}]\n"
        f'artifact = "program"\n[axes]\ncompiler = ["{compiler}"]\n'
        f'[baseline]\ncompiler = "{compiler}"\n[check]\nsame_output = []\n'
        '[race]\nbudget = "2s"\n[[workloads]]\nname = "w"\ncommand = ["{artifact}"]\n'
    )
    return path


@pytest.mark.skipif(GCC is None, reason="there is no gcc")
@pytest.mark.parametrize("left_bytes", [0, 64 << 10, 300 << 10])
def test_a_full_cache_is_told_and_not_the_compiler_blamed(
    small: Path, tmp_path: Path, left_bytes: int
) -> None:
    path = study(tmp_path)
    (small / "cache").mkdir()
    fill(small, left_bytes)
    env = {"HOME": str(tmp_path), "ENSIGN_CACHE": str(small / "cache")}
    done = ensign("run", str(path), env=env, cwd=tmp_path)
    if left_bytes < 300 << 10 or done.returncode:
        assert_full(done)
        assert str(small) in done.stderr
    (small / "filling").unlink()
    assert ensign("clean", env=env, cwd=tmp_path).returncode == 0


@pytest.mark.skipif(GCC is None, reason="there is no gcc")
def test_a_build_that_fills_the_disk_is_told_as_that(small: Path, tmp_path: Path) -> None:
    path = study(tmp_path, "head -c 50000000 /dev/zero > big && gcc-12 -o program main.c")
    env = {"HOME": str(tmp_path), "ENSIGN_CACHE": str(small / "cache")}
    done = ensign("run", str(path), env=env, cwd=tmp_path)
    assert_full(done)
    assert str(small) in done.stderr


def test_a_full_temporary_folder_is_told(small: Path, tmp_path: Path) -> None:
    fill(small)
    env = {"HOME": str(tmp_path), "TMPDIR": str(small), "ENSIGN_CACHE": str(tmp_path / "c")}
    done = ensign("compare", "true", "true 2", "--budget", "2s", env=env, cwd=tmp_path)
    assert_full(done)


def test_results_on_a_full_disk_are_told(small: Path, tmp_path: Path) -> None:
    fill(small)
    env = {"HOME": str(tmp_path), "ENSIGN_CACHE": str(tmp_path / "c")}
    for option in ("--html", "--json", "--csv"):
        target = str(small / "out")
        done = ensign(
            "compare", "true", "true 2", "--budget", "1s", option, target, env=env, cwd=tmp_path
        )
        assert_full(done)
        assert not Path(target).exists()
    assert [each.name for each in small.iterdir()] == ["filling"]


@pytest.mark.parametrize("arguments", [("schema",), ("--version",), ("doctor", "--no-race")])
def test_standard_output_on_a_full_device_is_told(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    env = {"HOME": str(tmp_path), "ENSIGN_CACHE": str(tmp_path / "c")}
    with Path("/dev/full").open("w") as full:
        done = ensign(*arguments, env=env, cwd=tmp_path, stdout=full)
    assert_full(done)
    assert done.stderr.count("\n") <= 2


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "Read-only"),
        (errno.EACCES, "Permission denied"),
        (errno.EMFILE, "too many files are open"),
        (errno.ENFILE, "too many files are open"),
        (errno.ENOMEM, "not enough memory"),
        (errno.EIO, "Input/output error"),
        (errno.EFBIG, "File too large"),
    ],
)
def test_each_refusal_is_a_storage_failure_that_says_which(
    tmp_path: Path, number: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    with pytest.raises(StorageFailed, match=said) as told, storage_errors(tmp_path / "x"):
        refuse()
    assert str(tmp_path / "x") in str(told.value)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/f").write_text("x")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        with pytest.raises(StorageFailed, match=said):
            copy_tree(tmp_path / "t", tmp_path / "copy")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(EnsignError, match=said):
            write_atomically(tmp_path / "w", b"x")
    assert not (tmp_path / "w").exists()
    assert storage_failure(OSError(errno.EDOM, "x")) is None


def test_a_full_disk_while_unpacking_or_making_leaves_nothing(small: Path, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    (tmp_path / "big").write_bytes(os.urandom(4 << 20))
    subprocess.run(["tar", "-C", str(tmp_path), "-czf", str(archive), "big"], check=True)
    with pytest.raises(StorageFailed, match="the disk is full"):
        unpack(archive, small / "t", 0, "the archive")
    assert list(small.iterdir()) == []
    cache = Cache(small / "cache")

    def make(folder: Path) -> dict[str, object]:
        (folder / "f").write_bytes(bytes(4 << 20))
        return {}

    with pytest.raises(StorageFailed, match="the disk is full"):
        cache.make("program", "1", make)
    assert list((small / "cache/temporary").iterdir()) == []
    assert full_file_system(small) == ""


@pytest.mark.parametrize(
    ("outcome", "kind", "said"),
    [
        (Outcome(1, None, "exited", tail="x: error: what?"), InputError, "neither GCC nor Clang"),
        (Outcome(None, 9, "exited"), CommandFailed, "died of signal 9; is there memory"),
        (Outcome(None, None, "deadline"), CommandFailed, "timed out"),
        (Outcome(None, None, "memory"), CommandFailed, "cannot try"),
        (Outcome(None, None, "not-found", tail="Permission denied"), InputError, "executed: Perm"),
        (
            Outcome(1, None, "exited", tail="cc1: out of memory allocating 65536 bytes"),
            CommandFailed,
            "not enough memory",
        ),
    ],
)
def test_a_compiler_that_fails_for_another_reason_is_not_called_unknown(
    tmp_path: Path, outcome: Outcome, kind: type[EnsignError], said: str
) -> None:
    compiler = tmp_path / "gcc-99"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)

    def answer(request: ProcessRequest) -> Outcome:
        del request
        return outcome

    finder = ToolchainFinder(FakeProcesses(answer), tmp_path / "scratch", str(tmp_path))
    with pytest.raises(kind, match=said) as told:
        finder.find("gcc-99")
    if "unknown" not in said and kind is not InputError:
        assert "neither" not in str(told.value)
