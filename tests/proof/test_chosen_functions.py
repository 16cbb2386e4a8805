"""Which function a library chooses, against what its symbols and the processor say."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from ensign.proof.chosen_functions import ChosenFunction, chosen_functions
from ensign.proof.identity import read_identity

LIBRARY = """
static int plain(int x) { return x + 1; }
__attribute__((target("avx"), optimize("O3"), noinline))
static int wide(float *x) { for (int i = 0; i < 4096; i++) x[i] *= 3; return 2; }
static void *of_work(void) { return (void *)CHOICE; }
int work(float *) __attribute__((ifunc("of_work")));
int other(int x) { return plain(x) * (wide != 0); }
"""


def made(folder: Path, choice: str) -> Path:
    source, library = folder / "work.c", folder / f"lib{choice}.so"
    source.write_text(LIBRARY)
    flags = ("-shared", "-fPIC", "-O1", "-w", f"-DCHOICE={choice}")
    subprocess.run(("gcc", *flags, "-o", library, source), check=True)
    return library


def symbols(library: Path) -> dict[str, int]:
    said = subprocess.run(("nm", library), check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in said.splitlines()]
    return {words[2]: int(words[0], 16) for words in lines if len(words) == 3}


@pytest.mark.parametrize(("choice", "registers"), [("wide", "ymm"), ("plain", "general")])
def test_the_choice_is_the_function_that_the_loader_took(
    tmp_path: Path, choice: str, registers: str
) -> None:
    library = made(tmp_path, choice)
    loaded = ctypes.CDLL(str(library))
    assert loaded.other(1) == 2
    (found,) = chosen_functions(library, ["work", "not_there"])
    assert found == ChosenFunction("work", library.name, symbols(library)[choice], registers)


def test_a_function_that_runs_on_into_the_next_is_that_too(tmp_path: Path) -> None:
    library = tmp_path / "libon.so"
    source = tmp_path / "on.s"
    parts = {"first": "cmp %rdi, %rsi\njb gone", "second": "vpxor %ymm1, %ymm1, %ymm1\nrep stosb"}
    lines = [f"{name}:\n.cfi_startproc\n{code}" for name, code in parts.items()]
    source.write_text(
        ".globl work\n.type work, @gnu_indirect_function\nwork: lea first(%rip), %rax\nret\n"
        f"{lines[0]}\n.cfi_endproc\n{lines[1]}\nret\n.cfi_endproc\n"
        "gone:\n.cfi_startproc\nud2\n.cfi_endproc\n"
        '.section .note.GNU-stack,"",@progbits\n'
    )
    subprocess.run(("gcc", "-shared", "-o", library, source), check=True)
    ctypes.CDLL(str(library))
    (found,) = chosen_functions(library, ["work"])
    assert (found.registers, found.repeats, found.fuses) == ("ymm", True, False)


def test_what_this_process_has_not_loaded_is_not_asked(tmp_path: Path) -> None:
    library = made(tmp_path, "wide")
    assert chosen_functions(library, ["work"]) == ()
    ctypes.CDLL(str(library))
    copy = tmp_path / "copy.so"
    copy.write_bytes(library.read_bytes())
    assert chosen_functions(copy, ["work"]) == ()
    assert chosen_functions(tmp_path / "none.so", ["work"]) == ()


def test_the_c_library_chooses_what_the_processor_can_do() -> None:
    maps = Path("/proc/self/maps").read_text().split()
    library = Path(next(each for each in maps if "/libc.so.6" in each or "/libc-2." in each))
    identity = read_identity(library)
    assert identity is not None
    assert identity.ifuncs
    found = chosen_functions(library, identity.ifuncs)
    assert len(found) >= len(identity.ifuncs) // 2
    kinds = {each.name: each.registers for each in found}
    assert kinds["memcpy"] == kinds["__memcpy_chk"]
    assert kinds["time"] == "vdso"
    needs = {"zmm": "avx512f", "evex": "avx512vl", "ymm": "avx"}
    flags = Path("/proc/cpuinfo").read_text().split()
    for each in found:
        assert needs.get(each.registers, "fpu") in flags
