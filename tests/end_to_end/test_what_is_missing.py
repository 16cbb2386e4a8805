"""Without root, bubblewrap, or what makes environments: what is lost is said, and the rest works.

A program is missing where its file is nothing, in a mount namespace of the test's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from ensign.meter.client import find_meter
from unwrapped import unwrapped

NOBODY = 65534
_PATIENCE_S = 300.0
_NEXT = "(the next command)"
# One command line after the other, as long as they end well.
_CALL = f"""
import itertools, sys
from ensign.cli.main import run_command_line
for between, words in itertools.groupby(sys.argv[1:], "--".__eq__):
    if between:
        print("{_NEXT}", flush=True)
    elif status := run_command_line(list(words)):
        sys.exit(status)
"""
_AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
_CONFINES = ("bwrap",)
_MAKES_ROOTS = ("mmdebstrap", "debootstrap")
_STUDY = """
name = "missing"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["make", "CC={cc}", "CFLAGS={cflags}", "LDFLAGS={ldflags}", "program"]]
artifact = "program"

[environments.older]
debian = "bullseye"
packages = ["gcc-9", "libc6-dev"]

[axes]
compiler = ["gcc-12", "gcc-9@older"]

[baseline]
compiler = "gcc-12"

[[workloads]]
name = "run"
command = ["{artifact}"]

[race]
budget = "20s"
precision = "60%"
"""
_PROGRAM = """
int main(void) {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < 20000000; i++) sum += i;
    return 0;
}
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can hide programs")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where other users reach it."""
    made = Path(tempfile.mkdtemp(prefix="ensign-test-", dir="/tmp"))
    (made / "source").mkdir()
    (made / "source/program.c").write_text(_PROGRAM)
    (made / "missing.toml").write_text(_STUDY)
    yield made
    shutil.rmtree(made)


def ensign(folder: Path, hidden: Sequence[str], *words: str, root: bool) -> tuple[int, str]:
    """The status and all that is said by ensign, called by root or nobody without these.

    `--` stands between command lines.
    """
    if not root:
        for each in (folder, *folder.rglob("*")):
            os.chown(each, NOBODY, NOBODY)
    there = filter(None, map(shutil.which, hidden))
    script = "".join(f"mount --bind /dev/null {each} && " for each in there) + 'exec "$@"'
    before = () if root else _AS_NOBODY
    argv = ("unshare", "--mount", "sh", "-c", script, "sh", *before, sys.executable, "-c", _CALL)
    env = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "TMPDIR": "/tmp",  # noqa: S108
        "ENSIGN_CACHE": str(folder / "cache"),
        "ENSIGN_RACE_LOCK": str(folder / "lock"),
        "ENSIGN_METER_PROGRAM": str(find_meter()),
    }
    done = subprocess.run(
        (*argv, *words), env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=_PATIENCE_S, check=False,
    )  # fmt: skip
    return done.returncode, unwrapped(done.stdout)


@pytest.mark.parametrize(("root", "confines", "makes"), list(product((True, False), repeat=3)))
def test_plan_and_doctor_say_what_is_lost(
    folder: Path, *, root: bool, confines: bool, makes: bool
) -> None:
    hidden = (*(() if confines else _CONFINES), *(() if makes else _MAKES_ROOTS))
    both = ("plan", "missing.toml", "--", "doctor", "--no-race")
    status, said = ensign(folder, hidden, *both, root=root)
    assert status == 0, said
    plan, _, doctor = said.partition(_NEXT)
    assert ("confined by bubblewrap" in plan) == confines
    assert ("not confined: bubblewrap is not installed" in plan) != confines
    if not confines:
        assert "gcc-9-older-O2: environments need bubblewrap" in plan
    elif not makes:
        assert "gcc-9-older-O2: the environment 'older' needs mmdebstrap" in plan
    else:
        assert "gcc-9-older-O2: not tried: the environment 'older' is made at the first run" in plan
    assert ("builds and races are not confined" in doctor) != confines
    assert ("no environment of a Debian release can be made" in doctor) != makes
    assert ("sudo apt-get install bubblewrap" in doctor) == (not confines and not root)
    if confines:
        assert f"runs as {'nobody' if root else 'you'}" in doctor


@pytest.mark.parametrize(
    ("root", "hidden"),
    [(True, (*_CONFINES, *_MAKES_ROOTS)), (False, (*_CONFINES, *_MAKES_ROOTS)),
     (False, _MAKES_ROOTS)],
)  # fmt: skip
def test_the_rest_is_raced(folder: Path, *, root: bool, hidden: Sequence[str]) -> None:
    study = (folder / "missing.toml").read_text()
    (folder / "missing.toml").write_text(
        study.replace("[baseline]", 'optimization = ["-O1", "-O2"]\n\n[baseline]').replace(
            'compiler = "gcc-12"', 'compiler = "gcc-12"\noptimization = "-O1"'
        )
        + '\n[[exclude]]\ncompiler = "gcc-9@older"\noptimization = "-O2"\n'
    )
    status, said = ensign(folder, hidden, "run", "missing.toml", root=root)
    assert status == 0, said
    assert "gcc-12-O2 † +" in said or "gcc-12-O2 † −" in said, said
    assert "gcc-9-older-O1: left out" in said
    assert ("[not-confined]" in said) == ("bwrap" in hidden)
