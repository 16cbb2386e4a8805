"""What visibly differs between the files that two commands ran."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

from ensign.experiment.compare.workloads import visible_findings
from ensign.model.finding_kinds.proof import FAST_MATH_START
from ensign.model.finding_kinds.ran import VISIBLE_DIFFERENCES
from ensign.model.findings import Finding
from ensign.model.traced_execution import MappedFile, TracedExecution, nothing_seen
from ensign.proof.loaded_bytes import read_artifact

SOURCE = """
#include <stdio.h>
#include <string.h>
static int of(const char *text, int c) { return (int)strlen(text) * c + 1; }
int a(char **v, int c) { int n = 0; for (int i = 0; i < c; i++) n += of(v[i], i); return n; }
int b(char **v, int c) { int n = 1; for (int i = 0; i < c; i++) n *= of(v[i], c); return n; }
int d(char **v, int c) { int n = a(v, c); if (n > 3) n -= b(v, c); return n; }
int e(char **v, int c) { char x[40]; strcpy(x, v[0]); return d(v, c) + (int)strlen(x); }
int f(char **v, int c) { int n = e(v, c), m = d(v, c); return n > m ? n - m : m - n; }
int main(int c, char **v) { printf("%d\\n", f(v, c)); return 0; }
"""


def built(folder: Path, name: str, *flags: str) -> Path:
    (folder / "m.c").write_text(SOURCE)
    argv = ["gcc-12", "-fno-inline", "m.c", "-o", name, *flags]
    subprocess.run(argv, cwd=folder, check=True)
    return folder / name


def ran(*paths: Path) -> TracedExecution:
    mapped = []
    for path in paths:
        artifact = read_artifact(path)
        assert artifact is not None
        mapped.append(MappedFile(str(path), artifact.loadable_sha256))
    return replace(nothing_seen(""), mapped=tuple(mapped), programs=(str(paths[0]),), followed=True)


def found(old: TracedExecution, new: TracedExecution) -> list[Finding]:
    return list(visible_findings({"a": old, "b": new}, {"a": "old", "b": "new"}, "a"))


def test_optimized_or_not_and_protections(tmp_path: Path) -> None:
    old = built(tmp_path, "old", "-O0", "-s", "-pie", "-fPIE", "-Wl,-z,lazy")
    new = built(tmp_path, "new", "-O2", "-s", "-no-pie", "-Wl,-z,now")
    (finding,) = found(ran(old), ran(new))
    assert finding.is_a(VISIBLE_DIFFERENCES)
    assert finding.subject == "new"
    assert finding.text.startswith("what visibly differs from old: new (")
    assert "code optimized against unoptimized (-O0)" in finding.text
    assert "protections with BIND_NOW, without PIE" in finding.text


def test_what_looks_the_same_is_not_told(tmp_path: Path) -> None:
    old, new = built(tmp_path, "old", "-O2"), built(tmp_path, "new", "-O2", "-fno-ipa-cp")
    assert found(ran(old), ran(old)) == []
    assert found(ran(old), ran(new)) == []


def test_flags_and_compilers_by_debug_information(tmp_path: Path) -> None:
    old, new = built(tmp_path, "old", "-O2", "-g"), built(tmp_path, "new", "-O3", "-g")
    (finding,) = found(ran(old), ran(new))
    assert "m.c compiled with -O3, without -O2" in finding.text
    (tmp_path / "k.c").write_text(SOURCE)
    renamed = tmp_path / "renamed"
    argv = ["gcc-12", "-fno-inline", "-g", "-O3", "k.c", "-o", "renamed"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    (finding,) = found(ran(old), ran(renamed))
    assert "all sources compiled with -O3, without -O2" in finding.text
    (tmp_path / "n.c").write_text("int n(void) { return 1; }")
    names = []
    for name, compiler in (("one", "gcc-12"), ("two", "gcc-11")):
        folder = tmp_path / name
        argv = [compiler, "-g", "-O1", "../m.c", "../n.c", "-o", "tool"]
        folder.mkdir()
        subprocess.run(argv, cwd=folder, check=True)
        names.append(folder / "tool")
    finding = found(*(ran(each) for each in names))[0]
    assert re.search(r"all sources compiled by GCC 11[.\d]+, not GCC 12", finding.text)


def test_fast_math_start_up_of_one_alone(tmp_path: Path) -> None:
    old, new = built(tmp_path, "old", "-O2"), built(tmp_path, "new", "-O2", "-ffast-math")
    _, finding = found(ran(old), ran(new))
    assert finding.is_a(FAST_MATH_START)
    assert finding.subject == "new"
    assert "old does not" in finding.text
    _, turned = found(ran(new), ran(old))
    assert turned.subject == "old"
    other = built(tmp_path, "other", "-O1", "-ffast-math")
    assert not [each for each in found(ran(new), ran(other)) if each.is_a(FAST_MATH_START)]


def test_libraries_and_allocator(tmp_path: Path) -> None:
    program = built(tmp_path, "old")
    allocator = built(tmp_path, "libjemalloc.so.2", "-shared", "-fPIC")
    (finding,) = found(ran(program), ran(program, allocator))
    assert "libraries with libjemalloc.so.2" in finding.text
    assert "allocator jemalloc against the C library's" in finding.text


def test_files_that_are_gone_say_nothing(tmp_path: Path) -> None:
    old, new = built(tmp_path, "old", "-O0"), built(tmp_path, "new", "-O2")
    before, after = ran(old), ran(new)
    new.unlink()
    assert found(before, after) == []
    assert found(before, nothing_seen("not traced")) == []
