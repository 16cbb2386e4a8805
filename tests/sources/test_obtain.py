from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from ensign.host.cache import Cache
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.errors import InputError
from ensign.model.study_source import ArchiveSource, DebianSource, GitSource, PathSource
from ensign.sources.obtain import SourcePorts, obtain
from fakes import FakeProcesses
from real_processes import PlainProcesses


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "demo.toml"


@pytest.fixture
def ports(cache: Cache) -> SourcePorts:
    return SourcePorts(PlainProcesses(), cache, dict(os.environ))


def offline(ports: SourcePorts) -> SourcePorts:
    def refuse(request: ProcessRequest) -> Outcome:
        raise AssertionError(request.argv)

    return SourcePorts(FakeProcesses(refuse), ports.cache, {})


def orig_archive(folder: Path, name: str = "demo-1.0.tar.gz") -> tuple[Path, str]:
    path = folder / name
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("demo-1.0/main.c")
        info.size = 7
        tar.addfile(info, io.BytesIO(b"int x;\n"))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_folder_is_pinned_and_a_change_is_an_error(
    tmp_path: Path, study: Path, project: Path, ports: SourcePorts
) -> None:
    source = PathSource(kind="path", path="source", exclude=["*.o"])
    tree = obtain(source, study, ports, update_lock=False)
    lock = (tmp_path / "demo.lock.json").read_text()
    assert tree.sha256 in lock
    (project / "main.o").write_text("left over")
    assert obtain(source, study, ports, update_lock=False).sha256 == tree.sha256
    (project / "main.c").write_text("int main(void) { return 1; }\n")
    with pytest.raises(InputError, match=r"changed since .*demo\.lock\.json .*--update-lock"):
        obtain(source, study, ports, update_lock=False)
    assert (tmp_path / "demo.lock.json").read_text() == lock
    fresh = obtain(source, study, ports, update_lock=True)
    assert fresh.sha256 != tree.sha256
    assert fresh.sha256 in (tmp_path / "demo.lock.json").read_text()
    assert not (fresh.tree / "main.o").exists()


def test_another_request_than_the_locks_is_an_error(
    study: Path, project: Path, ports: SourcePorts
) -> None:
    obtain(PathSource(kind="path", path="source"), study, ports, update_lock=False)
    project.rename(project.with_name("moved"))
    with pytest.raises(InputError, match=r"is not what demo\.lock\.json pins"):
        obtain(PathSource(kind="path", path="moved"), study, ports, update_lock=False)


def test_a_study_may_lie_in_its_source(project: Path, ports: SourcePorts) -> None:
    study = project / "ensign.toml"
    study.write_text("name = 'a'")
    source = PathSource(kind="path", path=".")
    first = obtain(source, study, ports, update_lock=False)
    study.write_text("name = 'b'")
    (project / ".ensign").mkdir()
    assert obtain(source, study, ports, update_lock=False).sha256 == first.sha256


def test_an_archive_is_checked_unpacked_and_then_needs_no_file(
    tmp_path: Path, study: Path, ports: SourcePorts
) -> None:
    archive, sha256 = orig_archive(tmp_path)
    source = ArchiveSource(kind="archive", url=archive.name, sha256=sha256)
    tree = obtain(source, study, ports, update_lock=False)
    assert (tree.tree / "main.c").read_text() == "int x;\n"
    archive.unlink()
    assert obtain(source, study, offline(ports), update_lock=False) == tree
    (tmp_path / "demo.lock.json").unlink()
    assert obtain(source, study, offline(ports), update_lock=False) == tree


def test_a_wrong_checksum_or_address_is_named(
    tmp_path: Path, study: Path, ports: SourcePorts
) -> None:
    archive, sha256 = orig_archive(tmp_path)
    wrong = ArchiveSource(kind="archive", url=archive.as_uri(), sha256="0" * 64)
    with pytest.raises(InputError, match=f"has the SHA-256 {sha256}, but the study wants 000"):
        obtain(wrong, study, ports, update_lock=False)
    gone = ArchiveSource(kind="archive", url="gone.tar.gz", sha256=sha256)
    with pytest.raises(InputError, match=r"gone\.tar\.gz is not there"):
        obtain(gone, study, ports, update_lock=False)
    other = ArchiveSource(kind="archive", url="ftp://host/a.tar.gz", sha256=sha256)
    with pytest.raises(InputError, match="only https"):
        obtain(other, study, ports, update_lock=False)
    assert not (tmp_path / "demo.lock.json").exists()


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_branch_is_pinned_to_its_commit(
    tmp_path: Path, study: Path, project: Path, ports: SourcePorts
) -> None:
    git(project, "init", "--quiet", "--initial-branch=trunk")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=one")
    first = git(project, "rev-parse", "HEAD")
    source = GitSource(kind="git", url="source", commit="trunk")
    tree = obtain(source, study, ports, update_lock=False)
    assert ("commit", first) in tree.facts
    assert not (tree.tree / ".git").exists()
    times = {path.stat().st_mtime for path in tree.tree.iterdir()}
    assert len(times) == 1
    (project / "main.c").write_text("changed")
    git(project, "commit", "--all", "--quiet", "--message=two")
    assert obtain(source, study, offline(ports), update_lock=False) == tree
    with Cache(tmp_path / "empty") as empty:
        elsewhere = SourcePorts(ports.processes, empty, ports.env)
        assert obtain(source, study, elsewhere, update_lock=False).sha256 == tree.sha256
    assert obtain(source, study, ports, update_lock=True).sha256 != tree.sha256
    with pytest.raises(InputError, match="no commit, tag or branch 'nowhere'"):
        obtain(
            GitSource(kind="git", url="source", commit="nowhere"), study, ports, update_lock=True
        )


class FakeApt:
    """Answers like apt, with one archive; counts the look-ups."""

    def __init__(self, archive: Path, checksum: str) -> None:
        self.archive = archive
        self.checksum = checksum
        self.calls: list[str] = []

    def __call__(self, request: ProcessRequest) -> Outcome:
        argv = request.argv
        self.calls.append(argv[0])
        if argv[0] == "sh":
            stanza = (
                "Package: demo\nVersion: 1:1.0-3\nChecksums-Sha256:\n"
                f" {self.checksum} 7 demo_1.0.orig.tar.gz\n"
            )
            Path(argv[-1]).write_text(stanza)
        elif "source" in argv:
            assert argv[-1] == "demo=1:1.0-3"
            assert request.cwd is not None
            (request.cwd / "demo_1.0.orig.tar.gz").write_bytes(self.archive.read_bytes())
        return Outcome(0, None, "exited")


def test_a_debian_package_is_found_by_the_checksum_of_its_orig(
    tmp_path: Path, study: Path, cache: Cache
) -> None:
    archive, sha256 = orig_archive(tmp_path, "real.tar.gz")
    apt = FakeApt(archive, sha256)
    ports = SourcePorts(FakeProcesses(apt), cache, {})
    source = DebianSource(kind="debian", package="demo", version="1.0", sha256=sha256)
    tree = obtain(source, study, ports, update_lock=False)
    assert (tree.tree / "main.c").exists()
    assert apt.calls == ["apt-get", "sh", "apt-get"]
    assert obtain(source, study, offline(ports), update_lock=False) == tree


def test_a_mirror_without_the_pinned_archive_is_told_what_it_has(
    tmp_path: Path, study: Path, cache: Cache
) -> None:
    archive, sha256 = orig_archive(tmp_path, "real.tar.gz")
    ports = SourcePorts(FakeProcesses(FakeApt(archive, "f" * 64)), cache, {})
    source = DebianSource(kind="debian", package="demo", version="1.0", sha256=sha256)
    with pytest.raises(InputError, match=rf"carries .* {sha256}; offered: 1:1\.0-3 \(ffff"):
        obtain(source, study, ports, update_lock=False)


def test_an_archive_that_is_not_what_the_mirror_said_is_refused(
    tmp_path: Path, study: Path, cache: Cache
) -> None:
    archive, sha256 = orig_archive(tmp_path, "real.tar.gz")
    archive.write_bytes(archive.read_bytes() + b"tampered")
    ports = SourcePorts(FakeProcesses(FakeApt(archive, sha256)), cache, {})
    source = DebianSource(kind="debian", package="demo", version="1.0", sha256=sha256)
    with pytest.raises(InputError, match="has the SHA-256"):
        obtain(source, study, ports, update_lock=False)
    assert cache.get("download", sha256) is None


def test_a_system_without_apt_is_told_what_to_do(study: Path, cache: Cache) -> None:
    absent = FakeProcesses(lambda _: Outcome(None, None, "not-found"))
    source = DebianSource(kind="debian", package="demo", version="1.0", sha256="0" * 64)
    with pytest.raises(InputError, match=r"apt-get install apt|kind = .archive"):
        obtain(source, study, SourcePorts(absent, cache, {}), update_lock=False)


PATCH = """\
--- a/main.c
+++ b/main.c
@@ -1 +1,2 @@
 int x;
+int y;
"""


def test_a_studys_own_patches_are_applied_and_pinned_by_content(
    tmp_path: Path, study: Path, ports: SourcePorts
) -> None:
    path, digest = orig_archive(tmp_path)
    source = ArchiveSource(kind="archive", url=path.name, sha256=digest, apply=["more.patch"])
    with pytest.raises(InputError, match=r"there is no patch .*more\.patch"):
        obtain(source, study, ports, update_lock=False)
    (tmp_path / "more.patch").write_text(PATCH)
    tree = obtain(source, study, ports, update_lock=False)
    assert (tree.tree / "main.c").read_text() == "int x;\nint y;\n"
    assert obtain(source, study, offline(ports), update_lock=False) == tree
    (tmp_path / "more.patch").write_text(PATCH.replace("int y", "int z"))
    with pytest.raises(InputError, match=r"is not what demo\.lock\.json pins"):
        obtain(source, study, ports, update_lock=False)
    fresh = obtain(source, study, ports, update_lock=True)
    assert (fresh.tree / "main.c").read_text() == "int x;\nint z;\n"


def test_a_patch_that_does_not_fit_is_named(
    tmp_path: Path, study: Path, ports: SourcePorts
) -> None:
    path, digest = orig_archive(tmp_path)
    (tmp_path / "wrong.patch").write_text(PATCH.replace("int x", "int w"))
    source = ArchiveSource(kind="archive", url=path.name, sha256=digest, apply=["wrong.patch"])
    with pytest.raises(InputError, match=r"the patch wrong\.patch does not fit the source"):
        obtain(source, study, ports, update_lock=False)


def test_a_patch_leaves_the_users_own_folder_alone(
    tmp_path: Path, study: Path, ports: SourcePorts
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "main.c").write_text("int x;\n")
    (tmp_path / "more.patch").write_text(PATCH)
    source = PathSource(kind="path", path="source", apply=["more.patch"])
    tree = obtain(source, study, ports, update_lock=False)
    assert (tree.tree / "main.c").read_text() == "int x;\nint y;\n"
    assert (folder / "main.c").read_text() == "int x;\n"


def test_what_git_ignores_stays_behind(study: Path, project: Path, ports: SourcePorts) -> None:
    (project / ".gitignore").write_text("*.o\n/build/\n[[]x]*\n")
    (project / "deep").mkdir()
    (project / "deep/kept.txt").write_text("kept, and not tracked\n")
    git(project, "init", "-q")
    clean = obtain(PathSource(kind="path", path="source"), study, ports, update_lock=True)
    for name in ("main.o", "deep/a.o", "build/x.txt", "[x]y"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("left over")
    left = obtain(PathSource(kind="path", path="source"), study, ports, update_lock=False)
    assert left.sha256 == clean.sha256
    assert set(left.left_behind) == {"main.o", "deep/a.o", "build", "[x]y"}
    assert (left.tree / "deep/kept.txt").exists()
    every = PathSource(kind="path", path="source", ignored=True)
    taken = obtain(every, study, ports, update_lock=True)
    assert (taken.tree / "build/x.txt").exists()
    assert taken.left_behind == ()


def test_repositories_within_and_around(
    tmp_path: Path, study: Path, project: Path, ports: SourcePorts
) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("source/\n")
    (project / "module").mkdir()
    git(project / "module", "init", "-q")
    (project / "module/.gitignore").write_text("*.a\n")
    (project / "module/x.a").write_text("left over")
    (project / "y.a").write_text("a repository around it ignores the whole folder")
    found = obtain(PathSource(kind="path", path="source"), study, ports, update_lock=True)
    assert found.left_behind == ("module/x.a",)
    assert (found.tree / "y.a").exists()
    assert (found.tree / "main.c").exists()
