"""Commits as variants: of a study, and of one command in a checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import SOURCES, Ensign
from end_to_end.small_study import BATCH, write_study

BUILD = "gcc-12 -O1 -DWORK=1 -o spin spin.c"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(ensign: Ensign) -> Path:
    """`main`, `my/branch` whose loop is longer, and `same`, which is main."""
    folder = ensign.folder
    shutil.copy(SOURCES / "spin.c", folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "spin.c")
    git(folder, "commit", "--quiet", "--message=one")
    git(folder, "tag", "same")
    git(folder, "checkout", "--quiet", "-b", "my/branch")
    with (folder / "spin.c").open("a") as file:
        file.write("int more = 1;\n")
    git(folder, "commit", "--quiet", "--all", "--message=two")
    git(folder, "checkout", "--quiet", "main")
    return folder


def test_a_study_of_two_commits(ensign: Ensign, repository: Path) -> None:
    revisions = 'optimization = ["-O1"]\nrevision = ["main", "my/branch", "same"]'
    path = write_study(
        ensign.folder,
        BATCH,
        ('kind = "path"\npath = "source"', 'kind = "git"\nurl = "."'),
        ('optimization = ["-O1", "-O2"]', revisions),
        ('[baseline]\noptimization = "-O1"', '[baseline]\nrevision = "main"'),
    )
    done = ensign("run", str(path), "--json", "out.json")
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    builds = {each["variant"]: each for each in said["builds"]}
    assert list(builds) == ["gcc-12-O1-main", "gcc-12-O1-my-branch", "gcc-12-O1-same"]
    hashes = [each["loadable_sha256"] for each in builds.values()]
    assert hashes[0] == hashes[2] != hashes[1]
    codes = {each["code"] for each in said["findings"]}
    assert "same-commit" in codes
    source = said["experiment"]["source"]
    commit = git(repository, "rev-parse", "my/branch")
    assert source["commit of my/branch"] == commit
    plan = ensign("plan", str(path))
    assert plan.status == 0, plan.err


def test_one_command_in_two_checkouts(ensign: Ensign, repository: Path) -> None:
    (repository / "spin.c").write_text("not committed, and no C")
    before = (repository / ".git/index").read_bytes()
    argv = [
        "compare", "--revisions", "main..my/branch", "--build", BUILD, "-r", "3",
        "--json", str(ensign.folder / "out.json"), "--", "./spin 1000000",
    ]  # fmt: skip
    done = ensign("compare", "--revisions", "main", "true", "true")
    assert (done.status, "quote it: 'true true'" in done.complaint) == (2, True)
    done = ensign(*argv)
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    assert [each["variant"] for each in said["comparisons"]] == ["my/branch"]
    codes = {each["code"] for each in said["findings"]}
    assert {"revisions", "uncommitted-changes"} <= codes
    assert (repository / ".git/index").read_bytes() == before
    assert git(repository, "worktree", "list").count("\n") == 0


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("--revisions", "main..nope", "true"), 2, "no commit, tag or branch 'nope'"),
        (
            ("--revisions", "main..my/branch", "--build", "false", "true"),
            3,
            "'--build false at main'",
        ),
        (("--revisions", "main", "-n", "x", "true"), 2, "--name is for commands"),
        (("--build", "make", "true", "true"), 2, "needs --revisions"),
    ],
)
def test_what_cannot_be_compared(
    ensign: Ensign, arguments: tuple[str, ...], status: int, expected: str
) -> None:
    done = ensign("compare", *arguments)
    assert done.status == status, done.err
    assert expected in done.complaint


def test_outside_a_repository(ensign: Ensign) -> None:
    # The folder of the test may lie in one.
    ceiling = str(ensign.folder.parent)
    done = ensign("compare", "--revisions", "main", "true", GIT_CEILING_DIRECTORIES=ceiling)
    assert done.status == 2
    assert "needs a git repository" in done.complaint
