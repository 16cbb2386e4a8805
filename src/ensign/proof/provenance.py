"""The origins of all files of a program, when its stage has built it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.host.files import tree_entries
from ensign.model.calls import Call
from ensign.proof.facts import Proof
from ensign.proof.leftovers import PROGRAM, Leftover, kind_of
from ensign.proof.link import TreePlace
from ensign.proof.origins import OriginEvidence, trace


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was there when the first stage began, at that moment, and the calls before this stage.

    `recorded` is False where no calls are recorded at all.
    """

    before: Sequence[Leftover]
    calls: Sequence[Call]
    began_unix_ns: int
    recorded: bool


@dataclass(frozen=True, slots=True)
class FilesOfBuild:
    """What was taken out of the tree: the folder of the copies, the program, names of tools."""

    folder: Path
    artifact: str
    tools: frozenset[str]

    def of_program(self) -> Iterator[str]:
        """Programs and libraries among them, the artifact first."""
        yield self.artifact
        for name, path in tree_entries(self.folder):
            plain = path.is_file() and not path.is_symlink()
            if plain and name not in self.tools | {self.artifact} and kind_of(path) == PROGRAM:
                yield name


def with_origins(
    proof: Proof,
    files: FilesOfBuild,
    place: TreePlace,
    calls: Sequence[Call],
    earlier: Earlier,
    scratch: str,
) -> Proof:
    """The proof with where all parts of the program come from."""
    evidence = OriginEvidence(
        place=place,
        calls=(*earlier.calls, *calls),
        before=earlier.before,
        began_unix_ns=earlier.began_unix_ns,
        scratch=scratch,
        used={path: frozenset(members) for path, members in proof.link.used},
        recorded=earlier.recorded,
    )
    return replace(proof, origins=trace(files.of_program(), evidence))
