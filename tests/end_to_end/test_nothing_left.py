"""A study of which only the baseline is left is not raced: the reason and the way out are said."""

from __future__ import annotations

import subprocess
from pathlib import Path

from end_to_end.conftest import Ensign
from end_to_end.parts import write_parts
from end_to_end.small_study import BATCH, write_study
from end_to_end.test_study import results
from end_to_end.test_study_failures import PLANTED, UNCHECKED

_COMPILE = "{cc} {cflags} -DWORK=1 -o spin spin.c"
_FAILS = "case '{cflags}' in *-O2*) false;; esac &&"
_LIBRARY = """\
case "$cflags" in
*-O2*) cp stale.so libwork.so;;
*) $cc $cflags -fPIC -shared -o libwork.so work.c $ldflags;;
esac
$cc $cflags -o main main.c libwork.so $ldflags -Wl,-rpath,'$ORIGIN'
"""


def assert_not_raced(ensign: Ensign, *words: str) -> None:
    done = ensign("run", "study.toml")
    assert done.status == 3, done.err
    said = " ".join(done.err.split())
    for word in ("nothing is left to compare with gcc-12-O1", *words, "run it again"):
        assert word in said, said


def trials(ensign: Ensign) -> list[Path]:
    return sorted(Path(ensign.folder, ".ensign").glob("*/trials/*/*"))


def test_a_study_whose_variants_cannot_be_built_is_not_raced(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, (_COMPILE, f"{_FAILS} {_COMPILE}"))
    assert_not_raced(ensign, "gcc-12-O2: failed: 'sh' ended with status 1; log: ")
    assert not trials(ensign)
    done = ensign("report", "study.toml")
    assert done.status == 2
    assert "nothing of study.toml has been measured yet" in " ".join(done.err.split())


def test_a_library_study_whose_variants_are_withdrawn_is_not_raced(ensign: Ensign) -> None:
    write_parts(ensign.folder, _LIBRARY, "main", "libwork.so")
    stale = ["gcc-12", "-O0", "-fPIC", "-shared", "-o", "stale.so", "work.c"]
    subprocess.run(stale, cwd=ensign.folder / "source", check=True)
    assert_not_raced(ensign, "gcc-12-O2")
    assert not trials(ensign)


def test_what_was_measured_before_is_reported_with_what_checks_say_now(ensign: Ensign) -> None:
    study = write_study(
        ensign.folder,
        UNCHECKED,
        (_COMPILE, f"{PLANTED} -o spin fault.c"),
        ("FLAGS", '-DFAULT=\\"wrong\\" -DALWAYS'),
    )
    assert ensign("run", "study.toml").status == 0
    raced = trials(ensign)
    study.write_text(study.read_text().replace("check.same_output = []\n", "", 1))
    assert_not_raced(ensign, "gcc-12-O2", "sum 1.5")
    assert trials(ensign) == raced
    assert ensign("report", "study.toml").status == 0
    (finding,) = (each for each in results(ensign)["findings"] if each["code"] == "check-failed")
    assert finding["subject"] == "gcc-12-O2"
