"""Detection of checks that tried a program of their own instead of the one that is raced."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ensign.builders.sandboxes import Sandbox
from ensign.host.files import file_sha256
from ensign.host.foreign_files import read_foreign
from ensign.host.os_errors import is_shortage
from ensign.meter.followed_files import FollowedFile, read_followed
from ensign.model.errors import CommandFailed
from ensign.proof.bounded_elf import DamagedFile, data_of, elf_of
from ensign.proof.loaded_bytes import code_sections, read_artifact

_SHOWN = 3
_LONGEST_LOG_BYTES = 256 * 2**20
# What an installation may change in a program without building it: RPATH, symbols, notes.
_CONTENTS = (".rodata", ".data.rel.ro")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identity of a file: all that is loaded, and its code and constants alone."""

    loaded: str
    code: str

    def is_program_of(self, other: Fingerprint) -> bool:
        """True if both are one program, perhaps installed or stripped."""
        return self.loaded == other.loaded or (bool(self.code) and self.code == other.code)


@dataclass(frozen=True, slots=True)
class TreeBefore:
    """The sandbox before the commands: what was put there, and other files of these names."""

    placed: Mapping[str, Fingerprint]
    others: frozenset[tuple[str, int, int]]


def look(sandbox: Sandbox, names: Iterable[str]) -> TreeBefore:
    """Read the programs and libraries at these places of the tree, and find their namesakes."""
    fingerprints = ((name, _fingerprint(sandbox.tree / name)) for name in names)
    placed = {name: fingerprint for name, fingerprint in fingerprints if fingerprint is not None}
    return TreeBefore(placed, frozenset(_stamp(path) for path in _namesakes(sandbox, placed)))


def changes(sandbox: Sandbox, seen: TreeBefore) -> str:
    """Changes that a check made to them, in words; empty where they are as they were."""
    texts = []
    for name, before in seen.placed.items():
        now = _fingerprint(sandbox.tree / name)
        if now is None:
            texts.append(f"{name} is gone")
        elif not now.is_program_of(before):
            texts.append(f"{name} is another one than before")
    for path in _namesakes(sandbox, seen.placed):
        now = _fingerprint(path) if _stamp(path) not in seen.others else None
        if now is not None and not _is_known(path.name, now, seen):
            texts.append(f"it made {_called(path, sandbox)}")
    return "; ".join(texts[:_SHOWN])


@dataclass(frozen=True, slots=True)
class Ran:
    """Programs that the commands of a check ran, as far as they were followed.

    `own` says whether that was the program itself, None where it was not seen; `another` is what
    they ran instead, in words.
    """

    own: bool | None
    another: str = ""


def what_ran(
    logs: Iterable[Path], sandbox: Sandbox, seen: TreeBefore, inside: Mapping[str, Path]
) -> Ran:
    """Read what `ensign-meter follow` wrote. `inside` has folders as commands see them."""
    own, judged, built, foreign = False, True, list[str](), list[str]()
    for log in logs:
        try:
            followed = read_followed(read_foreign(log, _LONGEST_LOG_BYTES))
        except (OSError, CommandFailed):  # the commands could write there
            judged = False
            continue
        judged = judged and followed.saw_anything
        for file in followed.mapped:
            path, is_inside = _outside(file.path, inside)
            if not any(PurePosixPath(name).name == path.name for name in seen.placed):
                continue
            gone = _replaced(path, file)
            now = None if file.deleted or gone else _fingerprint(path)
            if now is not None and _is_known(path.name, now, seen):
                own = True
            elif is_inside:
                name = _called(path, sandbox)
                built.append(f"a {name} that is no longer there" if gone else name)
            else:
                foreign.append(str(path))
    if built:
        return Ran(own, f"it ran {', '.join(dict.fromkeys(built[:_SHOWN]))}")
    if foreign and not own:
        return Ran(own, f"it ran {foreign[0]} instead")
    return Ran(own or None if not judged else own)


def _replaced(path: Path, mapped: FollowedFile) -> bool:
    """True if another file ran than now lies at its place, such as one that was there meanwhile."""
    try:
        return mapped.inode != path.stat().st_ino
    except OSError:
        return False


def _outside(path: str, inside: Mapping[str, Path]) -> tuple[Path, bool]:
    for prefix, folder in inside.items():
        if PurePosixPath(path).is_relative_to(prefix):
            return folder / PurePosixPath(path).relative_to(prefix), True
    return Path(path), False


def _is_known(name: str, now: Fingerprint, seen: TreeBefore) -> bool:
    return any(
        now.is_program_of(its)
        for place, its in seen.placed.items()
        if PurePosixPath(place).name == name
    )


def _namesakes(sandbox: Sandbox, placed: Mapping[str, Fingerprint]) -> Iterator[Path]:
    """Regular files called like one of them, elsewhere in the sandbox."""
    names = {PurePosixPath(name).name for name in placed}
    for root in (sandbox.tree, sandbox.temporary):
        for name in sorted(names):
            for path in root.rglob(_literal(name)):
                here = root == sandbox.tree and str(path.relative_to(root)) in placed
                if path.is_file() and not path.is_symlink() and not here:
                    yield path


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _called(path: Path, sandbox: Sandbox) -> str:
    return str(path.relative_to(sandbox.tree)) if path.is_relative_to(sandbox.tree) else path.name


def _stamp(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_ino


def _fingerprint(path: Path) -> Fingerprint | None:
    """None for what is gone, or neither program nor library; scripts are what they say."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return None
        artifact = read_artifact(path)
        if artifact is not None:
            return Fingerprint(artifact.loadable_sha256, _code_sha256(path))
        return Fingerprint(file_sha256(path), "") if mode & 0o111 else None
    except OSError as error:
        if is_shortage(error):
            raise
        return None


def _code_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with elf_of(path) as elf:
            for section in code_sections(elf):
                digest.update(data_of(section))
            for name in _CONTENTS:
                constants = elf.get_section_by_name(name)
                digest.update(b"" if constants is None else data_of(constants))
    except DamagedFile:
        return ""
    return digest.hexdigest()
