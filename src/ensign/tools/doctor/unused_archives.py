"""Archives in a folder whose functions a program takes from shared libraries instead."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ensign.meter.questions import read_processor
from ensign.model.finding_kinds.proof import ARCHIVE_PASSED_OVER
from ensign.model.findings import Finding
from ensign.model.instructions import LEVELS
from ensign.proof.archives import read_archive
from ensign.proof.elf import exported
from ensign.proof.evidence import some
from ensign.proof.identity import Identity
from ensign.proof.loader import Library, LoaderSurroundings, read_cache


def loader_surroundings() -> LoaderSurroundings:
    """The variable of this process, the processor, the loader's cache."""
    named = os.environ.get("LD_LIBRARY_PATH", "")
    folders = tuple(part or "." for part in re.split("[:;]", named)) if named else ()
    return LoaderSurroundings(folders, processor_levels(), read_cache())


def processor_levels() -> tuple[str, ...]:
    """The levels of x86-64 that the processor has, the highest first."""
    processor = read_processor()
    if not processor.flags:
        return ()
    return tuple(level for level in reversed(LEVELS) if not processor.lacks(level))


def archives_of(files: Mapping[str, Path]) -> dict[str, frozenset[str]]:
    """Definitions of each archive of a folder for others, by its name."""
    definitions = {}
    for name, path in files.items():
        archive = read_archive(path) if name.endswith(".a") else None
        if archive is not None:
            definitions[name] = frozenset().union(*(member.defines for member in archive.members))
    return definitions


def passed_over(
    subject: str,
    identity: Identity,
    libraries: Sequence[Library],
    archives: Mapping[str, frozenset[str]],
    folder: Path,
) -> Iterator[Finding]:
    """A finding for each archive and library. What the folder built itself is no doubt."""
    for name, defines in archives.items():
        wanted = identity.imports & defines
        stem = Path(name).stem
        for library in libraries if wanted else ():
            of_folder = library.path is not None and library.path.resolve().is_relative_to(folder)
            if library.path is None or of_folder or library.name.startswith(f"{stem}.so"):
                continue
            taken = sorted(wanted & exported(library.path))
            if taken:
                yield ARCHIVE_PASSED_OVER.found(
                    f"{name} defines {some(taken)}, but the program takes "
                    f"{'it' if len(taken) == 1 else 'them'} from {library.name}",
                    subject,
                )
                wanted -= frozenset(taken)
