"""Whether two commands are one program: same loadable bytes, same arguments."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ensign.builders.verify import read_artefact
from ensign.host.files import file_sha256
from ensign.lab.compare.options import Candidate
from ensign.model.findings import Finding, Severity


def same_bytes_findings(entries: Sequence[Candidate]) -> tuple[Finding, ...]:
    """`same-bytes` for each command that is the same program and arguments as an earlier one."""
    found: list[Finding] = []
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for entry in entries:
        program = _program_sha256(entry.argv[0])
        if program is None:
            continue
        key = (program, entry.argv[1:])
        if key in seen:
            text = f"same bytes: {entry.name} and {seen[key]} are one program with equal arguments"
            found.append(Finding("same-bytes", Severity.NOTE, text, entry.name))
        seen.setdefault(key, entry.name)
    return tuple(found)


def _program_sha256(name: str) -> str | None:
    path = shutil.which(name)
    if path is None:
        return None
    try:
        artefact = read_artefact(Path(path))
        return file_sha256(Path(path)) if artefact is None else artefact.loadable_sha256
    except OSError:
        return None
