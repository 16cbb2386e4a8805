"""Compilers as a project calls them, without ensign: by a name, and watched while they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from ensign.builders.recorder import Recorded, recorded_programs
from ensign.host.root_directory import RootDirectory
from ensign.toolchains.find import Toolchain, installed_compilers
from ensign.toolchains.places import THIS_MACHINE, ProgramPlace


def watched_programs(
    toolchain: Toolchain, path: str, root: RootDirectory | None = None
) -> tuple[Recorded, ...]:
    """Each name runs what it would run without ensign: `cc` is the system's own compiler."""
    place = root or THIS_MACHINE
    programs = {each.name: each for each in recorded_programs(toolchain, path, place)}
    for name in installed_compilers(path, root):
        driver = name.replace("gcc", "g++").replace("clang", "clang++")
        for each in (Recorded(name, "cc", ""), Recorded(driver, "cxx", "")):
            programs.setdefault(each.name, each)
    # What rustup puts on the path starts the real rustc past the recorder.
    found = (
        (each, "" if each.tool == "rustc" else place.which(each.name, path))
        for each in programs.values()
    )
    return tuple(
        replace(each, program=where or each.program)
        for each, where in found
        if where or each.program
    )


def called_by_name(toolchain: Toolchain, path: str, place: ProgramPlace) -> Toolchain:
    """As a user calls it: by a name on the search path, where that is the same program."""

    def name(program: str) -> str:
        short = PurePosixPath(program).name
        found = place.which(short, path) if short else ""
        same = found != "" and place.real(found) == place.real(program)
        return short if same else program

    return replace(
        toolchain,
        cc=name(toolchain.cc),
        cxx=name(toolchain.cxx),
        ar=name(toolchain.ar),
        ranlib=name(toolchain.ranlib),
        nm=name(toolchain.nm),
        ld=name(toolchain.ld),
    )
