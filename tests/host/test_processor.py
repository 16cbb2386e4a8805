from __future__ import annotations

from pathlib import Path

from ensign.host.machine import processor_of, read_cpuinfo

_V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
_V3 = f"{_V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"


def cpuinfo(flags: str, model: str = "1") -> str:
    one = f"processor\t: 0\nmodel\t\t: {model}\nflags\t\t: {flags}\nbugs\t\t:\n"
    return f"{one}\n{one.replace('avx2', '')}"


def test_a_target_lacks_what_the_first_processor_has_not() -> None:
    processor = processor_of(cpuinfo(_V3.replace("fma ", "")))
    assert processor.lacks("x86-64-v2") == ()
    assert processor.lacks("x86-64-v3") == ("fma",)
    assert "avx512f" in processor.lacks("x86-64-v4")
    assert processor.lacks("native") == processor.lacks("default") == ()


def test_code_for_this_processor_is_another_on_another_processor() -> None:
    one = processor_of(cpuinfo(_V3)).identity
    assert one == processor_of(cpuinfo(" ".join(reversed(_V3.split())))).identity
    assert one != processor_of(cpuinfo(_V2)).identity
    assert one != processor_of(cpuinfo(_V3, model="2")).identity


def test_bits_that_linux_does_not_show_make_another_processor_too() -> None:
    assert processor_of(cpuinfo(_V3)).identity != processor_of(cpuinfo(_V3), {"x": 1}).identity


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert processor_of(read_cpuinfo(tmp_path)).flags == frozenset()
