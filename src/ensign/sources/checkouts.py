"""Clean checkouts of commits of the user's repository, which is only read: for `--revisions`.

Each has a repository of its own beside its files, which borrows all objects of the user's: nothing
of the history is copied, and what a build does with git stays there. Hooks, filters and the user's
configuration of git take no part; submodules and files of LFS are not fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.processes import Outcome, Processes, ProcessRequest
from ensign.model.errors import InputError
from ensign.sources.fetched import OF_A_REPOSITORY, last_line
from ensign.sources.git import RUN_NOTHING

_OPTION = "--revisions"
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
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
        found = []
        for name in names:
            asked = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            outcome = self._git("rev-parse", *asked)
            if not outcome.ok:
                raise InputError(f"{_OPTION}: there is no commit, tag or branch '{name}' here")
            sha = outcome.stdout.strip()
            shown = self._git("show", "-s", "--no-show-signature", "--format=%s", sha, "--")
            found.append(Commit(name, sha, shown.stdout.strip()))
        return tuple(found)

    def place(self) -> tuple[Path, str]:
        """Where git keeps it, and the place of `folder` in it. InputError where there is none."""
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

    def has_changes(self) -> bool:
        """Whether files that git tracks differ from HEAD."""
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

    def _git(self, *arguments: str, alone: bool = False) -> Outcome:
        own = {name: text for name, text in self.env.items() if name not in OF_A_REPOSITORY}
        env = {**own, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(_ALONE if alone else {})}
        argv = ("git", *RUN_NOTHING, *arguments)
        return self.processes.run(ProcessRequest(argv, env, self.folder))
