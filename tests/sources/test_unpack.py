from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from ensign.model.errors import InputError
from ensign.sources.unpack import unpack


def tar_of(path: Path, *members: tuple[str, bytes, dict[str, object]]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content, attributes in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1_000_000_000
            for key, value in attributes.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_a_tar_keeps_times_links_and_programs(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "a.tar.gz",
        ("p-1/", b"", {"type": tarfile.DIRTYPE}),
        ("p-1/configure", b"#!/bin/sh\n", {"mode": 0o775}),
        ("p-1/src/main.c", b"int x;\n", {"mode": 0o666}),
        ("p-1/link", b"", {"type": tarfile.SYMTYPE, "linkname": "src/main.c"}),
        ("p-1/hard", b"", {"type": tarfile.LNKTYPE, "linkname": "p-1/src/main.c"}),
    )
    unpack(archive, tmp_path / "t", 1, "archive")
    assert (tmp_path / "t/link").read_text() == "int x;\n"
    assert (tmp_path / "t/hard").read_text() == "int x;\n"
    assert (tmp_path / "t/configure").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "t/src/main.c").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "t/src/main.c").stat().st_mtime == 1_000_000_000


@pytest.mark.parametrize(
    "members",
    [
        [("p/../../evil", b"x", {})],
        [("/p/evil", b"x", {})],
        [("p/out", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc"})],
        [("p/out", b"", {"type": tarfile.SYMTYPE, "linkname": "../../x"})],
        [("p/out", b"", {"type": tarfile.LNKTYPE, "linkname": "p/../../../x"})],
    ],
)
def test_nothing_leaves_the_folder(
    tmp_path: Path, members: list[tuple[str, bytes, dict[str, object]]]
) -> None:
    archive = tar_of(tmp_path / "a.tar.gz", *members)
    with pytest.raises(InputError, match="folder: '"):
        unpack(archive, tmp_path / "deep/t", 1, "archive")
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "deep/evil").exists()


def test_a_zip_is_unpacked_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        info = zipfile.ZipInfo("p/run")
        info.external_attr = 0o100755 << 16
        file.writestr(info, "#!/bin/sh\n")
    unpack(tmp_path / "a.zip", tmp_path / "t", 1, "archive")
    assert (tmp_path / "t/run").stat().st_mode & 0o777 == 0o755


def test_what_is_no_archive_or_broken_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    with pytest.raises(InputError, match="neither a tar nor a zip"):
        unpack(tmp_path / "a", tmp_path / "t", 1, "the archive")
    whole = tar_of(tmp_path / "w.tar.gz", ("p/a", bytes(range(256)) * 999, {})).read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(tmp_path / "half.tar.gz", tmp_path / "t2", 1, "the archive")
    with pytest.raises(InputError, match="holds nothing"):
        unpack(tar_of(tmp_path / "b.tar.gz", ("a", b"x", {})), tmp_path / "t3", 1, "the archive")
