"""A program whose work is done in a shared library of its own, as projects lay it out."""

from __future__ import annotations

from pathlib import Path

from end_to_end.small_study import MARK

_WORK = """\
unsigned long work(unsigned long rounds)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds * ROUNDS; i++)
        sum += (i ^ (sum << 1)) * 2654435761u;
    return sum;
}
"""

_MAIN = """\
#include <stdio.h>
#include <stdlib.h>
unsigned long work(unsigned long rounds);
int main(int argc, char **argv)
{
    printf("%lu\\n", work(argc > 1 ? strtoul(argv[1], 0, 10) : 1) & 1);
    return 0;
}
"""

_OPENING = """\
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    void *library = dlopen(PLUGIN, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\\n", dlerror());
        return 4;
    }
    unsigned long (*work)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(library, "work");
    printf("%lu\\n", work(argc > 1 ? strtoul(argv[1], 0, 10) : 1) & 1);
    return 0;
}
"""

_STUDY = """\
name = "parts"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "build.sh", "{cc}", "{cflags}", "{ldflags}"]]
artifact = "ARTIFACT"
runtime_files = [KEEP]
env.MARK = "FOLDER"
deadline = "20s"

[axes]
compiler = ["gcc-12"]
optimization = ["-O1", "-O2"]

[baseline]
optimization = "-O1"

[race]
budget = "20s"
rounds = 3

[[workloads]]
name = "work"
command = ["{artifact}", "300"]
"""


def write_parts(
    folder: Path,
    build: str,
    artifact: str,
    *keep: str,
    plugin: str = "",
    rounds: int = 1000,
    changes: tuple[tuple[str, str], ...] = (),
) -> Path:
    """The study of `main.c` and `work.c`, built by the shell script `build` in a fresh tree.

    The script has `$cc`, `$cflags` and `$ldflags`. With a `plugin` the program opens that itself.
    """
    source = folder / "source"
    source.mkdir()
    (source / "work.c").write_text(_WORK.replace("ROUNDS", f"{rounds}ul"))
    (source / "main.c").write_text(_OPENING.replace("PLUGIN", f'"{plugin}"') if plugin else _MAIN)
    (source / "build.sh").write_text(f"set -e\ncc=$1 cflags=$2 ldflags=$3\n{build}\n")
    text = _STUDY.replace("ARTIFACT", artifact).replace("env.MARK", f"env.{MARK}")
    text = text.replace("FOLDER", str(folder))
    text = text.replace("KEEP", ", ".join(f'"{each}"' for each in keep))
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    path = folder / "study.toml"
    path.write_text(text)
    return path
