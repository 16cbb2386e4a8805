"""Links that were not told of linker or allocator; protections that were to be left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.model.variants import Variant
from ensign.proof.evidence import BuildEvidence, Request
from ensign.proof.facts import Binary, Hardening, Proof
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
