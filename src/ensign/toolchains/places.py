"""Places where compilers are looked for: this machine, or a root directory to enter."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement import Bind
from ensign.host.confinement_probe import Confinement
from ensign.host.foreign_files import hand_over
from ensign.host.programs import names_in
from ensign.host.root_directory import ROOT_PATH, RootDirectory

_LLVM = "/usr/lib"


class ProgramPlace(Protocol):
    """A machine's files, or a root directory's. Paths are as they are called there."""

    def which(self, name: str, path: str) -> str:
        """The program of that name; empty where there is none."""
        ...

    def real(self, path: str) -> str:
        """The path without links."""
        ...

    def names_in(self, folder: str) -> tuple[str, ...]:
        """Content of a folder."""
        ...


class ToolPlace(ProgramPlace, Protocol):
    """A place whose programs can be run.

    `name` is what a study calls it, `identity` a hash of all of it; both are empty for this
    machine.
    """

    @property
    def name(self) -> str:
        """Name that a study uses for it."""
        ...

    @property
    def identity(self) -> str:
        """A hash of all of it."""
        ...

    @property
    def path(self) -> str:
        """Its PATH."""
        ...

    def file(self, path: str) -> Path | None:
        """The file, on this machine; None where there is none."""
        ...

    def newest_linker(self, name: str) -> str:
        """The newest that a package of LLVM brought, which no PATH has; empty without one."""
        ...

    def argv(self, scratch: Path) -> tuple[str, ...]:
        """Words before a command that may write to `scratch` alone."""
        ...


class MachinePrograms:
    """This machine's."""

    def which(self, name: str, path: str) -> str:
        """See `ProgramPlace.which`."""
        return shutil.which(name, path=path) or ""

    def real(self, path: str) -> str:
        """See `ProgramPlace.real`."""
        return os.path.realpath(path)

    def names_in(self, folder: str) -> tuple[str, ...]:
        """See `ProgramPlace.names_in`."""
        return names_in(folder)


THIS_MACHINE = MachinePrograms()


class MachinePlace(MachinePrograms):
    """This machine, by a search path."""

    name = identity = ""

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, path: str) -> Path | None:
        """See `ToolPlace.file`."""
        real = Path(path).resolve()
        return real if real.is_file() else None

    def newest_linker(self, name: str) -> str:
        """See `ToolPlace.newest_linker`."""
        return _newest([str(path) for path in Path(_LLVM).glob(f"llvm-*/bin/ld.{name}")])

    def argv(self, scratch: Path) -> tuple[str, ...]:
        """See `ToolPlace.argv`: as it is."""
        del scratch
        return ()


@dataclass(frozen=True, slots=True)
class RootPlace:
    """A root directory, which is entered by a confinement that works."""

    root: RootDirectory
    confinement: Confinement
    path: str = ROOT_PATH

    @property
    def name(self) -> str:
        """See `ToolPlace`."""
        return self.root.name

    @property
    def identity(self) -> str:
        """See `ToolPlace`."""
        return self.root.sha256

    def which(self, name: str, path: str) -> str:
        """See `ProgramPlace.which`."""
        return self.root.which(name, path)

    def real(self, path: str) -> str:
        """See `ProgramPlace.real`."""
        return self.root.real(path)

    def file(self, path: str) -> Path | None:
        """See `ToolPlace.file`."""
        place = self.root.place(path)
        return place if place is not None and place.is_file() else None

    def names_in(self, folder: str) -> tuple[str, ...]:
        """See `ProgramPlace.names_in`."""
        return self.root.names_in(folder)

    def newest_linker(self, name: str) -> str:
        """See `ToolPlace.newest_linker`."""
        versions = [each for each in self.root.names_in(_LLVM) if each.startswith("llvm-")]
        paths = (f"{_LLVM}/{version}/bin/ld.{name}" for version in versions)
        return _newest([path for path in paths if self.file(path)])

    def argv(self, scratch: Path) -> tuple[str, ...]:
        """See `ToolPlace.argv`."""
        if self.confinement.user is not None:
            hand_over((scratch,), self.confinement.user)
        request = ConfinementRequest(
            self.path,
            root=self.root.folder,
            binds=(Bind(str(scratch), str(scratch), writable=True),),
            cwd=str(scratch),
        )
        return self.confinement.argv(request)


def _newest(paths: list[str]) -> str:
    return max(paths, key=_numbers, default="")


def _numbers(path: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", os.fspath(path))]
