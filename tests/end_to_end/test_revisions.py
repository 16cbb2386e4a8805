"""Commits as variants: of a study, and of one command in a checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
    """`main`, `my/branch` with more data, `same`, which is main, and `broken`."""
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
    git(folder, "checkout", "--quiet", "-b", "broken", "main")
    (folder / "spin.c").write_text("#error not today\n")
    git(folder, "commit", "--quiet", "--all", "--message=three")
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
    assert [each["variant"] for each in said["comparisons"]] == ["my-branch"]
    codes = {each["code"] for each in said["findings"]}
    assert {"revisions", "uncommitted-changes"} <= codes
    assert (repository / ".git/index").read_bytes() == before
    assert git(repository, "worktree", "list").count("\n") == 0


def compared(ensign: Ensign, *arguments: str) -> dict[str, Any]:
    """What is said, and that nothing is left in the user's folder."""
    done = ensign("compare", "--json", "-", *arguments)
    assert done.status == 0, done.err
    own = [each.name for each in ensign.folder.iterdir() if each.name not in ("cache", "scratch")]
    assert {"spin.c", ".git", "below", "echo.c", "given", "there"} >= set(own)
    assert not list((ensign.folder / "scratch").glob("ensign-*/*"))
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_equal_programs_are_not_raced(ensign: Ensign, repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "comment")
    text = (repository / "spin.c").read_text()
    (repository / "spin.c").write_text(f"{text}/* no code */\n")
    git(repository, "commit", "--quiet", "--all", "--message=comment")
    said = compared(ensign, "--revisions", "main..comment", "--build", BUILD, "./spin 1000000")
    assert said["comparisons"] == []
    assert said["experiment"]["withheld"].startswith(
        "the same program and libraries: there is nothing to compare between main and comment"
    )
    assert [each["status"] for each in said["builds"]] == ["built", "same"]


def test_revisions_below_the_top_with_inputs_and_parameters(
    ensign: Ensign, repository: Path
) -> None:
    """Paths begin in the user's folder of each checkout; each command is a workload."""
    below = repository / "below"
    below.mkdir()
    (below / "echo.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int main(int c, char **v) { char t[9]; FILE *f = fopen("there", "r");\n'
        "  if (!f || !fgets(t, 9, stdin)) return 3;\n"
        "  for (volatile long i = 0; i < atol(v[1]) * STEP; i++); return c != 2; }\n"
    )
    for name in ("given", "there"):
        (below / name).write_text("text\n")
    git(repository, "add", "below")
    git(repository, "commit", "--quiet", "--message=below")
    git(repository, "checkout", "--quiet", "-B", "my/branch")
    (below / "echo.c").write_text((below / "echo.c").read_text().replace("STEP", "2 * STEP"))
    git(repository, "commit", "--quiet", "--all", "--message=twice")
    (below / "scratch").mkdir()
    here = Ensign(below, ensign.capfd)
    said = compared(
        here, "--revisions", "main..my/branch", "--build", "gcc-12 -O1 -DSTEP=1 echo.c -o echo",
        "--input", "given", "--files", "there", "-L", "n", "1000000,2000000", "-r", "3",
        "--", "./echo {n}",
    )  # fmt: skip
    assert list(said["experiment"]["commands"]) == ["echo-1000000", "echo-2000000"]
    assert len(said["trials"]) == 6
    (found,) = said["comparisons"]
    assert found["direction"] == "slower"


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("--revisions", "main..nope", "true"), 2, "no commit, tag or branch 'nope'"),
        (
            ("--revisions", "main..my/branch", "--build", "false", "./spin"),
            3,
            "the baseline main could not be built: 'false' ended with status 1",
        ),
        (("--revisions", "main", "-n", "x", "true"), 2, "--name is for commands"),
        (("--build", "make", "true", "true"), 2, "needs --revisions"),
        (("--revisions", "main..my/branch", "./spin"), 2, "needs --build COMMAND"),
        (("--revisions", "main..my/branch", "--build", "make", "true"), 2, "git worktree add"),
        (("--revisions", "main", "--build", "x", "../spin"), 2, "leads out of the repository"),
        (
            ("--revisions", "main..my/branch", "--build", "make", "--setup", "x", "./spin"),
            2,
            "--setup has no place in --revisions",
        ),
        (
            ("--revisions", "my/branch..broken", "--build", BUILD, "./spin"),
            3,
            "spin.c:1: #error not today",
        ),
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
