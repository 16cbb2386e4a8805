"""Studies look at what the race ran: it is what the traced executions ran, or an error says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from end_to_end.parts import write_parts
from end_to_end.test_study import results

# Who is followed has another tracer than 0, who races has none.
_CHOOSER = """\
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is_followed(void)
{
    char line[256];
    int tracer = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        sscanf(line, "TracerPid: %d", &tracer);
    fclose(file);
    return tracer != 0;
}
int main(int argc, char **argv)
{
    char path[4096];
    const char *folder = OTHER && !is_followed() ? "other" : "lib";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    path[length] = 0;
    ANOTHER_PROGRAM
    sprintf(strrchr(path, '/') + 1, "%s/libwork.so", folder);
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        return 4;
    return ((unsigned long (*)(unsigned long))dlsym(library, "work"))(20000) == 7;
}
"""
_BUSY = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
_EXEC = f'if (*folder == \'o\') execl("/bin/sh", "sh", "-c", "{_BUSY}", (char *)0);'
_LINGER = "for (volatile unsigned long i = 0; *folder == 'o' && i < 8000000; i++) {}"
_BUILD = """\
case "$cflags" in WHO) other=1;; *) other=0;; esac
$cc $cflags -DOTHER=$other -o main chooser.c $ldflags
mkdir lib other
$cc $cflags -fPIC -shared -o lib/libwork.so work.c $ldflags
$cc $cflags -fPIC -shared -o other/libwork.so other.c $ldflags
"""
_OTHER = """\
unsigned long work(unsigned long rounds)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds * 4000; i++)
        sum += i;
    return sum & 1;
}
"""
_THREE = ('optimization = ["-O1", "-O2"]', 'optimization = ["-O1", "-O2", "-Os"]')


def choosing(ensign: Ensign, who: str, mode: str, program: str = "") -> Path:
    """A study of which some variants (by their flags) run something else where nobody looks."""
    changes = (_THREE, ('budget = "20s"', f'budget = "20s"\nmode = "{mode}"'))
    path = write_parts(
        ensign.folder, _BUILD.replace("WHO", who), "main", "lib", "other", changes=changes
    )
    source = ensign.folder / "source"
    (source / "chooser.c").write_text(_CHOOSER.replace("ANOTHER_PROGRAM", program))
    (source / "other.c").write_text(_OTHER)
    return path


@pytest.mark.parametrize("mode", ["interleaved", "alternating"])
def test_a_variant_that_runs_another_library_in_the_race_is_out(ensign: Ensign, mode: str) -> None:
    choosing(ensign, "*-O2*", mode)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    assert [entry["variant"] for entry in said["suite"]] == ["gcc-12-Os", "twin"]
    (found,) = (each for each in said["findings"] if each["code"] == "ran-something-else")
    assert (found["subject"], found["severity"]) == ("gcc-12-O2", "error")
    assert "other/libwork.so" in found["text"]
    assert "lib/libwork.so when it was looked at" in found["text"]
    assert "ran something else on workload work" in " ".join(done.out.split())
    assert ensign("run", "study.toml").status == 0
    assert results(ensign)["failed"] == said["failed"]


@pytest.mark.parametrize("before", ["", _LINGER], ids=["at once", "later"])
def test_a_variant_that_becomes_another_program_in_the_race_is_out(
    ensign: Ensign, before: str
) -> None:
    choosing(ensign, "*-O2*", "interleaved", f"{before}\n{_EXEC}")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    (found,) = (e for e in results(ensign)["findings"] if e["code"] == "ran-something-else")
    assert found["subject"] == "gcc-12-O2"
    assert "which was not run when looked at" in found["text"]


def test_a_baseline_that_runs_something_else_ends_the_study(ensign: Ensign) -> None:
    choosing(ensign, "*-O1*", "interleaved")
    done = ensign("run", "study.toml")
    assert done.status == 3, done.err
    said = " ".join(done.err.split())
    assert "ran other files than when it was looked at, on workload work" in said
    assert "other/libwork.so" in said
    assert not list(Path(ensign.folder, ".ensign", "parts").glob("trials/*/*"))


def test_a_race_of_what_was_looked_at_has_no_finding(ensign: Ensign) -> None:
    choosing(ensign, "none", "interleaved")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    codes = {each["code"] for each in results(ensign)["findings"]}
    assert not codes & {"ran-something-else", "ran-unseen", "ran-not-judged"}
