"""`ensign doctor PATH` on folders in which somebody built, each wrong in one way."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from unwrapped import unwrapped

MAIN = "int hot(int);\nint main(int count, char **words) { (void)words; return hot(count); }\n"
HOT = "int hot(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; return s == 1; }\n"
COMPILE = "gcc-12 -g -O2 -c main.c && gcc-12 -g -O2 -c hot.c"
LINK = "gcc-12 -g -O2 -o program main.o hot.o"
PROFILED = (
    "gcc-12 -g -O2 -fprofile-generate -o program main.c hot.c && ./program; rm program; "
    "touch -d 2020-01-01 *.gcda; for i in main hot; do "
    "gcc-12 -g -O2 -w -fprofile-use=program-$i.gcda -c $i.c; done; " + LINK
)
FAULTS = {
    "LTO when compiling alone": (
        "gcc-12 -g -O2 -flto -c main.c hot.c && gcc-12 -g -o program main.o hot.o",
        "optimization-missing-at-link",
    ),
    "two levels on one line": (f"{COMPILE.replace('-O2', '-O2 -O0')} && {LINK}", "flag-overridden"),
    "a processor for some units": (
        f"{COMPILE.replace('-O2', '-O2 -march=x86-64-v2', 1)} && {LINK}",
        "flags-differ",
    ),
    "an old profile": (PROFILED, "profile-stale"),
}


def build(folder: Path, line: str) -> None:
    (folder / "main.c").write_text(MAIN)
    (folder / "hot.c").write_text(HOT)
    subprocess.run(["sh", "-c", line], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize(("line", "code"), FAULTS.values(), ids=FAULTS)
def test_each_fault_is_found_and_fails_a_check(line: str, code: str, ensign: Ensign) -> None:
    folder = ensign.folder / "built"
    folder.mkdir()
    build(folder, line)
    done = ensign("doctor", "built", "--fail-on", "warning")
    assert done.status == 1
    assert f"! {code}: " in done.out
    assert "Nothing is wrong" not in done.out
    said = json.loads(ensign("doctor", "built", "--json", "-").out)
    assert code in {each["code"] for each in said["findings"] if each["severity"] == "warning"}
    for each in said["findings"]:
        assert each["text"] in unwrapped(done.out)


def test_a_right_folder_has_open_questions_alone(ensign: Ensign) -> None:
    folder = ensign.folder / "built"
    folder.mkdir()
    build(folder, f"{COMPILE} && {LINK}")
    done = ensign("doctor", "built", "--fail-on", "warning")
    assert done.status == 0, done.out
    assert "Nothing is wrong" not in done.out
    assert "not judged: the order of the link" in unwrapped(done.out)
    assert ensign("doctor", "built", "--fail-on", "note").status == 1
