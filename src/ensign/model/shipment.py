"""The change that ships a variant, and observations of a build by it without ensign's help."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.instructions import InstructionSets


@dataclass(frozen=True, slots=True)
class Verified:
    """A build of the project as changed, beside the build that was measured.

    `problems` are measured effects that it lacks, `notes` say what was compared and found alike.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    same_bytes: bool


NOT_VERIFIED = Verified(("it was not built",), (), same_bytes=False)


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file for the project, by its path in the folder of the shipment."""

    name: str
    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class VerifiedWith:
    """Effect of the same change with another compiler; `compiler` is its own name for itself."""

    name: str
    compiler: str
    verified: Verified


@dataclass(frozen=True, slots=True)
class Shipment:
    """The change of a project for one variant.

    `files` are a patch, or a script and what its training reads. `flags` and `link_flags` are what
    it gives to compiler and linker, `commands` what a user types to build it then. `instructions`
    is what the program may use of a processor, None where that is not known; `hosts` are those on
    which that was found to run, `doubts` say of which others it is not known, and why. `others`
    are further compilers that it was verified with.
    """

    variant: str
    compiler: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    files: tuple[ShippedFile, ...]
    commands: tuple[str, ...]
    verified: Verified
    instructions: InstructionSets | None = None
    hosts: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    others: tuple[VerifiedWith, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Measured effects that it lacks, with any of the compilers."""
        of_others = (
            f"with {other.name}, {problem}"
            for other in self.others
            for problem in other.verified.problems
        )
        return (*self.verified.problems, *of_others)
