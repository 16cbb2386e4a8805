"""`compare --revisions`: one command, once in a clean checkout of each commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.host.temporary import temporary_folder
from ensign.lab.compare.options import Options
from ensign.lab.ports import Ports
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import REVISIONS, SAME_COMMIT, UNCOMMITTED
from ensign.model.findings import Finding
from ensign.model.quoting import shortened
from ensign.sources.checkouts import Commit, UserRepository, names_of

_LONGEST_LIST = 200


@dataclass(frozen=True, slots=True)
class Checkouts:
    """The options with each command in its checkout; `root` is above all of these.

    `findings` say which commits they are, and what is not part of them.
    """

    options: Options
    root: Path | None = None
    findings: tuple[Finding, ...] = ()


@contextmanager
def in_checkouts(said: str | None, options: Options, ports: Ports) -> Iterator[Checkouts]:
    """Checkouts of both revisions in `A..B`, for as long as they are needed.

    InputError where git does not know them, or the folder that ensign was started in is not there.
    """
    if said is None:
        if options.build is not None:
            raise InputError("--build is run in checkouts: it needs --revisions A..B")
        yield Checkouts(options)
        return
    names = names_of(said)
    if options.names:
        raise InputError("--name is for commands; with --revisions these are named after them")
    repository = UserRepository(ports.processes(), ports.env, Path.cwd())
    place, inside = repository.place()
    commits = repository.commits(names)
    with temporary_folder("revisions") as root:
        folders = []
        empty: list[str] = []
        for number, commit in enumerate(commits, 1):
            target = root / str(number)
            repository.check_out(place, commit, target)
            empty += repository.add_submodules(place, target)
            if not (target / inside).is_dir():
                raise InputError(f"--revisions: {commit.name} has no folder {inside}")
            folders.append(str(target / inside))
        findings = _findings(commits, empty, uncommitted=repository.has_changes())
        yield Checkouts(_in_folders(options, commits, folders), root, findings)


def _in_folders(options: Options, commits: tuple[Commit, ...], folders: list[str]) -> Options:
    """Every command in every checkout; a file for the output is where the user is."""
    several = len(options.commands) > 1
    rows = [
        (commit, folder, command)
        for commit, folder in zip(commits, folders, strict=True)
        for command in options.commands
    ]
    own = ("setup", "prepare", "cleanup", "load", "preload")
    repeated = {
        part: texts * len(commits) for part in own if len(texts := getattr(options, part)) > 1
    }
    output = options.output
    if output is not None and options.output_file is not None and not output.startswith("{"):
        output = str(Path(output).absolute())
    return replace(
        options,
        commands=tuple(command for _, _, command in rows),
        names=tuple(f"{at.name}: {command}" if several else at.name for at, _, command in rows),
        folders=tuple(folder for _, folder, _ in rows),
        output=output,
        **repeated,
    )


def _findings(
    commits: tuple[Commit, ...], empty: list[str], *, uncommitted: bool
) -> tuple[Finding, ...]:
    text = "; ".join(each.said for each in commits)
    if empty:
        names = shortened(", ".join(dict.fromkeys(empty)), _LONGEST_LIST)
        text += f"; folders of submodules that are not in this repository are empty: {names}"
    found = [REVISIONS.found(text)]
    first, second = commits
    if first.sha == second.sha:
        same = f"{first.name} and {second.name} are the same commit, {first.sha[:12]}"
        found.append(SAME_COMMIT.found(same))
    if uncommitted:
        text = "changes of the work tree that are not committed are not part of this"
        found.append(UNCOMMITTED.found(text))
    return tuple(found)
