"""A Debian package's own tests as a check."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ensign.experiment.study_file import parse_study
from ensign.model.errors import StudyError

_STUDY = """\
name = "any"
layouts = "natural"
source = {{ kind = "path", path = "." }}

[build]
system = "{system}"
artifact = "x"

[check]
package = true

[axes]
compiler = ["gcc-12"]
optimization = ["-O2", "-O3"]

[baseline]
optimization = "-O2"

[[workloads]]
name = "run"
command = ["{{artifact}}"]
"""
# What debhelper prints where it does nothing, and its steps.
_DH = """\
#!/bin/sh
[ -e debian/debhelper-build-stamp ] && exit
printf 'dh build-arch\\n   dh_auto_build -a\\n{steps}   create-stamp debian/x\\n'
"""


def command() -> list[str]:
    check = parse_study(_STUDY.format(system="debian"), Path("s.toml")).study.check
    assert check is not None
    assert check.in_build_tree
    (argv,) = check.commands
    return argv


def test_tests_are_not_left_out_and_see_the_flags() -> None:
    argv = command()
    assert not any("nocheck" in word for word in argv)
    assert "DEB_CFLAGS_APPEND={cflags}" in argv
    with pytest.raises(StudyError, match="package"):
        parse_study(_STUDY.format(system="make"), Path("s.toml"))


@pytest.mark.parametrize(
    ("rules", "steps", "status", "said"),
    [
        ("%:\n\tdh $@\n", "   debian/rules override_dh_auto_test\\n", 7, ""),
        ("%:\n\tdh $@\n", "   dh_auto_test -a\\n", 5, ""),
        ("%:\n\tdh $@\n", "", 1, "runs no tests"),
    ],
)
def test_what_debhelper_would_run_is_run(
    tmp_path: Path, rules: str, steps: str, status: int, said: str
) -> None:
    (tmp_path / "debian").mkdir()
    (tmp_path / "debian/debhelper-build-stamp").touch()
    text = f"#!/usr/bin/make -f\n{rules}override_dh_auto_test:\n\texit 7\n"
    (tmp_path / "debian/rules").write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {
        "dh": _DH.format(steps=steps),
        "dh_auto_test": "#!/bin/sh\nexit 5\n",
    }.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    words = command()[command().index("-c") + 1 :]
    done = subprocess.run(
        ["sh", "-c", *words],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode in (status, 2)) if status == 7 else done.returncode == status, done
    assert said in done.stderr
