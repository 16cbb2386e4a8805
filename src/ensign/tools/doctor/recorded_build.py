"""What `ensign record` wrote down, held against the files that are there now."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.builders.record_file import RECORD_FILE, BuildRecord, read_record
from ensign.host.files import file_sha256
from ensign.model.calls import Call
from ensign.model.finding_kinds.proof import RECORD_PARTIAL, RECORD_STALE
from ensign.model.findings import Finding
from ensign.model.quoting import shortened
from ensign.proof.evidence import BuildEvidence, some
from ensign.proof.facts import FileOrigins, LinkFacts
from ensign.proof.link import TreePlace
from ensign.proof.origins import OriginEvidence, trace

_MOST_FOLDERS_UP = 8
_LONGEST_COMMAND = 60
_CHANGING = ("objcopy", "strip")


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record, its file, and where the paths in it are now."""

    file: Path
    record: BuildRecord

    @property
    def place(self) -> TreePlace:
        """The tree may have been moved or copied since."""
        return TreePlace(self.file.absolute().parent, self.record.header.folder)

    @property
    def said(self) -> str:
        """For people: which record this is, and what may be wrong with it."""
        header = self.record.header
        command = shortened(shlex.join(header.command), _LONGEST_COMMAND)
        text = f"{self.file.name} ({header.calls} calls of {command}"
        text += f", {header.kept} of them kept from earlier builds" if header.kept else ""
        text += f"; it failed with status {header.exit}" if header.exit else ""
        moved = str(self.place.tree) != header.folder
        return f"{text}; recorded in {header.folder})" if moved else f"{text})"


def find_record(folder: Path, named: Path | None = None) -> FoundRecord | None:
    """The named record, or the one in the folder or above it, of the same owner. InputError."""
    if named is not None:
        return FoundRecord(named, read_record(named))
    folder = folder.absolute()
    owner = folder.stat().st_uid
    for each in (folder, *folder.parents)[:_MOST_FOLDERS_UP]:
        file = each / RECORD_FILE
        if file.is_file() and file.lstat().st_uid == owner:
            return FoundRecord(file, read_record(file))
    return None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a file stands to a record: the call that linked it; else why it is not known."""

    link: Call | None = None
    unknown: str = ""
    stale: bool = False


def standing(record: BuildRecord, place: TreePlace, path: Path) -> Standing:
    """By the bytes of the file, and by its name where no call wrote these bytes."""
    digest = file_sha256(path)
    made = _maker(record.calls, digest)
    if made is not None:
        if made.has_linked or made.tool == "ld" or (made.is_rust and made.line.links):
            return Standing(made)
        return Standing(unknown="the recorded call that wrote it did not link it")
    at = {
        place.find(output.path, "/").resolve() for call in record.calls for output in call.outputs
    }
    if path.resolve() in at:
        why = "it was changed after the recorded build wrote it"
        return Standing(unknown=why, stale=True)
    return Standing(unknown="no recorded call linked it")


def _maker(calls: Sequence[Call], digest: str) -> Call | None:
    """The call that wrote these bytes; of a stripped file, the link before that."""
    for _ in range(len(_CHANGING) + 1):
        found = [call for call in calls if digest in (each.sha256 for each in call.outputs)]
        if not found:
            return None
        call = found[-1]
        if call.tool not in _CHANGING or not call.inputs:
            return call
        digest = call.inputs[0].sha256
    return None


def origins_of(found: FoundRecord, path: Path, link: LinkFacts) -> tuple[FileOrigins, ...]:
    """From which recorded calls the objects of a file come."""
    calls = found.record.calls
    began = min((call.started_unix_ns for call in calls), default=0)
    evidence = OriginEvidence(found.place, calls, (), began)
    name = os.path.relpath(path.absolute(), found.place.tree)
    return trace((name,), evidence, link)


def record_findings(seen: BuildEvidence, found: FoundRecord) -> Iterator[Finding]:
    """That the record is not of this file, or of a part of it."""
    stand = standing(found.record, found.place, Path(seen.proof.binary.path))
    if stand.stale:
        yield seen.finding(
            RECORD_STALE, f"{stand.unknown}, so that the record says nothing of it; record it again"
        )
    for each in seen.proof.origins:
        if each.strays:
            total = each.objects + len(each.strays)
            names = some([stray.name for stray in each.strays])
            yield seen.finding(
                RECORD_PARTIAL,
                f"{len(each.strays)} of the {total} objects in it were compiled by no recorded "
                f"call: {names}; a whole build, recorded, would show how",
            )
