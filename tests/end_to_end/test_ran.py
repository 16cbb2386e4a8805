"""A library of the machine in place of the built one is an error, whatever led to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from end_to_end.parts import write_parts

# The C library's own one is on every machine; the built one has its name.
_MATHS = """\
cat > cosine.c <<'END'
double cos(double x) { volatile double y = x; for (int i = 0; i < 1000; i++) y += i; return y; }
END
cat > caller.c <<'END'
double cos(double x);
int main(int argc, char **argv) { return cos(argc * 0.0) == 7; }
END
mkdir -p lib
$cc $cflags -fPIC -fno-builtin -shared -o lib/libm.so.6 cosine.c $ldflags -Wl,-soname,libm.so.6
"""
_LINK = "$cc $cflags -fno-builtin -o main caller.c lib/libm.so.6 $ldflags"
_OPENER = """\
cat > opener.c <<'END'
#include <dlfcn.h>
int main(void) { return !dlopen("libm.so.6", RTLD_NOW); }
END
$cc $cflags -o main opener.c $ldflags"""
_SYSTEM = "-Wl,--disable-new-dtags,-rpath,/lib/$(uname -m)-linux-gnu"
_FORMS = {
    "not kept": (f"{_MATHS}{_LINK}", ["build.sh"], 'runtime_files = ["lib/libm.so.6"]'),
    "kept behind an RPATH": (f"{_MATHS}{_LINK} {_SYSTEM}", ["lib"], "RPATH"),
    "opened by name": (f"{_MATHS}{_OPENER}", ["build.sh"], 'runtime_files = ["lib/libm.so.6"]'),
}


@pytest.mark.parametrize("form", _FORMS)
def test_a_library_of_the_machine_in_place_of_the_built_one(ensign: Ensign, form: str) -> None:
    build, keep, way_out = _FORMS[form]
    write_parts(ensign.folder, build, "main", *keep)
    done = ensign("run", "study.toml")
    said = " ".join(done.err.split())
    assert done.status == 3, done.err
    assert "lib/libm.so.6" in said
    assert "ran /" in said
    assert way_out in said
    assert not list(Path(ensign.folder, ".ensign", "parts").glob("trials/*/*"))


def test_what_ran_is_listed_once_and_an_unused_library_makes_no_difference(
    ensign: Ensign,
) -> None:
    build = (
        "$cc -g -O1 -o main main.c work.c\nmkdir lib\n"
        "$cc $cflags -fPIC -shared -o lib/libunused.so work.c $ldflags"
    )
    own = (("runtime_files =", 'own_flags = ["main.c", "work.c"]\nruntime_files ='),)
    write_parts(ensign.folder, build, "main", "lib", changes=own)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    result = json.loads(ensign("report", "study.toml", "--json", "-").out)
    assert result["builds"][1]["same_as"] == "gcc-12-O1"
    (built,) = [each for each in result["ran"] if each["built"]]
    assert (built["path"], built["same"]) == ("main", True)
    assert built["variants"] == ["gcc-12-O1", "gcc-12-O2"]
    assert "What ran: main; and" in " ".join(ensign("report", "study.toml").out.split())
    assert ensign("report", "study.toml", "--html", "page.html").status == 0
    assert "What ran" in (ensign.folder / "page.html").read_text()
    machine = [each["path"] for each in result["ran"] if not each["built"]]
    assert len(machine) == len(set(machine)) > 0


def test_a_workload_that_does_not_run_the_program_is_an_error(ensign: Ensign) -> None:
    command = ('command = ["{artifact}", "300"]', 'command = ["cat", "{artifact}"]')
    path = write_parts(
        ensign.folder,
        "$cc $cflags -o main main.c work.c $ldflags",
        "main",
        "build.sh",
        changes=(command,),
    )
    path.write_text("check.same_output = []\n" + path.read_text())  # the programs differ
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "did not run main" in " ".join(done.err.split())


def test_a_workload_that_runs_another_program_of_the_build_is_raced(ensign: Ensign) -> None:
    command = ('command = ["{artifact}", "300"]', 'command = ["{files}/other", "300"]')
    build = (
        "$cc $cflags -o main main.c work.c $ldflags; $cc $cflags -o other main.c work.c $ldflags"
    )
    write_parts(ensign.folder, build, "main", "other", changes=(command,))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    result = json.loads(ensign("report", "study.toml", "--json", "-").out)
    assert {each["path"] for each in result["ran"] if each["built"]} == {"other"}
