"""`compare --revisions`: commits of the repository here, and the study that they are raced by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ensign.experiment.compare.options import Options
from ensign.experiment.ports import Ports
from ensign.experiment.revision_study import NAME, CheckedOut, study_text
from ensign.experiment.study.prepare import open_study
from ensign.experiment.study_file import StudyFile
from ensign.host.temporary import temporary_folder
from ensign.model.errors import InputError, StudyError
from ensign.model.finding_kinds.builds import REVISIONS, UNCOMMITTED
from ensign.model.findings import Finding
from ensign.sources.checkouts import Commit, UserRepository, names_of


@dataclass(frozen=True, slots=True)
class RevisionStudy:
    """The study, and which commits it is about; its folder is there only as long as it is open."""

    file: StudyFile
    findings: tuple[Finding, ...]


@contextmanager
def revision_study(
    said: str, options: Options, files: tuple[str, ...], ports: Ports, *, confined: bool
) -> Iterator[RevisionStudy]:
    """The study of both revisions in `A..B`; nothing of it lies in the user's repository.

    InputError where git does not know them, or for what a study has no place for.
    """
    names = names_of(said)
    repository = UserRepository(ports.processes(), ports.env, Path.cwd())
    _, inside = repository.place()
    commits = repository.commits(names)
    for commit in commits:
        if inside and not repository.has(commit, inside.rstrip("/")):
            raise InputError(f"--revisions: {commit.name} has no folder {inside}")

    def has(path: str) -> bool:
        return all(repository.has(commit, path) for commit in commits)

    if confined and options.output_file is not None:
        raise InputError(
            "--output FILE with --revisions needs --unconfined: confined programs write no file "
            "of yours"
        )
    top = repository.top()
    text = study_text(options, CheckedOut(top, names, inside.rstrip("/"), has, files))
    with temporary_folder(NAME) as folder:
        path = folder / f"{NAME}.toml"
        path.write_text(text)
        try:
            file = open_study(path, ports)
        except StudyError as error:
            said = re.sub(rf"{re.escape(str(path))}(:\d+)?: ", "", str(error))
            raise InputError(f"--revisions: {said}") from None
        changed = repository.has_changes()
        yield RevisionStudy(
            file if confined else file.unconfined(), tuple(_findings(commits, changed=changed))
        )


def _findings(commits: tuple[Commit, ...], *, changed: bool) -> Iterator[Finding]:
    yield REVISIONS.found("; ".join(each.said for each in commits))
    if changed:
        text = "changes of the work tree that are not committed are not part of this"
        yield UNCOMMITTED.found(text)
