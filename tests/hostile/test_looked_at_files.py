"""Files that are no programs, damaged ones, and those of other machines: told as what they are."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from ensign.model.checkup import ArtifactCheckup
from ensign.model.errors import InputError
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.elf import find_debug_file, read_binary, units_of
from ensign.proof.identity import read_identity
from ensign.tools.doctor.inspect_program import examine_program
from real_processes import PlainProcesses

_GO = (
    "path\texample.com/x\nmod\texample.com/x\t(devel)\t\ndep\tgolang.org/y\tv1.2.3\th1:abc=\n"
    "build\t-pgo=/home/me/default.pgo\nbuild\tCGO_ENABLED=0\nbuild\tGOAMD64=v2\n"
)


def examine(path: Path) -> ArtifactCheckup:
    return examine_program(path, PlainProcesses())


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        examine(path)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def fact(found: ArtifactCheckup, name: str) -> str:
    return next(each.value for each in found.facts if each.name == name)


def compiled(folder: Path, source: str, *words: str, compiler: str = "gcc-12") -> Path:
    (folder / "a.c").write_text(source)
    argv = [compiler, "a.c", "-o", "made", *words]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    return folder / "made"


def place_of(path: Path, name: str) -> tuple[int, int]:
    with elf_of(path) as elf:
        section = elf.get_section_by_name(name)
        assert section is not None
        return int(section["sh_offset"]), int(section["sh_size"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello\n", "is a text"),
        (b"\0\1\2\3" * 9, "is no ELF file"),
        (b"#!/bin/sh\necho\n", "is a script, which '/bin/sh' runs: ensign doctor /bin/sh"),
        (b"#!/usr/bin/env -S LC_ALL=C sh\n", "is a script, which "),
        (b"#!/nowhere/x\n", "is a script, which '/nowhere/x' runs"),
        (b"#!\n", "names no program that runs it"),
        (b"MZ" + bytes(100), "a program of Windows"),
        (b"\x7fELF", "is an ELF file that is cut off or damaged"),
        (b"\x7fELF\2\1\1" + b"\xff" * 200, "is an ELF file of another kind"),
        (b"", "is empty"),
    ],
)
def test_what_is_no_program_is_told_in_a_line(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert said in refused(path)


def test_a_core_dump_names_who_dumped_it(tmp_path: Path) -> None:
    name = b"sleepy\0".ljust(16, b"\0")
    info = struct.pack("<4bxxxxQIIiiii", 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1) + name + bytes(80)
    note = struct.pack("<III", 5, len(info), 3) + b"CORE\0\0\0\0" + info
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(note), 0, 4)
    (tmp_path / "core").write_bytes(head + note)
    assert "is a core dump of 'sleepy'" in refused(tmp_path / "core")


def test_a_module_of_the_kernel_is_an_object_of_one_version(tmp_path: Path) -> None:
    source = (
        '__attribute__((section(".modinfo"))) char info[] = "license=GPL\\0vermagic=6.1.0-x SMP";\n'
        '__attribute__((section(".gnu.linkonce.this_module"))) char module[64];\n'
    )
    path = compiled(tmp_path, source, "-c").rename(tmp_path / "a.ko")
    [examined] = examine(path).examined
    assert examined.evidence[0] == "a kernel module of Linux 6.1.0-x"
    [examined] = examine(compiled(tmp_path, "int x;\n", "-c")).examined
    assert examined.evidence[0] == "an object"


def test_damaged_debug_information_leaves_the_rest_of_a_program(tmp_path: Path) -> None:
    path = compiled(tmp_path, "int main(void) { return 0; }\n", "-g")
    at, _ = place_of(path, ".debug_info")
    data = bytearray(path.read_bytes())
    data[at + 4] = 77
    path.write_bytes(data)
    found = examine(path)
    assert "version 77" in fact(found, "debug info")
    assert "program" in fact(found, "program")
    assert fact(found, "flags").startswith("unknown")


def test_units_that_never_end_are_refused(tmp_path: Path) -> None:
    path = compiled(tmp_path, "int main(void) { return 0; }\n", "-g")
    at, size = place_of(path, ".debug_abbrev")
    data = bytearray(path.read_bytes())
    data[at : at + size] = b"\x81" * size
    path.write_bytes(data)
    with pytest.raises(DamagedFile):
        list(units_of(path))


@pytest.mark.parametrize(
    ("target", "machine"), [("s390x", "s390"), ("aarch64", "AArch64"), ("i686", "x86 (32 bits)")]
)
def test_programs_of_other_processors_get_no_advice_that_fails_here(
    target: str, machine: str, tmp_path: Path
) -> None:
    words = (f"--target={target}-linux-gnu", "-fuse-ld=lld", "-nostdlib", "-static", "-g", "-O1")
    source = "void _start(void) { for (;;); }\n"
    found = examine(compiled(tmp_path, source, *words, compiler="clang-19"))
    assert fact(found, "program").startswith(f"{machine} program")
    assert "statically linked" in fact(found, "program")
    assert fact(found, "compiler").startswith("Clang 19")
    foreign = os.uname().machine == "x86_64" and target != "i686"
    assert (not found.advice) == foreign
    assert "another allocator" not in [each.practice for each in found.advice]


def test_what_go_writes_down_is_told(tmp_path: Path) -> None:
    module = "\\x30" * 16 + _GO.replace("\n", "\\n").replace("\t", "\\t") + "\\x30" * 16
    size = 32 + len(_GO)
    length = f'\\x{size % 128 + 128:02x}" "\\x{size // 128:02x}'
    head = '\\xff" " Go buildinf:\\10\\2' + "\\0" * 16
    source = (
        f'__attribute__((section(".go.buildinfo"))) char info[] = "{head}" "\\10" "go1.26.8" '
        f'"{length}" "{module}";\nint main(void) {{ return 0; }}\n'
    )
    found = examine(compiled(tmp_path, source))
    assert fact(found, "compiler") == "Go 1.26.8 made example.com/x, of 1 other modules"
    assert fact(found, "profile") == "used: default.pgo"
    assert fact(found, "target") == "GOAMD64=v2"
    assert "FORTIFY" not in fact(found, "hardening")
    assert [each.practice for each in found.advice] == ["profile first"]


def test_debug_information_of_another_build_is_none(tmp_path: Path) -> None:
    source = "int main(void) { return 0; }\n"
    path = compiled(tmp_path, source, "-g", "-O1")
    debug = tmp_path / "made.debug"
    for argv in (
        ["objcopy", "--only-keep-debug", path, debug],
        ["strip", path],
        ["objcopy", f"--add-gnu-debuglink={debug}", path],
    ):
        subprocess.run(list(map(str, argv)), check=True, cwd=tmp_path)
    found = examine(path)
    assert fact(found, "flags") == "-O1 (1 unit)"
    assert str(debug) in fact(found, "debug info")
    assert "holds the debug information of another file" in refused(debug)
    debug.write_bytes(debug.read_bytes() + b"\0")
    identity = read_identity(path)
    assert identity is not None
    assert find_debug_file(path, identity, tmp_path / "none") is None
    assert fact(examine(path), "debug info") == "in another file, which is not here"


def test_a_static_program_is_not_denied_what_cannot_be_told(tmp_path: Path) -> None:
    path = compiled(tmp_path, "int main(void) { return 0; }\n", "-static-pie")
    said = fact(examine(path), "hardening")
    assert "cannot be told: canaries, FORTIFY" in said
    assert "BIND_NOW" not in said
    assert "statically linked" in fact(examine(path), "program")
    libc = read_binary(Path("/lib/x86_64-linux-gnu/libc.so.6"))
    assert libc is None or libc.shared_library
