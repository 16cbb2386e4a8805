"""Links that were not told of linker or allocator; protections that were to be left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.model.variants import Variant
from ensign.proof.evidence import BuildEvidence, Request
from ensign.proof.facts import Binary, Hardening, Proof, Unit, UnitKind
from ensign.proof.rules.artifact import artifact_findings
from ensign.proof.rules.link import link_findings
from ensign.toolchains.table import Flags
from recorded import recorded

LTO_LOOPS = "-Wl,-plugin-opt=-align-loops=32"


def seen(link: str, flags: str, **axes: str) -> BuildEvidence:
    variant = replace(Variant("v", "gcc-12", "-O2"), **axes)  # type: ignore[arg-type]
    call = replace(recorded(link.split(), "/b"), exit=0)
    request = Request(variant, Flags((), tuple(flags.split())))
    return BuildEvidence("v", Proof(Binary("/b/program")), request, calls=(call,))


@pytest.mark.parametrize(
    ("link", "codes"),
    [
        ("gcc main.o -fuse-ld=mold -o program", []),
        ("gcc main.o -o program", ["link-flag-missing"]),
        ("gcc main.o -fuse-ld=mold -fuse-ld=bfd -o program", ["link-flag-missing"]),
        ("gcc main.o -o another", []),
    ],
)
def test_a_link_is_told_of_its_linker(link: str, codes: list[str]) -> None:
    found = link_findings(seen(link, "-fuse-ld=mold", linker="mold"))
    assert [each.code for each in found] == codes


@pytest.mark.parametrize(
    ("link", "codes"),
    [("gcc main.o -ljemalloc -o program", []), ("gcc main.o -o program", ["link-flag-missing"])],
)
def test_a_link_is_told_of_its_allocator(link: str, codes: list[str]) -> None:
    found = link_findings(seen(link, "-ljemalloc", allocator="jemalloc"))
    assert [each.code for each in found] == codes


@pytest.mark.parametrize(("link", "codes"), [(LTO_LOOPS, []), ("", ["link-flag-missing"])])
def test_a_lto_link_is_told_of_the_alignment_of_loops(link: str, codes: list[str]) -> None:
    found = link_findings(seen(f"clang main.o {link} -o program", LTO_LOOPS, alignment="loops"))
    assert [each.code for each in found] == codes


def test_protections_that_were_to_be_left_out_are_named() -> None:
    flags = "-no-pie -Wl,-z,norelro -Wl,-z,lazy"
    without = seen("gcc main.o -o program", flags, hardening="none")
    assert list(artifact_findings(without)) == []
    has = Hardening(pie=True, relro=True)
    (found,) = artifact_findings(replace(without, proof=Proof(Binary("/b/program", hardening=has))))
    assert found.code == "hardening-left"
    assert "has position independence (PIE), RELRO" in found.text


def library(
    compiler: str, flags: str, link: str = "", exported_functions: int = 2, more: str = "-O2"
) -> BuildEvidence:
    units = tuple(
        Unit(name, "/b", UnitKind.WHOLE, compiler, tuple(words.split()))
        for name, words in (("a.c", flags), ("b.c", more))
    )
    library = Binary(
        "/b/l.so", shared_library=True, units=units, exported_functions=exported_functions
    )
    call = recorded(f"gcc -shared a.o b.o {link} -o l.so".split(), "/b")
    return BuildEvidence("v", Proof(library), calls=(replace(call, exit=0),))


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (library("GCC 12.2.0", "-O2"), ""),
        (library("GCC 12.2.0", "-fno-semantic-interposition", exported_functions=1), ""),
        (library("GCC 12.2.0", "-fno-semantic-interposition -fsemantic-interposition"), ""),
        (library("GCC 12.2.0", "-Ofast -fsemantic-interposition"), ""),
        (library("Clang 19.1.7", "-Ofast"), ""),
        (
            library("Clang 19.1.7", "-fno-semantic-interposition"),
            "1 of 2 units are compiled with -fno-semantic-interposition: ",
        ),
        (
            library("GCC 12.2.0", "-Ofast", more="-Ofast"),
            "compiled with -Ofast (it has -fno-semantic-interposition): ",
        ),
        (library("GCC 12.2.0", "-O2", "-Wl,-z,now,-Bsymbolic-functions"), "linked with -Bsymbolic"),
    ],
)
def test_a_library_whose_calls_cannot_be_interposed_is_told(seen: BuildEvidence, text: str) -> None:
    found = [each for each in artifact_findings(seen) if each.code == "not-interposable"]
    assert bool(found) == bool(text)
    assert all(each.text.startswith(text) and "LD_PRELOAD" in each.text for each in found)
