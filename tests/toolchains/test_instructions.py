"""Which instructions flags allow, as compilers say it, beside what the psABI's levels have."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.model.instructions import LEVELS, InstructionSets
from ensign.toolchains.find import ToolchainFinder
from ensign.toolchains.instructions import deciding_flags, instructions_of, instructions_of_rust
from real_processes import PlainProcesses

BASE = "#define __x86_64__ 1\n#define __SSE2__ 1\n"


def allowed(tmp_path: Path, compiler: str, *flags: str) -> InstructionSets:
    finder = ToolchainFinder(PlainProcesses(), tmp_path)
    found = finder.instructions(finder.find(compiler), flags)
    assert found is not None
    return found


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
def test_a_level_is_what_the_compiler_makes_of_it(tmp_path: Path, compiler: str) -> None:
    for level, sets in LEVELS.items():
        found = allowed(tmp_path, compiler, "-O3", f"-march={level}", "-mtune=znver3", "-flto")
        assert found.unknown == ()
        assert found.sets <= sets
        assert found.level == level
    assert allowed(tmp_path, compiler, "-O3", "-DX=1", "-mtune=haswell").level == "x86-64"
    assert allowed(tmp_path, compiler, "-mavx2").level == "x86-64-v3"
    assert allowed(tmp_path, compiler, "-march=x86-64-v4", "-march=x86-64-v2").level == "x86-64-v2"
    beyond = allowed(tmp_path, compiler, "-march=znver3")
    assert beyond.level == ""
    assert {"avx2", "sha_ni", "vaes", "sse4a", "clzero"} <= beyond.sets


@pytest.mark.parametrize(
    "processor", ["skylake", "icelake-server", "tigerlake", "sapphirerapids", "knm"]
)
def test_every_set_of_a_processor_has_a_name(tmp_path: Path, processor: str) -> None:
    assert allowed(tmp_path, "gcc-12", f"-march={processor}").unknown == ()


def test_what_no_compiler_makes_of_ordinary_code_does_not_count(tmp_path: Path) -> None:
    assert allowed(tmp_path, "gcc-12", "-msgx", "-mshstk", "-mptwrite").level == "x86-64"
    assert allowed(tmp_path, "gcc-12", "-mlong-double-64").level == "x86-64"
    cfg = 'target_arch="x86_64"\ntarget_feature="sse2"\ntarget_feature="kl"\n'
    assert instructions_of_rust(cfg) == InstructionSets(frozenset())


def test_what_has_no_name_here_is_said() -> None:
    found = instructions_of(f"{BASE}#define __AVX99__ 1\n#define __FP_FAST_FMA 1\n", BASE)
    assert found == InstructionSets(frozenset(), ("AVX99",))
    assert found.level == ""
    assert instructions_of("#define __aarch64__ 1\n", BASE) is None


@pytest.mark.parametrize(
    ("macro", "names"),
    [
        ("AVX10_1_512", {"avx512f", "avx512_fp16", "avx512_bf16", "vaes"}),
        ("AVX10_2", {"avx512f", "avx512_fp16", "avx10_2"}),
        ("AMX_TF32", {"amx_tf32"}),
        ("AMXFP8", {"amx_fp8"}),
        ("AVXVNNIINT16", {"avx_vnni_int16"}),
        ("EGPR", {"apx_f"}),
        ("MOVRS", {"movrs"}),
        ("3dNOW_A", {"3dnowext"}),
        ("EVEX512", set()),
        ("USERMSR", set()),
        ("APX_INLINE_ASM_USE_GPR32", set()),
    ],
)
def test_names_of_newer_and_older_compilers(macro: str, names: set[str]) -> None:
    found = instructions_of(f"{BASE}#define __{macro}__ 1\n", BASE)
    assert found is not None
    assert found.unknown == ()
    assert found.sets >= names
    assert bool(found.sets) == bool(names)


@pytest.mark.parametrize(
    "said", ["avx10.1", "apxf", "amx-tile", "avx512vp2intersect", "crt-static"]
)
def test_names_of_rust_are_known_too(said: str) -> None:
    found = instructions_of_rust(f'target_arch="x86_64"\ntarget_feature="{said}"\n')
    assert found is not None
    assert found.unknown == ()
    assert bool(found.sets) == (said != "crt-static")


def test_rust_names_them_otherwise() -> None:
    cfg = 'target_arch="x86_64"\ntarget_feature="sse2"\ntarget_feature="sse4.1"\n'
    assert instructions_of_rust(cfg) == InstructionSets(frozenset({"sse4_1"}))
    found = instructions_of_rust(f'{cfg}target_feature="avx99"\n')
    assert found == InstructionSets(frozenset({"sse4_1"}), ("avx99",))
    assert instructions_of_rust('target_arch="aarch64"\n') is None


def test_only_some_flags_decide() -> None:
    flags = ("-O3", "-march=haswell", "-mtune=native", "-Ctarget-cpu=x", "-Copt-level=3", "-mavx")
    assert deciding_flags(flags) == ("-march=haswell", "-Ctarget-cpu=x", "-mavx")
