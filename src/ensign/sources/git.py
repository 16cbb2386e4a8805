"""Git repositories at a commit."""

from __future__ import annotations

import os
from pathlib import Path

from ensign.host.files import tree_entries
from ensign.model.errors import InputError
from ensign.model.study_source import GitSource
from ensign.sources.fetched import Fetched, Fetcher, last_line


def fetch_git(source: GitSource, fetcher: Fetcher) -> Fetched:
    """Clone, and check out the pinned commit. InputError if it cannot be had.

    All files get the commit's time: those of a check-out are random, and make would regenerate
    files that are in the repository. Submodules are not fetched.
    """
    url = source.url
    local = fetcher.study.parent / url
    if "://" not in url and local.exists():
        url = str(local.resolve())
    repository, tree = fetcher.work / "repository", fetcher.work / "tree"
    tree.mkdir()
    _git(fetcher, "clone", "--quiet", "--no-checkout", "--", url, str(repository))
    commit = fetcher.pinned.get("commit") or _resolve(fetcher, repository, source)
    at = ("-C", str(repository), f"--work-tree={tree}")
    _git(fetcher, *at, "checkout", "--quiet", "--force", "--detach", commit)
    when = _git(fetcher, "-C", str(repository), "show", "-s", "--format=%ct", commit)
    for _, path in tree_entries(tree):
        os.utime(path, (int(when), int(when)), follow_symlinks=False)
    return Fetched(tree, (("commit", commit),))


def _resolve(fetcher: Fetcher, repository: Path, source: GitSource) -> str:
    for name in (source.commit, f"origin/{source.commit}"):
        outcome = fetcher.run(
            "git", "-C", str(repository), "rev-parse", "--verify", "--end-of-options",
            f"{name}^{{commit}}",
        )  # fmt: skip
        if outcome.ok:
            return outcome.stdout.strip()
    raise InputError(f"{source.url} has no commit, tag or branch '{source.commit}'")


def _git(fetcher: Fetcher, *arguments: str) -> str:
    outcome = fetcher.run("git", *arguments)
    if outcome.reason == "not-found":
        raise InputError("a git source needs git; run 'apt-get install git'")
    if not outcome.ok:
        raise InputError(f"git cannot fetch the source: {last_line(outcome)}")
    return outcome.stdout.strip()
