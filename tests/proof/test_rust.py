"""Recorded calls of rustc against what was asked for: right ones, and four that are wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ensign.model.calls import Call, CommandLine, Output
from ensign.model.variants import Variant
from ensign.proof.evidence import BuildEvidence, Request
from ensign.proof.facts import Binary, LinkFacts, Proof
from ensign.proof.read import own_rustflags
from ensign.proof.rules.description import describe
from ensign.proof.rules.judge import judge
from ensign.toolchains.profiling import using
from ensign.toolchains.spelling import flags_for
from ensign.toolchains.table import Family, Flags, Kind

RUST = Kind(Family.RUST, (1, 95, 0), 22)
ASKED = Variant("v", "rustc", "-O3", "full", codegen_units="1", panic="abort", pgo="on")
# As Cargo calls rustc, its own words first and RUSTFLAGS last.
GOOD = "-C opt-level=3 -C panic=abort -C codegen-units=1 -C debuginfo=1"
USING = "-Cprofile-use=/b/ensign.profdata"


def call(name: str, words: str, *, links: bool = False, host: bool = False) -> Call:
    target = () if host else ("--target", "x86_64-unknown-linux-gnu")
    argv = ("rustc", "--crate-name", name, f"src/{name}.rs", *words.split(), *target)
    made = f"/b/deps/{name}"
    line = CommandLine(compiles=True, links=links, output=made, sources=(f"src/{name}.rs",))
    output = (Output(made, f"hash of {name}", 1),)
    return Call("rustc", "/bin/rustc", argv, argv, "/b", 0, 1, 0, output, line=line)


def seen_of(*calls: Call, variant: Variant = ASKED, flags: str = "") -> BuildEvidence:
    flags_asked = flags_for(RUST, replace(variant, flags=flags), "")
    more = using(RUST, "/b") if variant.pgo == "on" else ()
    request = Request(
        variant,
        Flags((*flags_asked.compile, *more), flags_asked.link),
        programs=frozenset({"/bin/rustc"}),
        compiler=RUST.title,
    )
    proof = Proof(Binary("/b/x", read=True), link=LinkFacts(unknown="rustc"), build_path="/b")
    return BuildEvidence("v", proof, request, calls)


def codes(seen: BuildEvidence) -> dict[str, str]:
    return {finding.code: finding.text for finding in judge(seen)}


LIBRARY = call("lib", f"{GOOD} -C linker-plugin-lto {USING}")
PROGRAM = call("main", f"{GOOD} -C lto=fat {USING}", links=True)
SCRIPT = call("build_script_build", "-C embed-bitcode=no", links=True, host=True)


def test_what_was_asked_for_is_what_was_built() -> None:
    seen = seen_of(SCRIPT, LIBRARY, PROGRAM)
    assert codes(seen) == {}
    said = "\n".join(describe(seen))
    assert "2 crates compiled by recorded calls of rustc: opt-level 3" in said
    assert "linked by rustc: main (lto=fat, codegen-units=1, panic=abort)" in said
    assert "compiled with a profile: 2 of 2 crates" in said


def test_a_level_that_the_manifest_gives_a_package_is_named() -> None:
    """`[profile.release.package.lib] opt-level = "s"` comes before the environment."""
    small = call("lib", f"{GOOD.replace('=3', '=s')} -C linker-plugin-lto {USING}")
    found = codes(seen_of(SCRIPT, small, PROGRAM))
    assert set(found) == {"flags-differ"}
    assert "-C opt-level=3 was asked for, but 1 of 2 crates have s: lib" in found["flags-differ"]
    assert 'build.own_flags = ["src/lib.rs"]' in found["flags-differ"]
    seen = seen_of(SCRIPT, small, PROGRAM)
    assert seen.request is not None
    declared = replace(seen, request=replace(seen.request, own_flags=("src/lib.rs",)))
    assert codes(declared) == {}


def test_a_crate_that_is_named_in_full_is_declared_by_its_path_in_the_source() -> None:
    small = call("lib", f"{GOOD.replace('=3', '=s')} -C linker-plugin-lto {USING}")
    line = replace(small.line, sources=("/b/src/lib.rs",))
    seen = seen_of(SCRIPT, replace(small, line=line), PROGRAM)
    assert 'build.own_flags = ["src/lib.rs"]' in codes(seen)["flags-differ"]
    assert seen.request is not None
    declared = replace(seen, request=replace(seen.request, own_flags=("src/lib.rs",)))
    assert codes(declared) == {}


def test_a_level_that_is_overridden_everywhere_is_named() -> None:
    late = [replace(each, ran=(*each.ran, "-Copt-level=1")) for each in (LIBRARY, PROGRAM)]
    found = codes(seen_of(*late))
    assert set(found) == {"flag-overridden"}
    assert "overridden later on the command line by 1" in found["flag-overridden"]


def test_lto_that_is_lost_at_the_link_is_named() -> None:
    """`cargo build --config profile.release.lto=false` beats the environment."""
    plain = call("main", f"{GOOD} {USING}", links=True)
    found = codes(seen_of(SCRIPT, LIBRARY, plain))
    assert set(found) == {"lto-not-linked"}
    assert "linked main with lto=off" in found["lto-not-linked"]


def test_crates_without_bitcode_take_no_part_in_lto() -> None:
    bare = call("lib", f"{GOOD} -C embed-bitcode=no {USING}")
    assert (
        "1 of 2 crates were compiled without bitcode"
        in codes(seen_of(bare, PROGRAM))["lto-not-linked"]
    )


def test_a_profile_that_is_not_used_is_named() -> None:
    """A makefile that sets RUSTFLAGS for Cargo takes the variant's away."""
    lost = [
        call("lib", f"{GOOD} -C linker-plugin-lto"),
        call("main", f"{GOOD} -Clto=fat", links=True),
    ]
    found = codes(seen_of(*lost))
    assert set(found) == {"profile-not-given"}
    assert "2 of 2 crates" in found["profile-not-given"]


@pytest.mark.parametrize(
    ("flags", "lacking"),
    [("-C panic=abort", "codegen-units=1"), ("-C codegen-units=1", "panic=abort")],
)
def test_what_no_crate_has_is_missing(flags: str, lacking: str) -> None:
    words = f"-C opt-level=3 {flags} -C lto=fat {USING}"
    found = codes(seen_of(call("main", words, links=True)))
    assert set(found) == {"flag-missing"}
    assert lacking in found["flag-missing"]


def test_words_for_llvm_add_up() -> None:
    variant = Variant("v", "rustc", "-O3", alignment="loops")
    words = "-C opt-level=3 -Cllvm-args=-align-all-functions=6"
    right = call("main", f"{words} -C llvm-args=-align-loops=32 -Cllvm-args=-x", links=True)
    assert codes(seen_of(right, variant=variant)) == {}
    found = codes(seen_of(right, call("lib", words), variant=variant))
    assert set(found) == {"flags-differ"}
    assert "llvm-args=-align-all-functions=6 -align-loops=32" in found["flags-differ"]


def test_lto_that_nobody_asked_for_is_named() -> None:
    variant = Variant("v", "rustc", "-O3")
    thin = call("main", "-C opt-level=3 -C lto=thin", links=True)
    assert set(codes(seen_of(thin, variant=variant))) == {"lto-not-asked"}
    off = call("main", "-C opt-level=3 -C lto=off", links=True)
    assert codes(seen_of(off, variant=variant)) == {}


def test_c_of_build_scripts_is_told_and_no_error() -> None:
    source = CommandLine(compiles=True, output="/b/c.o", sources=("/b/c.c",))
    c = Call("cc", "/usr/bin/cc", ("cc",), ("cc", "-O3"), "/b", 0, 1, 0,
             (Output("/b/c.o", "hash of c", 1),), line=source)  # fmt: skip
    took = frozenset({"hash of c", "hash of lib", "hash of main"})
    found = codes(replace(seen_of(c, LIBRARY, PROGRAM), took=took))
    assert set(found) == {"code-of-c"}
    assert "/usr/bin/cc (c.c)" in found["code-of-c"]


def test_the_projects_own_rustflags_are_told(tmp_path: Path) -> None:
    (tmp_path / ".cargo").mkdir()
    config = tmp_path / ".cargo/config.toml"
    config.write_text('[build]\nrustflags = ["-C", "lto=off"]\n[target.x]\nrustflags = "-Zx"\n')
    found = own_rustflags(tmp_path)
    assert found == (
        ".cargo/config.toml: build.rustflags = -C lto=off",
        ".cargo/config.toml: target.x.rustflags = -Zx",
    )
    seen = seen_of(LIBRARY, PROGRAM)
    told = replace(seen, proof=replace(seen.proof, own_rustflags=found))
    assert set(codes(told)) == {"own-rustflags"}


@pytest.mark.parametrize("text", ["[build\n", "build = 3\n", "[target]\nx = 1\n", "\xff\0", ""])
def test_damaged_configurations_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo/config.toml").write_bytes(text.encode("latin-1"))
    assert own_rustflags(tmp_path) == ()
