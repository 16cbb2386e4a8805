"""Trees as people have them: with old objects, generated sources, a compiler cache, archives."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from everyday.projects import PLAIN, write_project
from everyday.truth import Truth, studied

ARCHIVE = """\
main: main.o libwork.a
	$(CC) $(CFLAGS) -o $@ main.o libwork.a $(LDFLAGS)
libwork.a: work.o
	$(AR) {how} $@ work.o
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
"""


def stale(source: Path, *names: str) -> None:
    """Objects of an earlier build, newer than their sources, which does the work twice."""
    for name in names:
        argv = ["make", "CC=gcc-12", "CFLAGS=-O0 -DWORK=2", name]
        subprocess.run(argv, cwd=source, check=True, capture_output=True)
    future = time.time() + 5
    for name in names:
        os.utime(source / name, (future, future))


def mended_or_withheld(ensign: Ensign, stale_name: str) -> None:
    """Built anew, and told; or kept, and then nothing is claimed and the file is named."""
    assert (ensign.folder / "source" / stale_name).exists()
    said = studied(ensign, Truth())
    if said.done.status == 0 and said.rows:
        said.told()
    else:
        said.withheld(rf"{re.escape(stale_name)}|main was not made by this build")


def test_08_a_stale_object(ensign: Ensign) -> None:
    stale(write_project(ensign.folder, PLAIN), "work.o")
    mended_or_withheld(ensign, "work.o")


def test_08_all_objects_are_stale(ensign: Ensign) -> None:
    stale(write_project(ensign.folder, PLAIN), "work.o", "main.o", "main")
    mended_or_withheld(ensign, "work.o")


def test_09_a_stale_archive(ensign: Ensign) -> None:
    source = write_project(ensign.folder, ARCHIVE.format(how="rcs"))
    stale(source, "libwork.a")
    (source / "work.o").unlink()
    makefile = source / "Makefile"
    makefile.write_text(makefile.read_text().replace("libwork.a: work.o", "libwork.a: work.c"))
    mended_or_withheld(ensign, "libwork.a")


def test_10_stale_objects_that_git_ignores(ensign: Ensign) -> None:
    source = write_project(ensign.folder, PLAIN)
    (source / ".gitignore").write_text("*.o\n/main\n")
    for argv in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *argv], cwd=source, check=True)
    stale(source, "work.o", "main.o")
    studied(ensign).told()


GENERATED = """\
main: main.o work.o table.o
	$(CC) $(CFLAGS) -o $@ main.o work.o table.o $(LDFLAGS)
table.c: generate.sh
	sh generate.sh > $@
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
"""


def test_11_generated_sources(ensign: Ensign) -> None:
    source = write_project(ensign.folder, GENERATED)
    (source / "generate.sh").write_text("echo 'int table[] = {1, 2, 3};'\n")
    studied(ensign).told()


def test_11_the_hot_source_is_generated_in_a_folder(ensign: Ensign) -> None:
    makefile = (
        GENERATED.replace("table.c: generate.sh\n\tsh generate.sh > $@", "").replace(
            "work.o table.o", "gen/hot.o"
        )
        + "gen/hot.c: work.c\n\tmkdir -p gen\n\tsed 's/work.h/..\\/work.h/' work.c > $@\n"
    )
    write_project(ensign.folder, makefile)
    studied(ensign).told()


def test_12_a_compiler_cache(ensign: Ensign) -> None:
    source = write_project(
        ensign.folder,
        PLAIN.replace("$(CC) $(CFLAGS) -c", "ccache $(CC) $(CFLAGS) -c"),
        build=f'env.CCACHE_DIR = "{ensign.folder}/ccache"\nenv.PATH = "{os.environ["PATH"]}"',
        top='sandbox.write = ["ccache"]\n',
    )
    everybodys = ["chmod", "-R", "a+rwX", str(ensign.folder / "ccache")]
    warm = {**os.environ, "CCACHE_DIR": str(ensign.folder / "ccache")}
    for flags in ("", "-DMORE"):
        argv = ["make", "-B", "CC=gcc-12", f"CFLAGS=-O1 {flags}"]
        subprocess.run(argv, cwd=source, env=warm, check=True, capture_output=True)
    subprocess.run(["rm", "main", "main.o", "work.o"], cwd=source, check=True)
    subprocess.run(everybodys, check=True)  # started by root, builds run as somebody else
    studied(ensign).told()


@pytest.mark.parametrize("how", ["rcs", "rcsT"])
def test_13_archives(ensign: Ensign, how: str) -> None:
    write_project(ensign.folder, ARCHIVE.format(how=how))
    said = studied(ensign).told()
    assert "archive-unused" not in said.codes
