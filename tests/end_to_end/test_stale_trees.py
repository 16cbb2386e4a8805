"""Source folders in which somebody built before: what of that would get into the programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, write_study
from end_to_end.test_study import results
from unwrapped import unwrapped

MAIN = """
#include <stdlib.h>
long hot(long);
int main(int count, char **words) { return hot(count > 1 ? atol(words[1]) : 0) == 42; }
"""
HOT = """
long hot(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s += i; return s; }
"""
MAKEFILE = """
program: main.o hot.o
\t$(CC) $(LDFLAGS) -o $@ main.o hot.o
clean:
\trm -f *.o program
"""
_COMPILE = 'commands = [["sh", "-c", "{cc} {cflags} -DWORK=1 -o spin spin.c {ldflags}"]]'
_MAKE = 'commands = [["make", "CC={cc}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]]'
BUILD = (f'{_COMPILE}\nartifact = "spin"', f'{_MAKE}\nartifact = "program"')


def stale(folder: Path, line: str) -> None:
    """A project in which somebody ran that command before."""
    source = folder / "source"
    source.mkdir()
    for name, text in (("main.c", MAIN), ("hot.c", HOT), ("Makefile", MAKEFILE)):
        (source / name).write_text(text)
    subprocess.run(["sh", "-ec", line], cwd=source, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gcc-12 -O0 -c hot.c", "1 of the 2 objects in program"),
        ("make CC=gcc-12 CFLAGS=-O0", "program was not made by this build"),
    ],
)
def test_a_baseline_of_stale_objects_stops_the_study(line: str, said: str, ensign: Ensign) -> None:
    stale(ensign.folder, line)
    write_study(ensign.folder, BATCH, BUILD)
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert said in done.complaint
    assert "build.clean" in done.complaint


def test_what_git_ignores_is_left_behind_and_named(ensign: Ensign) -> None:
    stale(ensign.folder, "make CC=gcc-12 CFLAGS=-O0; echo '*.o' > .gitignore; git init -q")
    clean = (BUILD[0], BUILD[1].replace("commands", 'clean = [["rm", "program"]]\ncommands', 1))
    write_study(ensign.folder, BATCH, clean)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    findings = {str(each["code"]): str(each["text"]) for each in results(ensign)["findings"]}
    assert "hot.o, main.o" in findings["ignored-files-left"]
    assert not findings.keys() & {"not-from-this-build", "flag-missing", "built-files-in-source"}


def test_a_stale_variant_cannot_win(ensign: Ensign) -> None:
    stale(ensign.folder, "gcc-12 -O3 -c hot.c -o fast.o")
    copied = "\tcase '$(CFLAGS)' in *-O2*) cp fast.o hot.o;; esac\n\t$(CC)"
    sneaky = MAKEFILE.replace("\t$(CC)", copied)
    (ensign.folder / "source/Makefile").write_text(sneaky)
    write_study(ensign.folder, BATCH, BUILD, ('"-O1", "-O2"]', '"-O1", "-O2", "-Os"]'))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    assert "gcc-12-O2" not in {entry["variant"] for entry in said["suite"]}
    (error,) = (each for each in said["findings"] if each["severity"] == "error")
    assert error["code"] == "not-from-this-build"
    assert "hot.o (as fast.o)" in str(error["text"])
    shown = unwrapped(ensign("report", "study.toml").out)
    assert "were not compiled by this build" in shown
    assert "what was built is not what was asked for" in shown
    # It was built: no build failed, and each finding names it once.
    assert "failed" not in shown
    assert "gcc-12-O2: gcc-12-O2" not in shown
    assert "gcc-12-O2" in shown
