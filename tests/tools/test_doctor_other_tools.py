"""What doctor states of programs of the system, held against other tools that state the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ensign.meter.client import find_meter
from ensign.meter.questions import compile_units
from ensign.proof.elf import read_binary
from ensign.proof.evidence import BuildEvidence
from ensign.proof.facts import Proof
from ensign.tools.doctor.inspect_program import look_at
from ensign.tools.doctor.program_facts import ProgramLook
from ensign.tools.doctor.protections import hardening_of

_PROGRAMS = ("/bin/ls", "/usr/bin/make", "/usr/bin/perl")
_DUMPS = ("llvm-dwarfdump-19", "/usr/lib/llvm-19/bin/llvm-dwarfdump", "llvm-dwarfdump-14")
_NAMES = {
    "Position Independent Executable": "PIE",
    "Stack protected": "canaries",
    "Fortify Source functions": "FORTIFY",
    "Read-only relocations": "RELRO",
    "Immediate binding": "BIND_NOW",
    "Control flow integrity": "CET",
}
_SOURCE = (
    "#include <stdio.h>\n#include <string.h>\n"
    'int main(int c, char **v) { char b[64]; strcpy(b, v[0]); return printf("%s%d", b, c); }\n'
)


def looked(path: Path) -> ProgramLook:
    binary = read_binary(path)
    assert binary is not None
    look = look_at(path, BuildEvidence(path.name, Proof(binary)))
    assert look is not None
    return look


def built(folder: Path, *words: str, compiler: str = "gcc-12") -> Path:
    (folder / "a.c").write_text(_SOURCE)
    (folder / "b.c").write_text("int two(int a) { return 2 * a; }\n")
    argv = [compiler, "a.c", "b.c", "-o", "app", *words]
    subprocess.run(argv, cwd=folder, check=True)
    return folder / "app"


def agrees_with_hardening_check(path: Path) -> None:
    argv = ["hardening-check", str(path)]
    shown = subprocess.run(argv, check=False, capture_output=True, text=True).stdout
    theirs = dict(re.findall(r"^ ([^:\n]+): (yes|no|unknown)", shown, re.MULTILINE))
    assert set(_NAMES) <= set(theirs), shown
    said = hardening_of(looked(path))
    there, _, rest = said.partition("; not seen: ")
    for name, ours in _NAMES.items():
        if theirs[name] == "yes":
            assert ours in there, (name, said)
        if ours in there:
            assert theirs[name] == "yes", (name, said)
        if ours in rest.partition(";")[0]:
            assert theirs[name] == "no", (name, said)


@pytest.mark.parametrize("path", _PROGRAMS)
def test_hardening_is_what_hardening_check_says_of_programs_of_the_system(path: str) -> None:
    agrees_with_hardening_check(Path(path))


@pytest.mark.parametrize(
    "words",
    [
        ("-O2", "-D_FORTIFY_SOURCE=2", "-fstack-protector-all", "-pie", "-fPIE", "-Wl,-z,now"),
        ("-no-pie", "-Wl,-z,norelro", "-fno-stack-protector"),
        ("-fcf-protection=full",),
    ],
)
def test_hardening_is_what_hardening_check_says_of_builds(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    agrees_with_hardening_check(built(tmp_path, *words))


@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        ("gcc-12", ("-g", "-gdwarf-2")),
        ("gcc-12", ("-g", "-gdwarf-5", "-gdwarf64")),
        ("gcc-12", ("-g", "-gdwarf-4", "-gz", "-fdebug-types-section")),
        ("gcc-12", ("-g", "-flto", "-O2")),
        ("clang-19", ("-g", "-gdwarf-5", "-gz", "-grecord-command-line")),
        ("clang-19", ("-g", "-gsplit-dwarf")),
    ],
)
def test_units_are_those_of_llvm_dwarfdump(
    compiler: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = built(tmp_path, *words, compiler=compiler)
    dump = next(filter(None, map(shutil.which, _DUMPS)))
    argv = [dump, "--debug-info", "--recurse-depth=0", str(path)]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    theirs = []
    for entry in re.split(r"\n(?=0x\S+: DW_TAG_)", shown)[1:]:
        if re.match(r"0x\S+: DW_TAG_(compile|skeleton)_unit", entry):
            found = {key: re.search(rf"{key}\s+\(\"(.*)\"\)", entry) for key in _KEYS}
            said = {key: match[1] if match else "" for key, match in found.items()}
            name = said["DW_AT_name"] or said["dwo_name"]
            theirs.append((said["DW_AT_producer"], name, said["DW_AT_comp_dir"]))
    units = compile_units(find_meter(), path)
    assert not isinstance(units, str)
    ours = [(each.producer, each.name, each.folder) for each in units]
    assert ours == theirs
    assert len(ours) >= 2


_KEYS = ("DW_AT_producer", "DW_AT_name", "dwo_name", "DW_AT_comp_dir")
