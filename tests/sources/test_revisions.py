"""Several commits of one repository: each is pinned, and none moves another."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ensign.builders.revisions import SourceTrees
from ensign.host.cache import Cache
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.errors import InputError
from ensign.model.study_source import VENDORED, GitSource, PathSource
from ensign.sources.checkouts import UserRepository, names_of
from ensign.sources.obtain import SourcePorts, obtain, obtain_revisions, read_lock
from fakes import FakeProcesses
from real_processes import PlainProcesses

SOURCE = GitSource(kind="git", url="source")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "demo.toml"


@pytest.fixture
def ports(cache: Cache) -> SourcePorts:
    return SourcePorts(PlainProcesses(), cache, dict(os.environ))


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(project: Path) -> Path:
    """`main` and `my/branch`, which differ in main.c; `same` is main."""
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=one")
    git(project, "tag", "same")
    git(project, "checkout", "--quiet", "-b", "my/branch")
    (project / "main.c").write_text("int main(void) { return 1; }\n")
    git(project, "commit", "--quiet", "--all", "--message=two")
    git(project, "checkout", "--quiet", "main")
    return project


def test_each_revision_is_pinned_to_its_commit(
    study: Path, repository: Path, ports: SourcePorts
) -> None:
    names = ("main", "my/branch")
    trees = obtain_revisions(SOURCE, names, study, ports, update_lock=False)
    assert trees["main"].sha256 != trees["my/branch"].sha256
    said = json.loads(study.with_name("demo.lock.json").read_text())["revisions"]
    commits = {name: said[name]["resolved"]["commit"] for name in names}
    assert commits == {name: git(repository, "rev-parse", name) for name in names}
    git(repository, "branch", "--quiet", "--force", "my/branch", "main")

    def refuse(request: ProcessRequest) -> Outcome:
        raise AssertionError(request.argv)

    offline = SourcePorts(FakeProcesses(refuse), ports.cache, {})
    again = obtain_revisions(SOURCE, names, study, offline, update_lock=False)
    assert again == trees
    moved = obtain_revisions(SOURCE, names, study, ports, update_lock=True)
    assert moved["my/branch"].sha256 == trees["main"].sha256


def test_a_revision_more_is_pinned_beside_the_others(
    study: Path, repository: Path, ports: SourcePorts
) -> None:
    first = obtain_revisions(SOURCE, ("main",), study, ports, update_lock=False)["main"]
    (repository / "main.c").write_text("later")
    git(repository, "commit", "--quiet", "--all", "--message=three")
    both = obtain_revisions(SOURCE, ("my/branch", "main"), study, ports, update_lock=False)
    assert list(both) == ["my/branch", "main"]
    assert both["main"] == first
    # Of a subset, as in `ship`, the others' pins stay.
    obtain_revisions(SOURCE, ("my/branch",), study, ports, update_lock=False)
    lock = read_lock(study.with_name("demo.lock.json"))
    assert lock is not None
    assert set(lock.pins) == {"main", "my/branch"}
    plain = obtain(SOURCE, study, ports, update_lock=False)
    assert plain.sha256 not in (each.sha256 for each in both.values())


def test_each_revision_has_its_crates(study: Path, repository: Path, ports: SourcePorts) -> None:
    for name in ("my/branch", "main"):
        git(repository, "checkout", "--quiet", name)
        (repository / "Cargo.toml").write_text("[package]\n")
        (repository / "Cargo.lock").write_text("version = 4\n")
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--message=crates")
    source = SOURCE.model_copy(update={"crates": "."})
    trees = obtain_revisions(source, ("main", "my/branch"), study, ports, update_lock=False)
    assert trees["main"].sha256 != trees["my/branch"].sha256
    assert all((each.tree / VENDORED / "config.toml").exists() for each in trees.values())


def test_a_pinned_commit_that_is_gone_is_told(
    tmp_path: Path, study: Path, repository: Path, ports: SourcePorts
) -> None:
    obtain_revisions(SOURCE, ("main", "my/branch"), study, ports, update_lock=False)
    git(repository, "branch", "--quiet", "-D", "my/branch")
    git(repository, "reflog", "expire", "--expire=now", "--all")
    git(repository, "gc", "--quiet", "--prune=now")
    with Cache(tmp_path / "empty") as empty:
        elsewhere = SourcePorts(ports.processes, empty, ports.env)
        with pytest.raises(InputError, match=r"no commit .* any more.*'my/branch'.*--update-lock"):
            obtain_revisions(SOURCE, ("my/branch",), study, elsewhere, update_lock=False)


@pytest.mark.usefixtures("repository")
def test_what_is_no_revision_is_named(study: Path, ports: SourcePorts) -> None:
    with pytest.raises(InputError, match="no commit, tag or branch 'nowhere'"):
        obtain_revisions(SOURCE, ("main", "nowhere"), study, ports, update_lock=False)
    assert not study.with_name("demo.lock.json").exists()
    folder = PathSource(kind="path", path="source")
    with pytest.raises(InputError, match="of kind path has no revision 'main'"):
        obtain_revisions(folder, ("main",), study, ports, update_lock=False)


@pytest.mark.parametrize(
    "damage",
    ['{"revisions": 3}', '{"revisions": {"main": 1}}', '{"revisions": {"a": {"resolved": {}}}}'],
)
def test_a_damaged_lock_is_no_lock(study: Path, damage: str) -> None:
    path = study.with_name("demo.lock.json")
    path.write_text(damage)
    with pytest.raises(InputError, match="is not a lock file"):
        read_lock(path)


def test_a_checkout_leaves_the_repository_as_it_is(tmp_path: Path, repository: Path) -> None:
    (repository / "main.c").write_text("not committed")
    (repository / "deep").mkdir(exist_ok=True)
    before = _all_of(repository)
    user = UserRepository(PlainProcesses(), dict(os.environ), repository / "deep")
    place, inside = user.place()
    assert inside == "deep/"
    commits = user.commits(("main", "my/branch"))
    for commit in commits:
        user.check_out(place, commit, tmp_path / commit.sha)
        assert git(tmp_path / commit.sha, "rev-parse", "HEAD") == commit.sha
        assert git(tmp_path / commit.sha, "status", "--porcelain") == ""
        assert not list((tmp_path / commit.sha / ".git/objects").glob("??/*"))
    assert user.has_changes()
    assert _all_of(repository) == before


def test_submodules_are_checked_out_where_the_repository_has_them(
    tmp_path: Path, repository: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    (other / "part.c").write_text("int part;\n")
    git(other, "add", ".")
    git(other, "commit", "--quiet", "--message=part")
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    git(repository, *local, str(other), "sub")
    git(repository, "commit", "--quiet", "--message=sub")
    user = UserRepository(PlainProcesses(), dict(os.environ), repository)
    place, _ = user.place()
    (commit,) = user.commits(("HEAD",))
    before = _all_of(repository)
    user.check_out(place, commit, tmp_path / "with")
    assert user.add_submodules(place, tmp_path / "with") == ()
    assert (tmp_path / "with/sub/part.c").read_text() == "int part;\n"
    assert _all_of(repository) == before
    (place / "modules").rename(tmp_path / "modules")
    user.check_out(place, commit, tmp_path / "without")
    assert user.add_submodules(place, tmp_path / "without") == ("sub",)
    assert not list((tmp_path / "without/sub").iterdir())


def test_a_source_has_submodules_as_far_as_its_repository_does(
    tmp_path: Path, study: Path, repository: Path, ports: SourcePorts
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    (other / "part.c").write_text("int part;\n")
    git(other, "add", ".")
    git(other, "commit", "--quiet", "--message=part")
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    git(repository, *local, str(other), "sub")
    git(repository, "commit", "--quiet", "--message=sub")
    found = obtain_revisions(SOURCE, ("HEAD", "main~1"), study, ports, update_lock=False)
    tree = found["HEAD"].tree
    assert (tree / "sub/part.c").read_text() == "int part;\n"
    assert not list(tree.rglob(".git"))
    assert not (found["main~1"].tree / "sub").exists()
    assert SourceTrees(found).findings() == ()
    (repository / ".git/modules").rename(tmp_path / "modules")
    bare = obtain_revisions(SOURCE, ("HEAD",), study, ports, update_lock=True)
    assert not list((bare["HEAD"].tree / "sub").iterdir())
    (finding,) = SourceTrees(bare).findings()
    assert (finding.code, finding.text) == (
        "empty-submodules",
        "folders of submodules are empty: sub",
    )


def test_a_submodule_leads_nowhere_else(tmp_path: Path, repository: Path) -> None:
    """Its name is the repository's, and would be a path."""
    user = UserRepository(PlainProcesses(), dict(os.environ), repository)
    place, _ = user.place()
    sha = git(repository, "rev-parse", "HEAD")
    (repository / ".gitmodules").write_text('[submodule "../../victim"]\n\tpath = sub\n\turl = x\n')
    git(repository, "add", ".gitmodules")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{sha},sub")
    git(repository, "commit", "--quiet", "--message=hostile")
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "victim"))
    (commit,) = user.commits(("HEAD",))
    user.check_out(place, commit, tmp_path / "checkout")
    assert user.add_submodules(place, tmp_path / "checkout") == ("sub",)
    assert not list((tmp_path / "checkout/sub").iterdir())


def _all_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("main..b", ("main", "b")),
        ("main", ("main", "HEAD")),
        ("..b", ("HEAD", "b")),
        ("main..", ("main", "HEAD")),
        ("v1.0..v1.1", ("v1.0", "v1.1")),
    ],
)
def test_revisions_as_they_are_written(said: str, names: tuple[str, str]) -> None:
    assert names_of(said) == names


@pytest.mark.parametrize("said", ["", "HEAD", "..", "a...b", "a..b..c", "HEAD..HEAD"])
def test_what_names_no_two_revisions(said: str) -> None:
    with pytest.raises(InputError, match="--revisions"):
        names_of(said)
