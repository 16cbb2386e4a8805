"""A study whose builds take milliseconds and whose racing takes a second."""

from __future__ import annotations

import shutil
from pathlib import Path

MARK = "ENSIGN_TEST_MARK"
_SOURCES = Path(__file__).parent / "programs"

BATCH = """\
name = "small"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "{cc} {cflags} -DWORK=1 -o spin spin.c {ldflags}"]]
artifact = "spin"
deadline = "20s"

[axes]
compiler = ["gcc-12"]
optimization = ["-O1", "-O2"]

[baseline]
optimization = "-O1"

[race]
budget = "60s"
rounds = 3

[[workloads]]
name = "short"
command = ["{artifact}", "1000000"]

[[workloads]]
name = "long"
command = ["{artifact}", "3000000"]
"""

SERVER = """\
name = "served"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "{cc} {cflags} -DWORK=200 -o server server.c {ldflags}"]]
tool_commands = [["sh", "-c", "{cc} {cflags} -o load load.c"]]
artifact = "server"
tools = { load = "load" }

[axes]
compiler = ["gcc-12"]
optimization = ["-O1", "-O2"]

[baseline]
optimization = "-O1"

[server]
command = ["{artifact}", "{port}"]
ready.deadline = "6s"

[race]
budget = "15s"
rounds = 3

[[workloads]]
name = "bytes"
load = ["{load}", "{port}", "{requests}"]
deadline = "6s"
"""

# What chance says of two builds that do the same is not what a test of shipping is about.
ANYWAY = ("--despite", "regressions")


def with_shared_folder(text: str) -> str:
    """The study with programs that may write to its folder, as what is to be noticed there does."""
    return f"{text}\n[sandbox]\nconfined = false\n"


def write_study(folder: Path, text: str = BATCH, *changes: tuple[str, str]) -> Path:
    """The study in `folder/study.toml` with its source beside it, each change made once."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    path = folder / "study.toml"
    # Builds inherit nothing; the mark makes their processes known to the tests.
    path.write_text(text.replace("artifact =", f'env.{MARK} = "{folder}"\nartifact =', 1))
    if not (folder / "source").exists():
        shutil.copytree(_SOURCES, folder / "source")
    return path
