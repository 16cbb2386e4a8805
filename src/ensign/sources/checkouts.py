"""Clean checkouts of commits of the user's repository, which is only read: for `--revisions`.

Each has a repository of its own beside its files, which borrows all objects of the user's: nothing
of the history is copied, and what a build does with git stays there. Hooks, filters and the user's
configuration of git take no part; files of LFS are not fetched. Submodules are checked out as far
as the user's repository has their commits; nothing is fetched for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ensign.host.files import remove_tree, tree_entries
from ensign.host.processes import Outcome, Processes, ProcessRequest
from ensign.model.errors import InputError
from ensign.model.study_source import GitSource
from ensign.sources.downloads import OF_A_REPOSITORY, Fetched, Fetcher, last_line

# What a repository's own configuration, or a template of the user's, would have git run.
RUN_NOTHING = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "submodule.recurse=false",
    "-c", "protocol.allow=never",
)  # fmt: skip
_OPTION = "--revisions"
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
_MOST_SUBMODULES = 500
_LOCAL = ("-c", "protocol.file.allow=always")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by the name that the user gave it."""

    name: str
    sha: str
    title: str

    @property
    def said(self) -> str:
        """For people: name, commit and its first line."""
        return f"{self.name} is {self.sha[:12]} ({self.title})"


def names_of(said: str) -> tuple[str, str]:
    """Both names in `A..B`; `A` alone is compared with HEAD. InputError for anything else."""
    first, dots, second = said.partition("..")
    if second.startswith(".") or ".." in second:
        raise InputError(f"{_OPTION} {said}: write A..B, the baseline first, or A against HEAD")
    names = (first or "HEAD", second or "HEAD") if dots else (first, "HEAD")
    if not names[0] or names == ("HEAD", "HEAD"):
        raise InputError(
            f"{_OPTION} {said!r} names no two revisions; write A..B, such as main..HEAD"
        )
    return names


@dataclass(frozen=True, slots=True)
class UserRepository:
    """The repository around `folder`. Nothing in it is changed, its index included."""

    processes: Processes
    env: Mapping[str, str]
    folder: Path

    def commits(self, names: tuple[str, ...]) -> tuple[Commit, ...]:
        """The commits of these names. InputError for one that there is not."""
        commits = []
        for name in names:
            asked = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            outcome = self._git("rev-parse", *asked)
            if not outcome.ok:
                raise InputError(f"{_OPTION}: there is no commit, tag or branch '{name}' here")
            sha = outcome.stdout.strip()
            shown = self._git("show", "-s", "--no-show-signature", "--format=%s", sha, "--")
            commits.append(Commit(name, sha, shown.stdout.strip()))
        return tuple(commits)

    def place(self) -> tuple[Path, str]:
        """Git's folder, and the place of `folder` in it. InputError where there is none."""
        outcome = self._git("rev-parse", "--path-format=absolute", "--git-common-dir")
        if outcome.reason == "not-found":
            raise InputError(f"{_OPTION} needs git; run 'apt-get install git'")
        if not outcome.ok:
            raise InputError(
                f"{_OPTION} needs a git repository, and {self.folder} is in none that git can "
                f"use: {last_line(outcome)}"
            )
        prefix = self._git("rev-parse", "--show-prefix")
        return Path(outcome.stdout.removesuffix("\n")), prefix.stdout.removesuffix("\n")

    def top(self) -> str:
        """Its work tree's topmost folder. InputError where it has none."""
        outcome = self._git("rev-parse", "--show-toplevel")
        if not outcome.ok:
            raise InputError(f"{_OPTION} needs a work tree: {last_line(outcome)}")
        return outcome.stdout.removesuffix("\n")

    def has(self, commit: Commit, path: str) -> bool:
        """True if a commit has that file or folder."""
        return self._git("cat-file", "-e", f"{commit.sha}:{path}").ok

    def has_changes(self) -> bool:
        """True if files that git tracks differ from HEAD."""
        # Without its locks git does not renew the index.
        outcome = self._git(
            "--no-optional-locks", "status", "--porcelain", "--untracked-files=no",
            "--ignore-submodules=all",
        )  # fmt: skip
        return outcome.ok and bool(outcome.stdout.strip())

    def check_out(self, repository: Path, commit: Commit, target: Path) -> None:
        """A checkout in the new folder `target`. InputError where git cannot make it."""
        plain = ("--quiet", "--shared", "--no-checkout", "--no-recurse-submodules", "--template=")
        made = self._git(*_LOCAL, "clone", *plain, "--", str(repository), str(target), alone=True)
        if made.ok:
            detached = ("checkout", "--quiet", "--force", "--detach", commit.sha)
            made = self._git("-C", str(target), *detached, alone=True)
        if not made.ok:
            raise InputError(f"{_OPTION}: git cannot check out {commit.name}: {last_line(made)}")

    def add_submodules(self, repository: Path, target: Path) -> tuple[str, ...]:
        """Check out what a checkout's submodules are at; the paths of those that are not here."""
        missing: list[str] = []
        waiting = [(repository, target, "")]
        while waiting:
            owner, tree, above = waiting.pop()
            names = self._submodule_names(tree)
            for path, sha in self._gitlinks(tree):
                name = names.get(path, "")
                module = owner / "modules" / name
                place = tree / path
                taken = len(missing) + len(waiting) < _MOST_SUBMODULES
                if taken and _is_inside(name) and _is_plain(tree, path) and module.is_dir():
                    place.rmdir()
                    try:
                        self.check_out(module, Commit(path, sha, ""), place)
                    except InputError:
                        remove_tree(place)
                        place.mkdir()
                    else:
                        waiting.append((module, place, f"{above}{path}/"))
                        continue
                missing.append(f"{above}{path}")
        return tuple(sorted(missing))

    def _gitlinks(self, tree: Path) -> list[tuple[str, str]]:
        """Path and commit of each submodule of a checkout."""
        listed = self._git("-C", str(tree), "ls-files", "--stage", "-z", "--", alone=True)
        rows = (entry.partition("\t") for entry in listed.stdout.split("\0"))
        return [(path, head.split()[1]) for head, _, path in rows if head.startswith("160000 ")]

    def _submodule_names(self, tree: Path) -> dict[str, str]:
        """Names that .gitmodules gives the submodule at each path."""
        asked = ("config", "--file", ".gitmodules", "--no-includes", "--null", "--get-regexp")
        output = self._git("-C", str(tree), *asked, r"^submodule\..*\.path$", alone=True)
        pairs = (word.partition("\n") for word in output.stdout.split("\0"))
        return {path: key[len("submodule.") : -len(".path")] for key, _, path in pairs if path}

    def _git(self, *arguments: str, alone: bool = False) -> Outcome:
        own = {name: text for name, text in self.env.items() if name not in OF_A_REPOSITORY}
        env = {**own, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(_ALONE if alone else {})}
        argv = ("git", *RUN_NOTHING, *arguments)
        return self.processes.run(ProcessRequest(argv, env, self.folder))


def _is_inside(name: str) -> bool:
    """True if a name from the repository is no way out of the folder of modules."""
    return bool(name) and ".." not in name.split("/") and not name.startswith("/")


def _is_plain(tree: Path, path: str) -> bool:
    """True if git left an empty folder there, with no link on the way."""
    place = tree / path
    return place.resolve() == tree.resolve() / path and place.is_dir() and not any(place.iterdir())


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")  # `ext::COMMAND` and the like run programs
_SCHEMES = ("https", "ssh", "file")
# Among what was resolved: folders of submodules whose commits are not at hand.
EMPTY_SUBMODULES = "empty_submodules"
_PROTOCOLS = tuple(
    word for scheme in _SCHEMES for word in ("-c", f"protocol.{scheme}.allow=always")
)
# A check-out needs nothing of the user's: no line endings, no filters (LFS), no attributes.
_GIT_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


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
    return fetcher.run("git", *RUN_NOTHING, *question, env=_GIT_ALONE).ok


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
            f"{name}^{{commit}}", env=_GIT_ALONE,
        )  # fmt: skip
        if outcome.ok:
            return outcome.stdout.strip()
    raise InputError(f"{source.url} has no commit, tag or branch '{source.commit}'")


def _git(fetcher: Fetcher, *arguments: str, alone: bool = False) -> str:
    outcome = fetcher.run("git", *RUN_NOTHING, *arguments, env=_GIT_ALONE if alone else {})
    if outcome.reason == "not-found":
        raise InputError("a git source needs git; run 'apt-get install git'")
    if not outcome.ok:
        raise InputError(f"git cannot fetch the source: {last_line(outcome)}")
    return outcome.stdout.strip()
