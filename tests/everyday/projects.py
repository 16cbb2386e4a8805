"""Small projects as people have them, with what makes variants of them differ."""

from __future__ import annotations

import shutil
from pathlib import Path

from end_to_end.small_study import MARK

PROGRAMS = Path(__file__).parent / "programs"

# The variant with -DMORE does the work three times; the compiler makes the same of it otherwise.
STUDY = """\
name = "everyday"
layouts = "natural"
{top}
[source]
kind = "path"
path = "source"

[build]
commands = [["make", "CC={{cc}}", "CFLAGS={{cflags}}", "LDFLAGS={{ldflags}}"]]
artifact = "{artifact}"
env.{mark} = "{folder}"
deadline = "60s"
{build}

[axes]
compiler = ["gcc-12"]
optimization = ["-O1"]
flags = {flags}

[baseline]
flags = ""

[race]
budget = "60s"
rounds = 5

[[workloads]]
name = "work"
command = {command}
"""

# A program and its library; LINK says how the one finds the other.
LIBRARY = """\
LINK = -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib'
SONAME = libwork.so
main: main.c lib/libwork.so
	$(CC) $(CFLAGS) -o $@ main.c -Llib -lwork $(LINK) $(LDFLAGS)
lib/libwork.so: work.c
	mkdir -p lib
	$(CC) $(CFLAGS) -shared -fPIC -Wl,-soname,$(SONAME) -o lib/$(SONAME) work.c $(LDFLAGS)
	test -e $@ || ln -s $(SONAME) $@
"""

# A program whose hot unit comes from an object or an archive.
PLAIN = """\
main: main.o work.o
	$(CC) $(CFLAGS) -o $@ main.o work.o $(LDFLAGS)
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
"""


def write_project(  # noqa: PLR0913  # each has its default
    folder: Path,
    makefile: str,
    *,
    artifact: str = "main",
    command: str = '["{artifact}", "5000000"]',
    flags: str = '["", "-DMORE"]',
    build: str = "",
    top: str = "",
) -> Path:
    """`study.toml` in that folder, and the project in `source`, which is given back."""
    source = folder / "source"
    shutil.copytree(PROGRAMS, source)
    (source / "Makefile").write_text(makefile)
    study = STUDY.format(
        artifact=artifact, build=build, command=command, flags=flags, folder=folder, mark=MARK,
        top=top,
    )  # fmt: skip
    (folder / "study.toml").write_text(study)
    return source
