"""Archives of strangers: each ends with one clear line, nothing outside, nothing left over."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import resource
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ensign.model.errors import InputError
from ensign.sources.archive_stream import Allowance, UnpackLimits
from ensign.sources.unpack import unpack

SMALL = UnpackLimits(members=2000, size_bytes=8 << 20, ratio=20, free_bytes=4 << 20)
Member = tuple[str, bytes, dict[str, object]]


def tar_bytes(*members: Member, format: int = tarfile.PAX_FORMAT) -> bytes:  # noqa: A002
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as tar:
        for name, content, attributes in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in attributes.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def refused(tmp_path: Path, data: bytes, match: str, limits: UnpackLimits = SMALL) -> None:
    """One line, bounded, with nothing for a terminal; nothing is left, nothing is outside."""
    archive = tmp_path / "hostile"
    archive.write_bytes(data)
    before = sorted(os.walk(tmp_path))
    with pytest.raises(InputError, match=match) as told:
        unpack(archive, tmp_path / "in/t", 0, "the archive", limits)
    text = str(told.value)
    assert text.startswith("the archive ")
    assert len(text) < 500
    assert text.isprintable()
    (tmp_path / "in").rmdir()
    assert sorted(os.walk(tmp_path)) == before


@pytest.mark.parametrize("packer", [gzip.compress, bz2.compress, lzma.compress])
def test_a_bomb_is_refused_before_it_fills_memory_or_disk(
    tmp_path: Path, packer: Callable[[bytes], bytes]
) -> None:
    bomb = packer(tar_bytes(("a", bytes(64 << 20), {})))
    assert len(bomb) < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(tmp_path, bomb, "would unpack to more than")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_bomb_of_members_that_are_passed_over_is_refused(tmp_path: Path) -> None:
    # A device's content is skipped; it must be unpacked all the same.
    header = bytearray(tar_bytes(("a", b"", {"type": tarfile.CHRTYPE}))[:512])
    info = tarfile.TarInfo("skipped")
    info.size, info.type = 64 << 20, b"Z"
    data = info.tobuf() + bytes(64 << 20)
    refused(
        tmp_path, gzip.compress(bytes(header) + data), "would unpack to more than|holds nothing"
    )


def test_too_many_members_too_long_names_too_deep(tmp_path: Path) -> None:
    many = tar_bytes(*((f"{n}", b"", {}) for n in range(2001)))
    refused(tmp_path, gzip.compress(many), "more than 2,000 members")
    refused(tmp_path, tar_bytes(("d/" * 300 + "f", b"", {})), "is nested too deeply")
    refused(tmp_path, tar_bytes(("d/" * 3000 + "f", b"", {})), "name that is too long")
    refused(tmp_path, tar_bytes(("n" * 300, b"", {})), "cannot be unpacked: 'n")


def test_headers_that_lie(tmp_path: Path) -> None:
    lying = tar_bytes(("a", b"x", {"pax_headers": {"size": str(1 << 60)}}))
    refused(tmp_path, lying, "would unpack to more than|cannot be unpacked")
    refused(tmp_path, tar_bytes(("a\0b", b"x", {"pax_headers": {"path": "a\0b"}})), "cannot be")
    # A pax header of 64 MiB, in a few kilobytes.
    huge = tar_bytes(("a", b"x", {"pax_headers": {"comment": "x" * (64 << 20)}}))
    refused(tmp_path, gzip.compress(huge), "a header in it is absurdly large")
    negative = tarfile.TarInfo("a").tobuf()
    negative = negative[:124] + b"\xff" * 12 + negative[136:]
    refused(tmp_path, with_checksum(negative) + bytes(1024), "more than|cannot be unpacked|neither")
    # One header that announces the next, a thousand times and more.
    chain = b"".join(long_name_header() for _ in range(3000))
    refused(tmp_path, chain + bytes(1024), "nested too deeply|cannot be unpacked|neither")


def long_name_header() -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 4
    return info.tobuf(tarfile.GNU_FORMAT) + b"abc\0" + bytes(508)


def with_checksum(header: bytes) -> bytes:
    blank = header[:148] + b" " * 8 + header[156:]
    return blank[:148] + b"%06o\0 " % sum(blank) + blank[156:]


def test_a_sparse_file_counts_as_what_it_becomes(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("holes").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:398] = b"%011o\0" % 0
    header[398:410] = b"%011o\0" % 0
    header[483:495] = b"%011o\0" % (1 << 32)
    refused(tmp_path, with_checksum(bytes(header)) + bytes(1024), "would unpack to more than")


def test_devices_and_pipes_are_passed_over(tmp_path: Path) -> None:
    data = tar_bytes(
        ("zero", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5}),
        ("pipe", b"", {"type": tarfile.FIFOTYPE}),
        ("disk", b"", {"type": tarfile.BLKTYPE, "devmajor": 8, "devminor": 0}),
        ("su", b"x", {"mode": 0o6777}),
    )
    (tmp_path / "a").write_bytes(data)
    unpack(tmp_path / "a", tmp_path / "t", 0, "the archive")
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["su"]
    assert stat.S_IMODE((tmp_path / "t/su").stat().st_mode) == 0o755


SYM, HARD = {"type": tarfile.SYMTYPE}, {"type": tarfile.LNKTYPE}


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ([("l", b"", SYM | {"linkname": "."}), ("l/f", b"x", {})], "behind a link of its own"),
        ([("d/x", b"", {}), ("l", b"", SYM | {"linkname": "d"}), ("l/f", b"x", {})], "behind a"),
        ([("l", b"", SYM | {"linkname": "/etc/passwd"})], "link out of its folder"),
        ([("h", b"", HARD | {"linkname": "/etc/passwd"})], "link out of its folder"),
        ([("h", b"", HARD | {"linkname": "../../hostile"})], "link out of its folder"),
        # Inside when it is made, outside when 'a' has become a link.
        (
            [("l", b"", SYM | {"linkname": "a/../b"}), ("a", b"", SYM | {"linkname": "."})],
            "link out of its folder",
        ),
        (
            [
                ("p", b"", {}),
                ("l", b"", SYM | {"linkname": "p"}),
                ("h", b"", HARD | {"linkname": "l"}),
            ],
            "link out of its folder",
        ),
        ([("f", b"", {}), ("f/g", b"", {})], "cannot be unpacked: 'f/g'"),
        ([("d/g", b"", {}), ("d", b"", {})], "cannot be unpacked: 'd'"),
        ([("/abs", b"", {})], "outside its folder"),
        ([("a/../../b", b"", {})], "outside its folder"),
        (
            [("l", b"", SYM | {"linkname": "x\x1b]52;c;aGk=\x07/../../.."})],
            "link out of its folder",
        ),
        ([("../\x1b[2J\u202e\n", b"", {})], "outside its folder"),
    ],
)
def test_nothing_leads_out(tmp_path: Path, members: list[Member], match: str) -> None:
    refused(tmp_path, tar_bytes(*members), match)


def test_hard_links_do_not_multiply_beyond_the_limit(tmp_path: Path) -> None:
    links: Iterable[Member] = ((f"l{n}", b"", HARD | {"linkname": "f"}) for n in range(100))
    data = tar_bytes(("f", bytes(1 << 20), {}), *links)
    refused(tmp_path, gzip.compress(data), "would unpack to more than")


def test_of_two_members_of_one_name_the_later_counts_and_odd_times_are_none(
    tmp_path: Path,
) -> None:
    times: list[dict[str, object]] = [
        {"mtime": 1e30},
        {"pax_headers": {"mtime": "nan"}},
        {"mtime": -5},
    ]
    data = tar_bytes(*((f"t{n}", b"", each) for n, each in enumerate(times)))
    data = data[: len(data) // 10240 * 10240] or data
    (tmp_path / "a").write_bytes(data)
    unpack(tmp_path / "a", tmp_path / "t", 0, "the archive")
    assert {path.stat().st_mtime for path in (tmp_path / "t").iterdir()} == {0.0}
    twice = tar_bytes(("f", b"old", {}), ("f", b"new", {}))
    (tmp_path / "b").write_bytes(twice)
    unpack(tmp_path / "b", tmp_path / "u", 0, "the archive")
    assert (tmp_path / "u/f").read_bytes() == b"new"


def test_odd_names_stay_in_their_folder(tmp_path: Path) -> None:
    names = ["back\\slash", "..\\..\\up", "new\nline", "\x1b[31m", "C:\\x", os.fsdecode(b"\xff")]
    (tmp_path / "a").write_bytes(tar_bytes(*((name, b"x", {}) for name in names)))
    unpack(tmp_path / "a", tmp_path / "t", 0, "the archive")
    assert {path.name for path in (tmp_path / "t").iterdir()} == set(names)


def test_too_slow_is_refused() -> None:
    now = iter(range(0, 10_000, 100))
    allowance = Allowance("the archive", 1, UnpackLimits(seconds=150), lambda: float(next(now)))
    allowance.in_time()
    with pytest.raises(InputError, match="cannot be unpacked within"):
        allowance.in_time()


def zip_bytes(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def test_zips_that_lie(tmp_path: Path) -> None:
    refused(tmp_path, zip_bytes(("a", bytes(64 << 20))), "would unpack to more than")
    plain = zip_bytes(("a", b"hello"), method=zipfile.ZIP_STORED)
    refused(tmp_path, plain.replace(b"hello", b"jello"), "cannot be unpacked .*Bad CRC")
    at = plain.index(b"PK\x01\x02")
    encrypted = plain[: at + 8] + b"\x01" + plain[at + 9 :]
    refused(tmp_path, encrypted, "is encrypted")
    unknown = plain[: at + 10] + struct.pack("<H", 99) + plain[at + 12 :]
    refused(tmp_path, unknown, "unsupported compression")
    refused(tmp_path, zip_bytes(("a", b"x"), method=zipfile.ZIP_LZMA), "unsupported compression")
    refused(tmp_path, zip_bytes(("../a", b"x")), "outside its folder")
    refused(tmp_path, zip_bytes(("/a", b"x")), "outside its folder")
    cut = zip_bytes(*((f"{n}", b"x" * 100) for n in range(50)))
    refused(tmp_path, cut[: len(cut) // 2], "neither a tar nor a zip")


def test_a_zip_whose_members_share_bytes_is_refused(tmp_path: Path) -> None:
    whole = zip_bytes(("a", b"x" * 1000), ("b", b"x" * 1000))
    second = whole.rindex(b"PK\x01\x02")
    shared = whole[: second + 42] + struct.pack("<L", 0) + whole[second + 46 :]
    refused(tmp_path, shared, "overlap|cannot be unpacked")


def test_a_zip_with_a_date_that_is_none_is_unpacked(tmp_path: Path) -> None:
    plain = zip_bytes(("a", b"hello"), method=zipfile.ZIP_STORED)
    at = plain.index(b"PK\x01\x02")
    for date in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        (tmp_path / "z").write_bytes(plain[: at + 12] + date + plain[at + 16 :])
        unpack(tmp_path / "z", tmp_path / date.hex(), 0, "the archive")
        assert (tmp_path / date.hex() / "a").read_bytes() == b"hello"


def test_xz_may_not_take_all_memory(tmp_path: Path) -> None:
    packed = lzma.compress(tar_bytes(("a", b"x", {})), filters=[{"id": lzma.FILTER_LZMA2}])
    # The size of the dictionary is a byte of the block's header: as large as there is.
    header = bytearray(packed)
    at = header.index(b"\x21\x01") + 2
    header[at] = 40
    size = (header[12] + 1) * 4
    checksum = zlib.crc32(bytes(header[12 : 12 + size - 4]))
    header[12 + size - 4 : 12 + size] = struct.pack("<L", checksum)
    refused(tmp_path, bytes(header), "cannot be unpacked .*Memory usage limit exceeded")
