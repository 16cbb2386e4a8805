from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ensign.host import temporary
from ensign.host.files import remove_tree
from ensign.host.temporary import temporary_folder
from ensign.model.errors import InputError, StorageFailed

_KILLED = """
import os, signal
from ensign.host.temporary import temporary_folder
with temporary_folder("x") as folder:
    (folder / "deep" / "er").mkdir(parents=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_private_and_nothing_is_left(base: Path) -> None:
    with temporary_folder("a") as one, temporary_folder("a") as two:
        assert one != two
        assert one.parent == two.parent == base / f"ensign-{os.geteuid()}"
        assert {path.stat().st_mode & 0o777 for path in (one, one.parent)} == {0o700}
    assert list(base.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_and_the_living_stays(base: Path) -> None:
    assert list(base.iterdir()) == []
    with temporary_folder("living") as living:
        subprocess.run([sys.executable, "-c", _KILLED], check=False)
        assert len(list(living.parent.iterdir())) == 2
        with temporary_folder("next") as folder:
            assert set(living.parent.iterdir()) == {living, folder}


def test_a_link_in_the_place_of_the_folder_is_not_followed(base: Path) -> None:
    victim = base / "victim"
    victim.mkdir(mode=0o755)
    link = base / f"ensign-{os.geteuid()}"
    link.symlink_to(victim)
    with temporary_folder("a") as folder:
        assert folder.parent == base
    assert set(base.iterdir()) == {victim, link}
    assert list(victim.iterdir()) == []


def test_a_folder_that_is_missing_is_the_users_mistake(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(base / "missing"))
    with pytest.raises(InputError, match=r"TMPDIR: .* is no folder"), temporary_folder("a"):
        pass


def test_a_full_disk_is_told_as_one(base: Path) -> None:
    del base
    with pytest.raises(StorageFailed, match="full"), temporary_folder("a"):
        Path("/dev/full").write_bytes(b"x" * 100_000)


def test_ctrl_c_while_it_is_removed_leaves_nothing(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(folder: Path) -> object:
        signal.raise_signal(signal.SIGINT)
        return remove_tree(folder)

    monkeypatch.setattr(temporary, "remove_tree", pressed)
    with pytest.raises(KeyboardInterrupt), temporary_folder("test"):
        pass
    assert list(base.iterdir()) == []


def test_ctrl_c_while_it_is_made_leaves_nothing(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = temporary._made

    def pressed(place: Path, purpose: str) -> tuple[Path, int]:
        signal.raise_signal(signal.SIGINT)
        return real(place, purpose)

    monkeypatch.setattr(temporary, "_made", pressed)
    with pytest.raises(KeyboardInterrupt), temporary_folder("test"):
        pytest.fail("it was lent")
    assert list(base.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give folders away")
def test_what_was_given_away_is_swept_too(base: Path) -> None:
    """As a traced program's folder is, whose ensign was killed."""
    own = base / "ensign-0"
    left = own / f"ran-{0x123:016x}"
    (left / "files").mkdir(parents=True)
    own.chmod(0o700)
    os.chown(left, 65534, 65534)
    with temporary_folder("test"):
        assert not left.exists()
    assert list(base.iterdir()) == []


def test_a_folder_that_cannot_be_locked_or_opened_is_not_left(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path, *, anybodys: bool = False) -> None:
        del folder, anybodys
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(temporary, "_lock", refused)
    monkeypatch.setattr(os, "open", refused_open(os.open))
    with pytest.raises(StorageFailed), temporary_folder("test"):
        pytest.fail("it was lent")
    monkeypatch.undo()
    assert [path for path in base.rglob("*") if path.name.startswith("test-")] == []


def refused_open(real: Callable[..., int]) -> Callable[..., int]:
    """`os.open`, but not of a temporary folder itself."""

    def call(path: Path, *arguments: int, **more: int) -> int:
        if Path(path).name.startswith("test-"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, *arguments, **more)

    return call


def test_where_nothing_can_be_locked_ones_own_folder_stays(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = fcntl.flock, 0

    def once_refused(descriptor: int, operation: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", once_refused)
    with temporary_folder("test") as folder:
        assert folder.is_dir()
    assert list(base.iterdir()) == []
