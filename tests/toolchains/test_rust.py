"""What rustc and Cargo are told for a variant, and what they have not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ensign.model.variants import Variant
from ensign.toolchains.profiling import instrumented_environment, instrumenting, using
from ensign.toolchains.rust import (
    cargo_settings,
    host_of_rustc,
    is_rustc,
    kind_of_rustc,
    rustup_toolchain,
)
from ensign.toolchains.spelling import flags_for, refusal, without_evidence
from ensign.toolchains.table import Family, Flags, Kind

RUST = Kind(Family.RUST, (1, 95, 0), 22)
GCC = Kind(Family.GCC, (12, 2, 0))
PLAIN = Variant("", "rustc", "-O3")
SAID = """\
rustc 1.95.0 (59807616e 2026-04-14)
binary: rustc
commit-hash: 59807616e1fa2540724bfbac14d7976d7e4a3860
commit-date: 2026-04-14
host: x86_64-unknown-linux-gnu
release: 1.95.0
LLVM version: 22.1.2
"""


def flags_of(**choices: Any) -> Flags:
    return flags_for(RUST, replace(PLAIN, **choices), "")


def choice(axis: str, value: str) -> dict[str, Any]:
    return {axis: value}


def test_rustc_is_told_by_its_name_and_by_what_it_says() -> None:
    assert kind_of_rustc(SAID) == RUST
    assert kind_of_rustc("gcc (Debian 12.2.0) 12.2.0") is None
    assert kind_of_rustc(SAID.replace("-", "-nightly", 0)) == RUST
    assert host_of_rustc(SAID) == "x86_64-unknown-linux-gnu"
    names = ("rustc", "rustc-1.76", "/usr/bin/rustc", "rustc+nightly", "rustc+1.95.0")
    assert all(map(is_rustc, names))
    assert not any(map(is_rustc, ("gcc-12", "rustcc", "my-rustc", "/rustc/gcc")))
    assert rustup_toolchain("rustc+nightly-2026-01-01") == "nightly-2026-01-01"
    assert rustup_toolchain("rustc") == rustup_toolchain("g+nightly") == ""
    assert (RUST.title, RUST.llvm_major, GCC.llvm_major) == ("rustc 1.95.0", 22, 0)


@pytest.mark.parametrize(
    ("choices", "flag"),
    [
        ({"optimization": "-Os"}, "-Copt-level=s"),
        ({"lto": "full"}, "-Clto=fat"),
        ({"lto": "thin"}, "-Clto=thin"),
        ({"codegen_units": "1"}, "-Ccodegen-units=1"),
        ({"panic": "abort"}, "-Cpanic=abort"),
        ({"target": "native"}, "-Ctarget-cpu=native"),
        ({"target": "generic"}, "-Ctarget-cpu=x86-64"),
        ({"flags": "-C target-feature=+avx2 --cfg fast"}, "-Ctarget-feature=+avx2"),
    ],
)
def test_choices_of_the_compiler(choices: dict[str, str], flag: str) -> None:
    assert flag in flags_of(**choices).compile
    assert flag not in flags_of().compile
    assert flags_of(**choices).link == ()


def test_what_goes_to_the_linker() -> None:
    assert flags_of(linker="mold").link == ("-Clink-arg=-fuse-ld=mold",)
    assert flags_of(bolt="on").link == ("-Clink-arg=-Wl,--emit-relocs",)
    elsewhere = flags_for(RUST, replace(PLAIN, linker="lld"), "", "/usr/lib/llvm-19/bin")
    assert elsewhere.link == ("-Clink-arg=-B/usr/lib/llvm-19/bin", "-Clink-arg=-fuse-ld=lld")


def test_cargo_gets_what_its_profile_has_a_word_for_as_that() -> None:
    flags = flags_of(lto="full", codegen_units="1", panic="abort", target="x86-64-v3", bolt="on")
    own = ("-Ctarget-cpu=x86-64-v3", "-Clink-arg=-Wl,--emit-relocs")
    words = "\x1f".join((*own, "--force-warn=unused-crate-dependencies"))
    assert cargo_settings(flags) == (
        "CARGO_PROFILE_RELEASE_OPT_LEVEL=3",
        "CARGO_PROFILE_RELEASE_DEBUG=1",
        "CARGO_PROFILE_RELEASE_LTO=fat",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1",
        "CARGO_PROFILE_RELEASE_PANIC=abort",
        "CARGO_PROFILE_RELEASE_STRIP=none",
        f"CARGO_ENCODED_RUSTFLAGS={words}",
    )


def test_what_nobody_asked_for_is_left_to_the_project_but_lto_is_off() -> None:
    settings = cargo_settings(flags_of())
    assert "CARGO_PROFILE_RELEASE_LTO=false" in settings
    assert not any("CODEGEN" in each or "PANIC" in each for each in settings)
    assert settings[-1] == "CARGO_ENCODED_RUSTFLAGS=--force-warn=unused-crate-dependencies"


@pytest.mark.parametrize(
    ("axis", "value"),
    [
        ("interposition", "off"),
        ("plt", "off"),
        ("floating_point", "fast"),
        ("aliasing", "relaxed"),
        ("hardening", "debian"),
        ("allocator", "jemalloc"),
        ("dependencies", "flags"),
        ("optimization", "-Og"),
        ("optimization", "-Ofast"),
        ("optimization", "-O"),
    ],
)
def test_what_rust_has_not_is_refused_with_the_reason(axis: str, value: str) -> None:
    said = refusal(RUST, replace(PLAIN, **choice(axis, value)))
    assert value in said
    assert said.startswith("rustc has no")
    assert not refusal(RUST, PLAIN)


def test_compilers_of_c_have_neither_codegen_units_nor_panics() -> None:
    for axis, value in (("codegen_units", "1"), ("panic", "abort")):
        said = refusal(GCC, replace(PLAIN, compiler="gcc-12", **choice(axis, value)))
        assert said == f"'{axis}' is an axis of rustc; gcc-12 compiles C"


def test_profiles_are_those_of_llvm() -> None:
    assert "-Cprofile-generate" in instrumenting(RUST)
    assert using(RUST, "/build") == ("-Cprofile-use=/build/ensign.profdata",)
    assert instrumented_environment(RUST, "/c") == (("LLVM_PROFILE_FILE", "/c/%p-%m.profraw"),)
    assert without_evidence(flags_of()).compile == ("-Copt-level=3",)
