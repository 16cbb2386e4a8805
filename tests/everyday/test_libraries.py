"""The hot code is in a shared library, the program is the same file in all variants."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from everyday.conftest import ROUNDS, built
from everyday.projects import LIBRARY, write_project
from everyday.truth import SAME, Truth, compared, studied

KEEP = 'runtime_files = ["lib/*.so*"]'
RUNPATH = LIBRARY.replace("--disable-new-dtags", "--enable-new-dtags")
DLOPEN = """\
main: plugin.c lib/libwork.so
	$(CC) $(CFLAGS) -o $@ plugin.c $(LDFLAGS)
lib/libwork.so: work.c
	mkdir -p lib
	$(CC) $(CFLAGS) -shared -fPIC -o $@ work.c $(LDFLAGS)
"""
VERSIONED = LIBRARY.replace("SONAME = libwork.so", "SONAME = libwork.so.1").replace(
    "-o lib/$(SONAME) work.c $(LDFLAGS)",
    "-o $@.1.2.3 work.c $(LDFLAGS)\n\tln -s libwork.so.1.2.3 lib/libwork.so.1",
)


@pytest.mark.parametrize(
    "makefile",
    [
        pytest.param(LIBRARY, id="01-rpath"),
        pytest.param(RUNPATH, id="02-runpath"),
        pytest.param(DLOPEN, id="03-dlopen"),
        pytest.param(VERSIONED, id="05-versioned"),
    ],
)
def test_a_library_of_the_build(ensign: Ensign, makefile: str) -> None:
    write_project(ensign.folder, makefile, build=KEEP)
    studied(ensign).told()


LIBTOOL = """\
main: main.lo libwork.la
	libtool --tag=CC --mode=link $(CC) $(CFLAGS) -o $@ main.lo libwork.la $(LDFLAGS)
libwork.la: work.lo
	libtool --tag=CC --mode=link $(CC) $(CFLAGS) -rpath /usr/local/lib -o $@ work.lo $(LDFLAGS)
%.lo: %.c
	libtool --tag=CC --mode=compile $(CC) $(CFLAGS) -c -o $@ $<
"""


def test_04_libtool(ensign: Ensign) -> None:
    write_project(
        ensign.folder, LIBTOOL, artifact=".libs/main", build='runtime_files = [".libs/libwork.so*"]'
    )
    said = studied(ensign)
    if said.done.status == 0 and said.rows:
        said.told()
    else:
        said.withheld(r"libwork\.so")


def machines_library(folder: Path) -> Path:
    """A library of that name which no variant built."""
    (folder / "system").mkdir()
    built("work.c", folder / "system/libwork.so", "-shared", "-fPIC", "-Wl,-soname,libwork.so")
    return folder / "system"


def test_06_another_library_of_the_same_name(ensign: Ensign) -> None:
    system = machines_library(ensign.folder)
    link = LIBRARY.replace("'$$ORIGIN/lib'", f"'{system}'")
    write_project(ensign.folder, link, build=KEEP)
    said = studied(ensign, Truth(SAME, SAME))
    said.withheld(r"lib/libwork\.so", r"system/libwork\.so")


def test_06_another_library_by_the_environment(ensign: Ensign) -> None:
    system = machines_library(ensign.folder)
    command = f'["env", "LD_LIBRARY_PATH={system}", "{{artifact}}", "5000000"]'
    write_project(ensign.folder, RUNPATH, build=KEEP, command=command)
    said = studied(ensign, Truth(SAME, SAME))
    said.withheld(r"lib/libwork\.so", r"system/libwork\.so")


@pytest.mark.parametrize("how", ["$ORIGIN", "absolute", "LD_LIBRARY_PATH"])
def test_07_one_program_in_two_folders(ensign: Ensign, here: Path, how: str) -> None:
    commands = []
    for name, more in (("one", ()), ("three", ("-DMORE",))):
        folder = here / name
        place = folder / "lib"
        built("work.c", place / "libwork.so", "-shared", "-fPIC", "-Wl,-soname,libwork.so", *more)
        paths = {"$ORIGIN": "$ORIGIN/lib", "absolute": str(place), "LD_LIBRARY_PATH": "/nowhere"}
        built("main.c", folder / "main", f"-L{place}", "-lwork", f"-Wl,-rpath,{paths[how]}")
        before = f"env LD_LIBRARY_PATH={place} " if how == "LD_LIBRARY_PATH" else ""
        commands.append(f"{before}./{name}/main {ROUNDS}")
    compared(ensign, *commands, "--name", "one", "--name", "three").told(three=Truth())


def test_45_the_same_bytes_library_included(ensign: Ensign) -> None:
    write_project(ensign.folder, LIBRARY, build=KEEP, flags='["", "-Wall"]')
    said = studied(ensign, Truth(SAME, SAME, same_bytes=True))
    assert said.done.status == 0, said.done.err
    statuses = [build["status"] for build in said.json["builds"]]
    assert statuses[0] == "built"
    assert statuses[1] == "same"
    assert said.rows == []


def test_a_link_to_the_program_is_the_program(ensign: Ensign, here: Path) -> None:
    shutil.copytree(built("shapes.c", here / "real/one").parent, here / "other")
    (here / "link").symlink_to("real/one")
    subprocess.run(["strip", "-d", here / "other/one"], check=True)
    truth = Truth(SAME, SAME, same_bytes=True)
    said = compared(ensign, "./link spin 1000000", "./other/one spin 1000000", truth=truth)
    assert said.done.status == 0, said.done.err
