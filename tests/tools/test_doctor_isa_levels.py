"""What the advice of a target level says that the level does not have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.tools.doctor.advice import Offers, advice_for
from ensign.tools.doctor.artifact import examine_evidence
from ensign.tools.doctor.inspect_program import look_at
from real_processes import PlainProcesses

AES = """
#if defined(__x86_64__) && \\
    defined(__AES__)
int way(void) { return 1; }
#elif defined(__AVX2__)
int way(void) { return 2; }
#else
int way(void) { return 0; }
#endif
/* __SHA__ is not asked for here */
int main(void) { return way(); }
"""


def takes(folder: Path, source: str, *flags: str, level: str = "x86-64-v3") -> str:
    (folder / "m.c").write_text(source)
    argv = ["gcc-12", "-g", "-O2", *flags, "m.c", "-o", "app"]
    subprocess.run(argv, cwd=folder, check=True)
    _, (seen,) = examine_evidence(folder / "app", PlainProcesses())
    look = look_at(folder / "app", seen)
    assert look is not None
    advice = advice_for(look, Offers(levels=(level,)))
    return next(each.takes for each in advice if each.practice == "target level")


def test_what_sources_ask_for_and_the_level_lacks(tmp_path: Path) -> None:
    said = takes(tmp_path, AES)
    assert "aes (__AES__ in m.c)" in said
    assert "-maes" in said
    assert "avx2" not in said
    assert "sha" not in said


def test_what_the_level_has_is_not_told(tmp_path: Path) -> None:
    assert "asks" not in takes(tmp_path, AES.replace("__AES__", "__FMA__"))
    assert "avx2" in takes(tmp_path, AES, level="x86-64-v2")


@pytest.mark.parametrize("flag", ["-mpclmul", "-msha"])
def test_what_flags_of_a_unit_ask_for(tmp_path: Path, flag: str) -> None:
    said = takes(tmp_path, "int main(void) { return 0; }\n", flag)
    assert f"m.c is compiled with {flag}" in said


def test_sources_that_are_gone_ask_for_nothing(tmp_path: Path) -> None:
    takes(tmp_path, AES)
    (tmp_path / "m.c").unlink()
    _, (seen,) = examine_evidence(tmp_path / "app", PlainProcesses())
    look = look_at(tmp_path / "app", seen)
    assert look is not None
    assert look.asked == ()
