"""Files that are damaged anywhere are read as far as they go, or not at all; nothing else happens.

The same damage each time (`derandomize`), for a few seconds.
"""

from __future__ import annotations

import errno
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensign.proof import bounded_elf
from ensign.proof.archives import read_archive
from ensign.proof.elf import exported, read_binary
from ensign.proof.loaded_bytes import read_artifact, read_built, read_dynamic
from ensign.proof.objects import objects_below

SOURCE = '#include <stdio.h>\nint shared(int n) { return printf("%d", n); }\n'
MAIN = "int shared(int);\nint main(void) { return shared(3); }\n"
BUILD = """
gcc-12 -g -O2 -c -o shared.o shared.c
gcc-12 -g -O2 -flto -c -o main.o main.c
gcc-ar-12 rcs libshared.a shared.o main.o
gcc-12 -shared -fPIC -g -O2 -o libshared.so shared.c
gcc-12 -O2 -o program main.c shared.c
"""
READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("program", read_binary),
    ("program", read_artifact),
    ("program", lambda path: read_built(path, "program")),
    ("libshared.so", read_binary),
    ("libshared.so", read_dynamic),
    ("libshared.so", exported),
    ("shared.o", lambda path: objects_below({"shared.o": path})),
    ("main.o", lambda path: objects_below({"main.o": path})),
    ("libshared.a", read_archive),
    ("libshared.a", lambda path: objects_below({"libshared.a": path})),
]
# Where a byte is changed: a part of the file's length. Headers stand at both ends.
PLACES = st.one_of(st.floats(0, 1), st.integers(0, 255).map(lambda at: at / 1e6), st.floats(0.9, 1))
DAMAGE = st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "shared.c").write_text(SOURCE)
    (folder / "main.c").write_text(MAIN)
    subprocess.run(["sh", "-e", "-c", BUILD], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("name", "reader"), READERS)
def test_whole_files_are_read(files: Path, name: str, reader: Callable[[Path], object]) -> None:
    assert reader(files / name)


@pytest.mark.parametrize(("name", "reader"), READERS)
@settings(
    derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(damage=DAMAGE, length=st.one_of(st.just(1.0), st.floats(0, 1)))
def test_damaged_files_harm_nobody(
    files: Path,
    tmp_path: Path,
    name: str,
    reader: Callable[[Path], object],
    damage: list[tuple[float, int]],
    length: float,
) -> None:
    whole = (files / name).read_bytes()
    data = bytearray(whole[: int(len(whole) * length)])
    for place, byte in damage:
        at = int(place * 1e6) if place < 256 / 1e6 else int(place * (len(data) - 1))
        if at < len(data):
            data[at] = byte
    path = tmp_path / name
    path.write_bytes(data)
    reader(path)


@pytest.mark.parametrize("flags", [(), ("-gz",)])
def test_debug_information_is_read_in_each_form(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    build = ("gcc-12", "-g", "-O2", *flags, "-o", "program", "main.c")
    subprocess.run(build, cwd=tmp_path, check=True)
    alone = ("objcopy", "--only-keep-debug", "program", "alone")
    subprocess.run(alone, cwd=tmp_path, check=True)
    for name in ("program", "alone"):
        binary = read_binary(tmp_path / name)
        assert binary is not None
        assert [unit.compiler for unit in binary.units] == ["GCC 12.2.0"]


def test_want_of_files_is_not_taken_for_damage(files: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            read_binary(files / "program")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("refusal", [OSError(errno.EIO, "Input/output error"), MemoryError()])
def test_a_read_that_the_system_refuses_is_no_damage(
    files: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    """Whichever it is of the reads: what was read of a file would be that of another one."""
    whole, reads = bounded_elf._BoundedStream.read, 0
    refused = 0

    def read(self: bounded_elf._BoundedStream, size: int | None = -1, /) -> bytes:
        nonlocal reads
        reads += 1
        if reads == refused:
            raise refusal
        return whole(self, size)

    monkeypatch.setattr(bounded_elf._BoundedStream, "read", read)
    assert read_artifact(files / "program") is not None
    total = reads
    for number in (*range(1, 40), *range(40, total, total // 20)):
        refused, reads = number, 0
        with pytest.raises(type(refusal)):
            read_artifact(files / "program")
