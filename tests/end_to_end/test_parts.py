"""What ran is what was built: programs whose hot code lies in files beside them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from end_to_end.conftest import Ensign
from end_to_end.parts import write_parts

_MAIN = "$cc $cflags -O1 -c main.c -o main.o"
_LIBRARY = """\
mkdir -p lib bin
$cc $cflags -fPIC -shared -o lib/libwork.so work.c $ldflags -Wl,-soname,libwork.so"""
_LINK = "$cc -O1 -g -o bin/main main.c -Llib -lwork"
_VERSIONED = f"""\
mkdir -p lib bin
$cc $cflags -fPIC -shared -o lib/libwork.so.1.2.3 work.c $ldflags -Wl,-soname,libwork.so.1
ln -s libwork.so.1.2.3 lib/libwork.so.1
ln -s libwork.so.1 lib/libwork.so
{_LINK}"""
_LAYOUTS = {
    "absolute RPATH": (
        f'{_LIBRARY}\n{_LINK} -Wl,--disable-new-dtags,-rpath,"$PWD/lib"',
        ["lib/libwork.so"],
        "",
    ),
    "$ORIGIN in RUNPATH": (
        f"{_LIBRARY}\n{_LINK} '-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib'",
        ["lib"],
        "",
    ),
    "no path": (
        f"{_LIBRARY}\n{_LINK}",
        ["lib/*.so*"],
        "",
    ),
    "versioned links": (_VERSIONED, ["lib/libwork.so.1"], ""),
    "plugin by name": (
        f"{_LIBRARY}\n$cc -O1 -g -o bin/main main.c -ldl",
        ["lib/libwork.so"],
        "libwork.so",
    ),
}


def result_of(ensign: Ensign) -> dict[str, Any]:
    done = ensign("report", "study.toml", "--json", "-")
    assert done.status == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_a_library_that_differs_alone_is_raced(ensign: Ensign, layout: str) -> None:
    build, keep, plugin = _LAYOUTS[layout]
    own = (("runtime_files =", 'own_flags = ["main.c"]\nruntime_files ='),)
    write_parts(ensign.folder, build, "bin/main", *keep, plugin=plugin, changes=own)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    baseline, other = result_of(ensign)["builds"]
    assert (baseline["status"], other["status"]) == ("built", "built")
    hashes = [
        {each["path"]: each["sha256"] for each in build["files"]} for build in (baseline, other)
    ]
    assert hashes[0].keys() == hashes[1].keys()
    differing = {path for path in hashes[0] if hashes[0][path] != hashes[1][path]}
    assert {path.partition(".so")[0] for path in differing} == {"lib/libwork"}


_PLANTED = {
    "overridden": ("$cflags -O0", "work.o"),
    "one unit of two": ("$cflags", "work.o more.o"),
}
_LACKED_BY_ALL = "no compile unit (1) of lib/libwork.so has -O2 (there is -O0), which main has"


@pytest.mark.parametrize("plant", _PLANTED)
def test_what_is_planted_in_the_rule_of_a_kept_library_is_found(ensign: Ensign, plant: str) -> None:
    flags, units = _PLANTED[plant]
    build = (
        "mkdir lib\necho 'int more(void) { return 1; }' > more.c\n"
        f"$cc $cflags -O0 -fPIC -c more.c\n$cc {flags} -fPIC -c work.c\n"
        f"$cc -fPIC -shared -o lib/libwork.so {units} $ldflags\n"
        "$cc $cflags -o main main.c -Llib -lwork $ldflags"
    )
    write_parts(ensign.folder, build, "main", "lib")
    done = ensign("run", "study.toml")
    if plant == "overridden":  # the program has what was asked for
        assert done.status == 0, done.err
        said = {each["text"] for each in result_of(ensign)["findings"] if "-O2" in each["text"]}
        assert [each.partition(", as was")[0] for each in said] == [_LACKED_BY_ALL]
    else:
        assert done.status == 3
        said_of_it = " ".join(done.err.split())
        assert "lib/libwork.so: -O1 is overridden later on the command line by -O0" in said_of_it
    declared = (("runtime_files =", 'own_flags = ["*work.c", "more.c"]\nruntime_files ='),)
    shutil.rmtree(ensign.folder / "source")
    write_parts(ensign.folder, build, "main", "lib", changes=declared)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert not [each for each in result_of(ensign)["findings"] if "-O0" in each["text"]]


def test_libraries_without_any_difference_make_equal_variants(ensign: Ensign) -> None:
    flags = ('optimization = ["-O1", "-O2"]', 'optimization = ["-O1"]\nflags = ["", "-DNOTHING"]')
    baseline = ('[baseline]\noptimization = "-O1"', '[baseline]\nflags = ""')
    own = ("runtime_files =", 'own_flags = ["main.c"]\nruntime_files =')
    write_parts(ensign.folder, _VERSIONED, "bin/main", "lib", changes=(flags, baseline, own))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert result_of(ensign)["builds"][1]["status"] == "same"


_WRAPPER = "echo '#! /bin/sh\n# temporary wrapper script for .libs/main, by libtool' > main"


@pytest.mark.parametrize("wrapper", [_WRAPPER, "echo '#!/bin/sh' > main"])
def test_a_wrapper_script_names_the_program_behind_it(ensign: Ensign, wrapper: str) -> None:
    build = (
        "mkdir -p .libs lib/.libs\n"
        "$cc $cflags -fPIC -shared -o lib/.libs/libwork.so.0 work.c $ldflags\n"
        f"$cc $cflags -o .libs/main main.c lib/.libs/libwork.so.0 $ldflags\n{wrapper}"
    )
    write_parts(ensign.folder, build, "main", "lib/.libs/libwork.so.0")
    done = ensign("run", "study.toml")
    assert done.status == 3
    said = " ".join(done.err.split())
    assert "wrapper script" in said or "is a script" in said
    assert 'artifact = ".libs/main"' in said
    assert 'runtime_files = ["lib/.libs/*.so*"]' in said
