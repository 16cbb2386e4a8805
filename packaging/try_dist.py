"""Tries what lies in dist/ as a user would: the wheel without cargo or compiler, the sdist with.

Nothing of this checkout is used but dist/. Says how long each step took; what goes wrong ends it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import venv
import zipfile
from io import BytesIO
from pathlib import Path

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

DIST = Path(__file__).parent.parent / "dist"
NEEDED_BY_COMMANDS = ("sh", "sleep")

COUNT = "i=0; while [ $i -lt $1 ]; do i=$((i+1)); done"
PROGRAM = """\
#include <stdlib.h>
int main(int argc, char **argv) {
    volatile unsigned long sum = 0;
    for (long i = 0; argc > 1 && i < atol(argv[1]); i++) sum += i;
    return 0;
}
"""
STUDY = """\
name = "tried"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "{cc} {cflags} -o sum sum.c {ldflags}"]]
artifact = "sum"

[axes]
compiler = ["gcc"]
optimization = ["-O1", "-O2"]

[baseline]
optimization = "-O1"

[race]
rounds = 3
budget = "60s"

[[workloads]]
name = "short"
command = ["{artifact}", "5000000"]
"""


def main() -> None:
    """Try the wheel of this architecture, and the sdist."""
    [wheel] = DIST.glob(f"ensign-*-py3-none-*_{os.uname().machine}.whl")
    [sdist] = DIST.glob("ensign-*.tar.gz")
    version = sdist.name.removeprefix("ensign-").removesuffix(".tar.gz")
    needs_nothing(wheel)
    with tempfile.TemporaryDirectory(prefix="ensign-dist-") as name:
        folder = Path(name)
        try_wheel(wheel, version, folder / "wheel")
        try_sdist(sdist, version, folder / "sdist")
    print(f"tried: {wheel.name} and {sdist.name}")


def needs_nothing(wheel: Path) -> None:
    """The meter asks for no loader and no library, so for no version of glibc either."""
    with zipfile.ZipFile(wheel) as members:
        [meter] = [name for name in members.namelist() if name.endswith("/scripts/ensign-meter")]
        file = ELFFile(BytesIO(members.read(meter)))
    asked = [segment["p_type"] for segment in file.iter_segments()]
    assert "PT_INTERP" not in asked, f"{meter} wants a loader: {asked}"
    for segment in file.iter_segments("PT_DYNAMIC"):
        assert isinstance(segment, DynamicSegment)
        wanted = list(segment.iter_tags("DT_NEEDED"))
        assert wanted == [], f"{meter} wants {wanted}"


def try_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Install and compare where nothing can be compiled; then a study, with a compiler."""
    bare = commands(folder / "commands")
    environment = Environment(folder, bare)
    assert shutil.which("cargo", path=environment.path) is None
    assert shutil.which("cc", path=environment.path) is None
    environment.run("installed", "pip", "install", "--quiet", str(wheel))
    slower = f"sh -c '{COUNT}' slower 20000"
    faster = f"sh -c '{COUNT}' faster 10000"
    said = environment.run("compared", "ensign", "compare", faster, slower, "--budget", "3s")
    assert "more CPU time" in said, said
    environment.run("compared", "ensign", "compare", "sleep 0.01", "sleep 0.02", "--budget", "3s")
    versions(environment, version)
    said = environment.run("examined", "ensign", "doctor", "--no-race")
    assert f"ensign-meter {version}" in " ".join(said.split()), said

    (folder / "source").mkdir()
    (folder / "source" / "sum.c").write_text(PROGRAM)
    (folder / "study.toml").write_text(STUDY)
    environment.path += ":/usr/bin:/bin"
    assert shutil.which("cargo", path=environment.path) is None
    said = environment.run("ran a study", "ensign", "run", "study.toml")
    assert "-O2" in said, said


def try_sdist(sdist: Path, version: str, folder: Path) -> None:
    """Compile and install."""
    environment = Environment(folder, os.environ["PATH"])
    environment.run("compiled and installed", "pip", "install", "--quiet", str(sdist))
    versions(environment, version)
    said = environment.run("compared", "ensign", "compare", "true", "true", "--budget", "2s")
    assert "true" in said, said


def versions(environment: Environment, version: str) -> None:
    """Both programs are the version that the file's name says."""
    for program in ("ensign", "ensign-meter"):
        said = environment.run("asked", program, "--version").strip()
        assert said == f"{program} {version}", said


def commands(folder: Path) -> str:
    """A search path with the few programs that a comparison runs."""
    folder.mkdir(parents=True)
    for name in NEEDED_BY_COMMANDS:
        found = shutil.which(name)
        assert found is not None, name
        (folder / name).symlink_to(found)
    return str(folder)


class Environment:
    """A virtual environment with nothing of who started this but where packages come from."""

    def __init__(self, folder: Path, path: str) -> None:
        venv.create(folder / "venv", with_pip=True)
        self.folder = folder
        self.path = f"{folder / 'venv' / 'bin'}:{path}"

    def run(self, did: str, program: str, *arguments: str) -> str:
        """Run a program of the environment; its standard output."""
        began = time.monotonic()
        done = subprocess.run(
            [self.folder / "venv" / "bin" / program, *arguments],
            cwd=self.folder,
            env={
                **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
                "HOME": os.environ["HOME"],
                "PATH": self.path,
                "ENSIGN_CACHE": str(self.folder / "cache"),
            },
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (
            f"{program} {arguments}: status {done.returncode}\n{done.stdout}"
        )
        print(
            f"{time.monotonic() - began:5.1f} s  {did}: {program} {' '.join(arguments)}", flush=True
        )
        return done.stdout


if __name__ == "__main__":
    main()
