"""Unoptimized code is told by its bytes, and no other is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ensign.model.finding_kinds.proof import LOOKS_UNOPTIMIZED
from ensign.model.findings import Finding
from ensign.proof.unoptimized import read_unoptimized
from ensign.tools.doctor.inspect_program import examine_program
from real_processes import PlainProcesses

# Of each function there is one with another name in the second source.
FUNCTIONS = """
#include <stdio.h>
#include <string.h>
struct point { int x, y; };
int P(sum)(const int *of, int count) {
  int all = 0;
  for (int i = 0; i < count; i++) all += of[i];
  return all;
}
int P(longest)(char **words, int count) {
  int found = 0;
  for (int i = 0; i < count; i++) {
    int size = (int)strlen(words[i]);
    if (size > found) found = size;
  }
  return found;
}
struct point P(moved)(struct point from, int by) { from.x += by; from.y -= by; return from; }
double P(mean)(const double *of, int count) {
  double all = 0;
  for (int i = 0; i < count; i++) all += of[i];
  return all / count;
}
unsigned P(hash)(const char *text) {
  unsigned h = 5381;
  while (*text) h = h * 33 ^ (unsigned char)*text++;
  return h;
}
void P(show)(struct point *at, const char *name) {
  printf("%s %d %d\\n", name, at->x, at->y);
  if (at->x > 3) P(show)(at, name + 1);
}
int P(all)(int c, char **v) {
  int n[3] = {c, 2, 3};
  double d[2] = {c, 2};
  struct point p = P(moved)((struct point){c, 1}, 2);
  P(show)(&p, v[0]);
  return P(sum)(n, 3) + P(longest)(v, c) + (int)P(mean)(d, 2) + (int)P(hash)(v[0]);
}
"""
MAIN = """
int one_all(int, char **), two_all(int, char **);
int main(int c, char **v) { return one_all(c, v) + two_all(c, v); }
"""
COMPILERS = [each for each in ("gcc-11", "gcc-12", "clang-14", "clang-19") if shutil.which(each)]


def built(folder: Path, *flags: str, compiler: str = "gcc-12", second: str = "") -> Path:
    """A program of two objects, the second one at a level of its own."""
    for name, each in (("one", ""), ("two", second)):
        (folder / f"{name}.c").write_text(f"#define P(x) {name}_##x\n{FUNCTIONS}")
        argv = [compiler, *flags, *([each] if each else []), "-c", f"{name}.c"]
        subprocess.run(argv, cwd=folder, check=True)
    (folder / "main.c").write_text(MAIN)
    argv = [compiler, *flags, "main.c", "one.o", "two.o", "-o", "app"]
    subprocess.run(argv, cwd=folder, check=True)
    return folder / "app"


def found(path: Path) -> list[Finding]:
    checkup = examine_program(path, PlainProcesses())
    return [each for each in checkup.findings if each.is_a(LOOKS_UNOPTIMIZED)]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("way", ["-s", "-fomit-frame-pointer", "-fPIC", "-fstack-protector-all"])
def test_all_is_unoptimized(tmp_path: Path, compiler: str, way: str) -> None:
    path = built(tmp_path, "-O0", way, compiler=compiler)
    look = read_unoptimized(path)
    assert look is not None
    assert look.whole
    assert look.unoptimized >= 6
    assert (look.framed == 0) == (way == "-fomit-frame-pointer")
    assert found(path)[0].text.startswith("looks unoptimized (-O0): ")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("level", ["-Og", "-O1", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("way", ["-s", "-fno-omit-frame-pointer"])
def test_what_is_optimized_is_not_called(
    tmp_path: Path, compiler: str, level: str, way: str
) -> None:
    path = built(tmp_path, level, way, compiler=compiler)
    look = read_unoptimized(path)
    assert look is not None
    assert not look
    assert look.functions > 5
    assert not found(path)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_one_object_is_found_and_its_functions_are_named(tmp_path: Path, compiler: str) -> None:
    path = built(tmp_path, "-O2", compiler=compiler, second="-O0")
    look = read_unoptimized(path)
    assert look is not None
    assert not look.whole
    assert "two_longest" in look.names
    assert not [name for name in look.names if name.startswith("one_")]
    assert "parts look unoptimized" in found(path)[0].text
    subprocess.run(["strip", path], check=True)
    stripped = read_unoptimized(path)
    assert stripped is not None
    assert (stripped.unoptimized, stripped.names) == (look.unoptimized, ())


def test_objects_and_archives(tmp_path: Path) -> None:
    built(tmp_path, "-O2", second="-O0")
    subprocess.run(["ar", "rcs", "libx.a", "one.o", "two.o"], cwd=tmp_path, check=True)
    assert "looks unoptimized" in found(tmp_path / "two.o")[0].text
    assert not found(tmp_path / "one.o")
    assert "parts look unoptimized" in found(tmp_path / "libx.a")[0].text


def test_known_flags_speak_for_themselves(tmp_path: Path) -> None:
    path = built(tmp_path, "-O0", "-g")
    assert read_unoptimized(path)
    checkup = examine_program(path, PlainProcesses())
    assert "unoptimized" in {each.code for each in checkup.findings}
    assert not found(path)


def test_advice_follows(tmp_path: Path) -> None:
    path = built(tmp_path, "-O0", "-s")
    checkup = examine_program(path, PlainProcesses())
    assert "optimize" in {each.practice for each in checkup.advice}


def test_variables_that_are_volatile_are_no_sign(tmp_path: Path) -> None:
    lines = "".join(
        f"int f{n}(int a, int b) {{ volatile int x = a, y = b; x += y; y -= x; return x * y; }}\n"
        for n in range(3)
    )
    (tmp_path / "v.c").write_text(lines + "#define P(x) one_##x\n" + FUNCTIONS)
    subprocess.run(["gcc-12", "-O2", "-c", "v.c"], cwd=tmp_path, check=True)
    assert not read_unoptimized(tmp_path / "v.o")


def test_damaged_files_are_not_judged(tmp_path: Path) -> None:
    data = built(tmp_path, "-O0").read_bytes()
    assert read_unoptimized(data)
    for size in range(0, len(data), 997):
        read_unoptimized(data[:size])  # raises nothing
    assert read_unoptimized(b"\x7fELF" + bytes(100)) is None
    assert read_unoptimized(b"") is None
