"""Functions and loops at places in a program's file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.proof.sampled_code import Loop, loops_of, read_code_map

SOURCE = r"""
    .intel_syntax noprefix
    .text
    .p2align 6
    .globl first
    .type first, @function
first:
    .cfi_startproc
    .rept 60
    nop
    .endr
1:  dec rdi
    .rept 10
    nop
    .endr
    jne 1b
    ret
    .cfi_endproc
    .size first, .-first
    .globl second
    .type second, @function
second:
    .cfi_startproc
    mov rcx, 9
2:  mov rdx, 9
3:  dec rdx
    jne 3b
    dec rcx
    jne 2b
    ret
    .cfi_endproc
    .size second, .-second
    .globl _start
    .type _start, @function
_start:
    ret
    .section .note.GNU-stack,"",@progbits
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loops")
    (folder / "loops.s").write_text(SOURCE)
    command = ("gcc", "-nostdlib", "-static-pie", "-o", folder / "loops", folder / "loops.s")
    subprocess.run(command, check=True)
    return folder / "loops"


def test_a_place_in_the_file_has_a_function(program: Path) -> None:
    code = read_code_map(program)
    assert code is not None
    at, size, address = code.segments[0]
    first = next(start for start, name in zip(code.starts, code.names, strict=True) if name)
    assert code.address_of(at + first - address) == first
    assert code.address_of(at + size) is None
    found = code.function_at(first + 3)
    assert found is not None
    assert (found.name, found.start) == ("first", first)
    after = code.function_at(found.end)
    assert after is not None
    assert after.name == "second"
    assert code.function_at(min(code.starts) - 1) is None


def test_loops_are_found_the_inner_one_first(program: Path) -> None:
    code = read_code_map(program)
    assert code is not None
    first, second = (
        code.function_at(code.starts[code.names.index(name)]) for name in ("first", "second")
    )
    assert first is not None
    assert second is not None
    (loop,) = loops_of(program, first)
    assert (loop.start, loop.size) == (60, 15)
    inner, outer = loops_of(program, second)
    assert outer.start < inner.start
    assert inner.end < outer.end


def test_a_loop_crosses_a_line_where_it_touches_more_than_it_must() -> None:
    crossing = ((Loop(60, 75), 0), (Loop(0, 64), 129))
    inside = ((Loop(60, 75), 4), (Loop(0, 64), 128), (Loop(0, 65), 128))
    assert all(loop.crosses(function, 64) for loop, function in crossing)
    assert not any(loop.crosses(function, 64) for loop, function in inside)


def test_what_is_no_program_has_no_functions(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    assert read_code_map(tmp_path / "text") is None
    assert read_code_map(tmp_path / "none") is None
