"""Which members a linker takes, and what real linkers took of the same inputs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.model.calls import LinkWord
from ensign.proof.facts import Order
from ensign.proof.link import TreePlace, defined_names, linker_of, read_link, used_by_resolution
from ensign.proof.link_line import LineInput
from proof.test_link_line import an_object, archive
from real_processes import PlainProcesses
from recorded import recorded

LD, LLD = ("cc",), ("cc", "-fuse-ld=lld")
MAIN = an_object("main.o", "main", "fast slow")
SHARED = LineInput(LinkWord("-lslow"), "libslow.so", "shared", frozenset({"slow"}))


@pytest.mark.parametrize(
    ("words", "linker"),
    [
        ("gcc -flto a.o", "ld"),
        ("clang -fuse-ld=bfd -fuse-ld=lld-19 a.o", "lld"),
        ("clang -fuse-ld=/usr/bin/ld.mold a.o", "mold"),
    ],
)
def test_the_linker_is_the_last_one_named(words: str, linker: str) -> None:
    assert linker_of(words.split()) == linker


def test_ld_takes_what_is_needed_so_far_lld_what_is_needed_at_all() -> None:
    inputs = (archive("liba.a", x="fast", spare="spare"), MAIN)
    assert used_by_resolution(inputs, LD) == {"liba.a": frozenset()}
    assert used_by_resolution(inputs, LLD) == {"liba.a": frozenset({"x.o"})}


@pytest.mark.parametrize("argv", [LD, LLD])
def test_of_an_archive_and_a_shared_library_the_first_gives(argv: tuple[str, ...]) -> None:
    a = archive("liba.a", x="fast", y="slow")
    assert used_by_resolution((MAIN, a, SHARED), argv) == {"liba.a": frozenset({"x.o", "y.o"})}
    assert used_by_resolution((MAIN, SHARED, a), argv) == {"liba.a": frozenset({"x.o"})}


def test_what_u_asks_for_is_needed() -> None:
    inputs = (archive("liba.a", x="hook", y="other", m="main"), MAIN)
    argv = ("cc", "-u", "hook", "-Wl,-u,other", "-Wl,--undefined=none")
    assert used_by_resolution(inputs, argv) == {"liba.a": frozenset({"x.o", "y.o", "m.o"})}


SOURCES = {
    "main.c": "int a(void); int main(void) { return a(); }",
    "a.c": "int b(void); __attribute__((weak)) int maybe(void);"
    " KEPT int a(void) { return b() + (maybe ? maybe() : 0); }",
    "b.c": "int c(void); KEPT int b(void) { return c(); }",
    "c.c": "KEPT int c(void) { return 3; }",
    "maybe.c": "KEPT int maybe(void) { return 4; }",
    "empty.c": "",
}


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize(
    ("compiler", "linker"), [("gcc-12", "bfd"), ("clang-19", "lld"), ("clang-19", "mold")]
)
def test_what_is_judged_useless_left_nothing_in_the_program(
    tmp_path: Path, compiler: str, linker: str, *, grouped: bool
) -> None:
    """Needs cross from one archive to the other and back; a weak need takes nothing."""

    def run(*argv: str) -> None:
        subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True)

    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
        run(compiler, "-O2", "-flto", "-DKEPT=__attribute__((used))", "-c", name)
    ar = "gcc-ar-12" if compiler == "gcc-12" else "llvm-ar-19"
    for library, members in (("one", ("b.o", "empty.o")), ("two", ("a.o", "c.o"))):
        run(ar, "rcs", f"lib{library}.a", *members)
    run(ar, "rcs", "libperhaps.a", "maybe.o")
    words = (compiler, "-O2", "-flto", f"-fuse-ld={linker}", "-o", "program", "main.o", "empty.o")
    libraries: tuple[str, ...] = ("libtwo.a", "libperhaps.a", "libone.a")
    if grouped:
        libraries = ("-Wl,--start-group", *libraries, "-Wl,--end-group")
    else:
        libraries = (*libraries, "libtwo.a")
    run(*words, *libraries)
    names = defined_names(tmp_path / "program")
    assert names & {"a", "b", "c", "maybe"} == {"a", "b", "c"}
    link = recorded((*words, *libraries), str(tmp_path))
    facts = read_link(link, TreePlace(tmp_path), tmp_path / "program", None, PlainProcesses())
    assert facts.unknown == ""
    found = {(each.order, each.library) for each in facts.order}
    twice = set() if grouped else {(Order.DUPLICATE, "libtwo.a")}
    assert found == twice | {(Order.UNUSED, "libperhaps.a")}


def test_what_cannot_be_read_is_unknown_and_said(tmp_path: Path) -> None:
    subprocess.run(("gcc-ar-12", "rcs", "liba.a"), cwd=tmp_path, check=True)

    def unknown(*words: str) -> str:
        link = recorded(("gcc-12", "-flto", *words, "liba.a"), str(tmp_path))
        facts = read_link(link, TreePlace(tmp_path), tmp_path / "program", None, PlainProcesses())
        assert facts.order == ()
        return facts.unknown

    assert unknown("main.c") == "the symbols of main.c, compiled at the link, are not kept"
    assert unknown("gone.o") == "the symbols of gone.o cannot be read"
    assert unknown("@objects.txt") == "the symbols of @objects.txt cannot be read"
