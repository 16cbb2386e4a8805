from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from ensign.builders.profiles import lay


def a_profile(folder: Path) -> Path:
    (folder / "profile" / "src").mkdir(parents=True)
    (folder / "profile" / "src" / "a.gcda").write_bytes(b"counts")
    return folder / "profile"


def test_files_are_laid_at_their_places(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "a.c").touch()
    lay(a_profile(tmp_path), tree)
    assert (tree / "src" / "a.gcda").read_bytes() == b"counts"
    assert (tree / "src" / "a.c").exists()


def test_a_full_disk_stays_recognizable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space") as raised:
        lay(a_profile(tmp_path), tmp_path / "tree")
    assert raised.value.errno == errno.ENOSPC
