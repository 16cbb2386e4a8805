"""Trees of strangers: walked, hashed, copied, measured and removed, whatever is in them."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deep_trees import deep_tree, no_deep_tree_left
from ensign.host.cache import Cache
from ensign.host.files import copy_tree, remove_tree, tree_entries, tree_sha256, tree_size_bytes
from ensign.host.regular_file import read_regular
from ensign.host.tree_copy import TreeLimits
from ensign.model.errors import InputError, StorageFailed

__all__ = ["no_deep_tree_left"]
pytestmark = pytest.mark.usefixtures("no_deep_tree_left")
DEEP = 3000
LONG = "n" * 200


@pytest.mark.parametrize("name", ["d", LONG], ids=["deep", "long"])
def test_a_tree_that_no_path_reaches_is_measured_and_removed(tmp_path: Path, name: str) -> None:
    tree = deep_tree(tmp_path / "t", DEEP, name)
    assert tree_size_bytes(tree) >= 4096
    assert remove_tree(tree) == ()
    assert not tree.exists()


def test_walking_and_removing_keep_few_descriptors_open(tmp_path: Path) -> None:
    tree = deep_tree(tmp_path / "t", DEEP)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    # A few dozen are needed; threads that other tests of this process left may open some, too.
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 100, hard))
    try:
        digest = tree_sha256(tree)
        copy_tree(tree, tmp_path / "copy")
        assert tree_sha256(tmp_path / "copy") == digest
        assert remove_tree(tree) == remove_tree(tmp_path / "copy") == ()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_too_deep_to_be_copied_is_one_line_and_leaves_a_cache_that_works(tmp_path: Path) -> None:
    tree = deep_tree(tmp_path / "t", DEEP, LONG)
    cache = Cache(tmp_path / "cache")

    def copied(folder: Path) -> dict[str, object]:
        copy_tree(tree, folder / "tree")
        return {}

    with pytest.raises(InputError, match="is nested too deeply") as told:
        tree_sha256(tree)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400
    with pytest.raises(InputError, match="is nested too deeply"):
        cache.make("source", "k", copied)
    assert list((tmp_path / "cache/temporary").iterdir()) == []
    assert cache.make("source", "l", lambda _: {}).facts == {}
    remove_tree(tree)


def test_what_no_path_reaches_is_left_out_where_paths_are_wanted(tmp_path: Path) -> None:
    tree = deep_tree(tmp_path / "t", DEEP)
    entries = list(tree_entries(tree))
    assert len(entries) > 1000
    assert all(path.is_dir() for _, path in entries)
    remove_tree(tree)


def test_clean_empties_a_cache_that_a_build_filled_with_traps(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = cache.make("program", "1", lambda _: {}).folder
    deep_tree(entry / "deep", DEEP, LONG)
    (entry / os.fsdecode(b"\xff\xfe")).write_text("no UTF-8")
    (entry / "line\nend").mkdir()
    os.mkfifo(entry / "pipe")
    (entry / "loop").symlink_to("loop")
    (entry / "closed/inner").mkdir(parents=True)
    (entry / "closed/inner/file").touch()
    (entry / "closed/inner").chmod(0)
    (entry / "closed").chmod(0)
    cache.close()
    shut = tmp_path / "cache/entries/program-2"
    shut.mkdir()
    shut.chmod(0)
    os.mkfifo(tmp_path / "cache/entries/program-3")
    (tmp_path / "cache/entries/program-4").symlink_to(tmp_path)
    damaged = tmp_path / "cache/entries/program-5"
    damaged.mkdir()
    os.mkfifo(damaged / "meta.json")
    (tmp_path / "cache/entries/program-6").mkdir()
    (tmp_path / "cache/entries/program-6/meta.json").write_text("[" * 100_000)
    again = Cache(tmp_path / "cache")
    again.clean()
    again.close()
    for name in ("entries", "temporary", "logs"):
        assert list((tmp_path / "cache" / name).iterdir()) == []
    assert tmp_path.is_dir()


def test_clean_says_what_it_could_not_remove_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def filled(folder: Path) -> dict[str, object]:
        (folder / "kept\x1b[31m").touch()
        return {}

    cache = Cache(tmp_path / "cache")
    for key in "12":
        cache.make("program", key, filled)
    cache.close()
    real = os.unlink
    stuck: list[object] = []

    def unlink(path: object, **options: object) -> None:
        if str(path).startswith("kept") and len(stuck) < 1:
            stuck.append(path)
            raise PermissionError(1, "Operation not permitted")
        real(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(StorageFailed, match=r"could not be removed:\n.*kept\\x1b\[31m: Operation"):
        Cache(tmp_path / "cache").clean()
    assert list((tmp_path / "cache/entries").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a file immutable")
def test_what_was_made_immutable_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "t"
    (tree / "a").mkdir(parents=True)
    (tree / "a/f").touch()
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+i", tree / "a/f"], check=False).returncode:
        pytest.skip("this file system has no such mark")
    subprocess.run([chattr, "+i", tree / "a"], check=True)
    assert remove_tree(tree) == ()
    assert not tree.exists()


def test_nothing_is_followed_out_of_a_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "precious").write_text("mine")
    tree = tmp_path / "t"
    tree.mkdir()
    (tree / "link").symlink_to(outside)
    (tree / "file").symlink_to(outside / "precious")
    (tree / "loop").symlink_to(".")
    os.link(outside / "precious", tree / "hard")
    copy_tree(tree, tmp_path / "copy")
    assert (tmp_path / "copy/link").is_symlink()
    assert (tmp_path / "copy/hard").stat().st_ino != (outside / "precious").stat().st_ino
    remove_tree(tree)
    remove_tree(tmp_path / "copy/link")
    assert (outside / "precious").read_text() == "mine"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o750


def test_special_files_are_neither_read_nor_copied(tmp_path: Path) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    place = os.open(tree, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{place}/socket")
    os.close(place)
    if os.geteuid() == 0:
        os.mknod(tree / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    tree_sha256(tree)
    copy_tree(tree, tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []
    for path in tree.iterdir():
        with pytest.raises(OSError, match=r"not a regular file|No such device"):
            read_regular(path, 10)


def test_a_file_of_holes_and_a_tree_beyond_its_limits_are_refused_soon(tmp_path: Path) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    with (tree / "holes").open("wb") as file:
        file.truncate(1 << 42)
    for act in (tree_sha256, lambda root: copy_tree(root, tmp_path / "copy")):
        with pytest.raises(InputError, match=r"holes says that it has 4\.\d* T|nearly all of it"):
            act(tree)
    (tree / "holes").unlink()
    for number in range(20):
        (tree / str(number)).write_bytes(b"x" * 1000)
    with pytest.raises(InputError, match="more than 10 files"):
        tree_sha256(tree, limits=TreeLimits(entries=10))
    with pytest.raises(InputError, match="holds more than"):
        tree_sha256(tree, limits=TreeLimits(size_bytes=10_000))


def test_set_user_id_is_not_copied(tmp_path: Path) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    (tree / "su").touch()
    (tree / "su").chmod(0o6755)
    copy_tree(tree, tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy/su").stat().st_mode) == 0o755


def test_a_study_of_a_deep_source_is_one_line_and_the_next_study_is_unharmed(
    tmp_path: Path,
) -> None:
    source = deep_tree(tmp_path / "source", DEEP, LONG)
    study = tmp_path / "s.toml"
    study.write_text(
        'name = "s"\n[source]\nkind = "path"\npath = "source"\n'
        '[build]\ncommands = [["true"]]\nartifact = "last"\n'
        '[axes]\ncompiler = ["gcc"]\n[baseline]\ncompiler = "gcc"\n'
        '[[workloads]]\nname = "w"\ncommand = ["{artifact}"]\n'
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ENSIGN_CACHE": str(tmp_path / "c")}

    def ensign(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [str(Path(sys.executable).with_name("ensign")), *arguments]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)

    ran = ensign("run", str(study))
    assert ran.returncode == 2, ran.stderr
    assert "is nested too deeply" in ran.stderr
    assert "Traceback" not in ran.stderr
    cleaned = ensign("clean")
    assert (cleaned.returncode, cleaned.stderr) == (0, "")
    assert json.dumps(list((tmp_path / "c/entries").iterdir()), default=str) == "[]"
    remove_tree(source)
