"""Git repositories at a commit: nothing in a repository makes git run or fetch anything else."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from ensign.host.files import remove_tree, tree_entries
from ensign.model.errors import InputError
from ensign.model.study_source import GitSource
from ensign.sources.checkouts import RUN_NOTHING, UserRepository
from ensign.sources.downloads import Fetched, Fetcher, last_line

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")  # `ext::COMMAND` and the like run programs
_SCHEMES = ("https", "ssh", "file")
# Among what was resolved: folders of submodules whose commits are not at hand.
EMPTY_SUBMODULES = "empty_submodules"
_PROTOCOLS = tuple(word for each in _SCHEMES for word in ("-c", f"protocol.{each}.allow=always"))
# A check-out needs nothing of the user's: no line endings, no filters (LFS), no attributes.
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def fetch_git(source: GitSource, fetcher: Fetcher) -> Fetched:
    """Clone, and check out the pinned commit. InputError if it cannot be had.

    All files get the commit's time: those of a check-out are random, and make would regenerate
    files that are in the repository. Of a repository of this machine no history is copied, and
    submodules are there as far as it has their commits; nothing is fetched for them, nor for LFS.
    """
    url, is_local = _address(source.url, fetcher)
    repository, tree = fetcher.work / "repository", fetcher.work / "tree"
    tree.mkdir()
    if not repository.exists():  # an earlier revision may have brought it
        plain = ("--quiet", "--no-checkout", "--no-recurse-submodules", "--template=")
        shared = ("--shared",) if is_local else ()
        _git(fetcher, *_PROTOCOLS, "clone", *plain, *shared, "--", url, str(repository))
    named = Path(url) if is_local else repository
    commit = fetcher.pinned.get("commit") or _resolve(fetcher, named, source)
    if not _COMMIT.fullmatch(commit):
        raise InputError(f"the lock file pins a commit that is none: '{commit[:80]!a}'")
    at = ("-C", str(repository), f"--work-tree={tree}")
    if fetcher.pinned and not _is_there(fetcher, repository, commit):
        raise InputError(
            f"{source.url} has no commit {commit[:12]} any more, which the lock file pins for "
            f"'{source.commit}'; run again with --update-lock to take the present one"
        )
    _git(fetcher, *at, "checkout", "--quiet", "--force", "--detach", commit, alone=True)
    when = _git(
        fetcher, "-C", str(repository), "show", "-s", "--format=%ct", commit, "--", alone=True
    )
    empty = _add_submodules(fetcher, named, repository, tree)
    for _, path in tree_entries(tree):
        os.utime(path, (int(when), int(when)), follow_symlinks=False)
    lacking = ((EMPTY_SUBMODULES, ", ".join(empty)),) if empty else ()
    return Fetched(tree, (("commit", commit), *lacking))


def _add_submodules(fetcher: Fetcher, named: Path, repository: Path, tree: Path) -> tuple[str, ...]:
    """Fill the folders of submodules; the names of those that stay empty."""
    (tree / ".git").write_text(f"gitdir: {repository}/.git\n")
    local = UserRepository(fetcher.processes, fetcher.env, named)
    place, _ = local.place()
    empty = local.add_submodules(place, tree)
    for path in [tree / ".git", *(tree.rglob(".git") if (tree / ".gitmodules").exists() else ())]:
        if path.is_symlink() or path.is_file():
            path.unlink()
        else:
            remove_tree(path)
    return empty


def _is_there(fetcher: Fetcher, repository: Path, commit: str) -> bool:
    question = ("-C", str(repository), "cat-file", "-e", f"{commit}^{{commit}}")
    return fetcher.run("git", *RUN_NOTHING, *question, env=_ALONE).ok


def _address(url: str, fetcher: Fetcher) -> tuple[str, bool]:
    """The address as git gets it, and whether it is a path of this machine.

    InputError for one that is neither https, ssh nor a path.
    """
    local = fetcher.study.parent / url
    if "://" not in url and local.exists():
        return str(local.resolve()), local.is_dir()
    scheme = urlsplit(url).scheme if "://" in url else ""
    if _HELPER.match(url) or (scheme and scheme not in _SCHEMES):
        raise InputError(
            f"{url}: only https, ssh and file addresses, and paths, are fetched by git"
        )
    return url, False


def _resolve(fetcher: Fetcher, repository: Path, source: GitSource) -> str:
    for name in (source.commit, f"origin/{source.commit}"):
        outcome = fetcher.run(
            "git", *RUN_NOTHING, "-C", str(repository), "rev-parse", "--verify", "--end-of-options",
            f"{name}^{{commit}}", env=_ALONE,
        )  # fmt: skip
        if outcome.ok:
            return outcome.stdout.strip()
    raise InputError(f"{source.url} has no commit, tag or branch '{source.commit}'")


def _git(fetcher: Fetcher, *arguments: str, alone: bool = False) -> str:
    outcome = fetcher.run("git", *RUN_NOTHING, *arguments, env=_ALONE if alone else {})
    if outcome.reason == "not-found":
        raise InputError("a git source needs git; run 'apt-get install git'")
    if not outcome.ok:
        raise InputError(f"git cannot fetch the source: {last_line(outcome)}")
    return outcome.stdout.strip()
