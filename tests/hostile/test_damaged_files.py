"""Files that were made to harm whoever looks at them: `ensign doctor` and `report` refuse them.

Each in a process of its own with little memory and CPU time, as anybody's shell may give it.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ensign.model.errors import InputError
from ensign.store.bundle import pack
from ensign.store.trial_file import from_bytes
from fuzz.check import corpus_of
from fuzz.targets import TARGETS
from unwrapped import unwrapped

CPU_S = 30
MEMORY_BYTES = 3 << 30
SECTION = struct.Struct("<IIQQQQIIQQ")
NAMES = (
    b"\0.comment\0.debug_info\0.debug_abbrev\0.symtab\0.strtab\0.names"
    b"\0.zdebug_info\0.zdebug_abbrev\0"
)


def ensign(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    return subprocess.run(
        [str(Path(sys.executable).parent / "ensign"), *argv],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limit,  # one thread
        capture_output=True,
        text=True,
        check=False,
    )


def elf(*sections: tuple[str, int, int, bytes, int], claimed: int | None = None) -> bytes:
    """A program of sections: name, type, flags, content and claimed size (0: as it is)."""
    at, content, rows = 64, b"", [SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    for name, kind, flags, data, claims in (*sections, (".names", 3, 0, NAMES, 0)):
        start = NAMES.index(name.encode() + b"\0")
        link = 1 + [each[0] for each in sections].index(".strtab") if kind == 2 else 0
        size = claims or len(data)
        rows.append(SECTION.pack(start, kind, flags, 0, at, size, link, 0, 1, 24))
        content += data
        at += len(data)
    count = len(rows) if claimed is None else 0
    if claimed is not None:
        rows[0] = SECTION.pack(0, 0, 0, 0, 0, claimed, 0, 0, 0, 0)
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 56, 0, 64, count, len(rows) - 1
    )
    return head + content + b"".join(rows)


def endless_number() -> bytes:
    unit = struct.pack("<IHBBI", 8 + 400_000, 5, 1, 8, 0)
    info = (".debug_info", 1, 0, unit + b"\x80" * 400_000, 0)
    return elf(info, (".debug_abbrev", 1, 0, b"\x80" * 400_000, 0))


def long_names() -> bytes:
    symbols = b"".join(struct.pack("<IBBHQQ", at, 0x12, 0, 1, 0, 0) for at in range(20_000))
    return elf((".symtab", 2, 0, symbols, 0), (".strtab", 3, 0, b"a" * 400_000 + b"\0", 0))


def compressed_zeros() -> bytes:
    header = struct.pack("<IIQQ", 1, 0, 1 << 40, 1)
    return elf((".comment", 1, 0x800, header + b"\x78\x9c" + bytes(1000), 0))


PROGRAMS: dict[str, Callable[[], bytes]] = {
    "nothing, of a terabyte": lambda: elf((".comment", 8, 0, b"", 1 << 40)),
    "a length beyond the file": lambda: elf((".comment", 1, 0, b"GCC: 12", 1 << 62)),
    "a million million sections": lambda: elf(claimed=1 << 60),
    "a number without an end": endless_number,
    "names that hold one another": long_names,
    "what unpacks to a terabyte": compressed_zeros,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("file", ["program", "part.o"])
def test_a_hostile_program_is_read_or_refused(name: str, file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(PROGRAMS[name]())
    done = ensign(tmp_path, "doctor", file)
    assert done.returncode in (0, 2), done.stderr
    assert len(done.stderr.splitlines()) == (1 if done.returncode else 0)
    assert [path.name for path in tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("member", ["/dev/zero", "pipe", "libx.a", "/proc/self/mem"])
def test_a_thin_archive_of_what_is_no_file(member: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    names = f"{member}/\n".encode()
    names += b"\n" * (len(names) % 2)
    header = "{:<48}{:<10}`\n"
    data = b"!<thin>\n" + header.format("//", len(names)).encode() + names
    (tmp_path / "libx.a").write_bytes(data + header.format("/0", 10**9).encode())
    done = ensign(tmp_path, "doctor", "libx.a")
    assert done.returncode in (0, 2), done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_an_archive_that_claims_more_than_there_is(tmp_path: Path) -> None:
    with (tmp_path / "libx.a").open("wb") as file:
        file.write(b"!<arch>\n" + "{:<48}{:<10}`\n".format("a.o/", 9_999_999_999).encode())
        file.truncate(11 << 30)
    done = ensign(tmp_path, "doctor", "libx.a")
    assert done.returncode in (0, 2), done.stderr


def test_an_object_of_holes(tmp_path: Path) -> None:
    with (tmp_path / "part.o").open("wb") as file:
        file.write(elf())
        file.truncate(64 << 30)
    done = ensign(tmp_path, "doctor", "part.o")
    assert done.returncode in (0, 2), done.stderr


def bundle(tmp_path: Path, change: Callable[[dict[str, bytes]], None]) -> None:

    with zipfile.ZipFile(io.BytesIO(corpus_of(TARGETS["report"])["study.zip"])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    del members["manifest.json"]
    change(members)
    (tmp_path / "b.zip").write_bytes(pack("study.toml", "0.1.0", members))


def deep(members: dict[str, bytes]) -> None:
    members[".ensign/small/study.json"] = b'{"a":' * 100_000


def impossible(members: dict[str, bytes]) -> None:
    for name in [each for each in members if each.endswith(".csv.gz")]:
        header = json.loads(gzip.decompress(members[name]).partition(b"\n")[0])
        for variant in header["trial"]["variants"]:
            variant |= {"wall_ns": -5, "cpu_ns": 0, "operations": 0, "score": float("nan")}
        members[name] = gzip.compress(json.dumps(header).encode() + b"\nvariant\nx\n")


def garbled(members: dict[str, bytes]) -> None:
    for name in [each for each in members if each.endswith(".csv.gz")]:
        members[name] = members[name][:-200] + b"\xff" * 190 + members[name][-10:]


@pytest.mark.parametrize("change", [deep, impossible, garbled])
def test_evidence_that_was_made_up_is_refused_in_one_line(
    change: Callable[[dict[str, bytes]], None], tmp_path: Path
) -> None:
    bundle(tmp_path, change)
    for argv in (
        ("report", "b.zip"),
        ("diff-studies", "b.zip", "b.zip"),
        ("merge", "b.zip", "b.zip"),
    ):
        done = ensign(tmp_path, *argv)
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


@pytest.mark.parametrize("place", [8, -300])
def test_a_trial_with_damaged_slices_is_none(place: int) -> None:
    data = corpus_of(TARGETS["trial"])["seed-1"]
    damaged = bytearray(data)
    damaged[place : place + 200] = b"\xff" * 200
    with pytest.raises(InputError, match="not a trial"):
        from_bytes(bytes(damaged))


def old_form() -> bytes:
    packed = zlib.compress(bytes(200 << 20), 9)
    data = b"ZLIB" + (200 << 20).to_bytes(8, "big") + packed
    return elf((".zdebug_info", 1, 0, data, 0), (".zdebug_abbrev", 1, 0, data, 0))


def test_what_unpacks_to_more_than_debug_information_does(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(old_form())
    done = ensign(tmp_path, "doctor", "program")
    assert done.returncode == 0, done.stderr
    assert "it cannot be read" in unwrapped(done.stdout)
