"""Root directories of strangers: nothing lands, or is looked up, outside of them."""

import io
import tarfile
from pathlib import Path

import pytest

from ensign.host.confinement import View, bubblewrap_argv
from ensign.host.root_directory import RootDirectory, root_view
from ensign.model.errors import InputError
from ensign.sources.environment_pins import RootPin, drift, read_pin, read_pins, write_pin
from ensign.sources.unpack import unpack


def _archive(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, link, mode
    member.size = 1 if kind == tarfile.REGTYPE else 0
    return member


def test_links_of_a_root_lead_within_it_alone(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/real").write_text("inside")
    (root / "etc/absolute").symlink_to("/etc/real")
    (root / "etc/up").symlink_to("../../../secret")
    (root / "etc/loop").symlink_to("loop")
    found = RootDirectory("r", root, "")
    assert found.text("/etc/absolute") == "inside"
    assert found.text("/etc/up") == ""
    assert found.text("/../../secret") == ""
    assert found.place("/etc/loop") is None


def test_a_member_behind_a_link_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = _archive(
        tmp_path / "a.tar", _member("etc", tarfile.SYMTYPE, str(outside)), _member("etc/passwd")
    )
    with pytest.raises(InputError, match="behind a link"):
        unpack(archive, tmp_path / "root", 0, "it", is_root=True)
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "root").exists()


def test_devices_are_passed_over_and_set_user_id_is_lost(tmp_path: Path) -> None:
    archive = _archive(
        tmp_path / "a.tar",
        _member("dev/null", tarfile.CHRTYPE),
        _member("bin/su", mode=0o4755),
        _member("bin/sh", tarfile.SYMTYPE, "/bin/su"),
    )
    unpack(archive, tmp_path / "root", 0, "it", is_root=True)
    assert not (tmp_path / "root/dev/null").exists()
    assert (tmp_path / "root/bin/su").stat().st_mode & 0o7777 == 0o755


def test_homes_of_a_root_are_not_shown(tmp_path: Path) -> None:
    for name in ("usr", "root", "home", "run", "proc"):
        (tmp_path / name).mkdir()
    argv = bubblewrap_argv("bwrap", root_view(tmp_path, (), View(entries=())))
    assert str(tmp_path / "usr") in argv
    assert not {str(tmp_path / name) for name in ("root", "home", "run", "proc")} & {*argv}


@pytest.mark.parametrize("text", ["[]", '{"environments": []}', '{"environments": {"a": 1}}', "{"])
def test_a_damaged_lock_file_is_one_clear_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.lock.json"
    path.write_text(text)
    if text == "[]":
        assert read_pins(path) == {}
        return
    with pytest.raises(InputError, match="is not a lock file"):
        read_pin(path, "a")


def test_pins_are_kept_and_drift_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.lock.json"
    pin = RootPin({"debian": "bullseye"}, {"gcc-9": "9.3.0-22 aa", "make": "4.3 bb"})
    write_pin(path, "b", pin)
    assert read_pin(path, "b") == pin
    now = {"gcc-9": "9.3.0-23 cc", "make": "4.3 dd"}
    assert drift(pin.packages, now) == "gcc-9 was 9.3.0-22, is 9.3.0-23, make 4.3 has other bytes"
    assert drift(pin.packages, pin.packages) == ""
