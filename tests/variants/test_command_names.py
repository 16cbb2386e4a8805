from __future__ import annotations

import pytest

from ensign.experiment.compare.commands import LONGEST, command_names
from ensign.model.quoting import distinct_short

TUNED = "env GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL ./prog --input data/large"
LONG = "data/a-long-name-of-a-folder/and-of-a-file.json"
OLD, NEW = (f"roots/{each}/lib/ld.so --library-path roots/{each}/lib" for each in ("old", "new"))


@pytest.mark.parametrize(
    ("commands", "names"),
    [
        (("gzip -6 -c f", "gzip -5 -c f"), ("gzip -6 -c f", "gzip -5 -c f")),
        ((f"gzip -6 -c {LONG}", f"gzip -5 -c {LONG}"), ("-6", "-5")),
        ((f"./zstd -T1 {LONG}", f"./zstd -T2 {LONG}"), ("-T1", "-T2")),
        ((f"/opt/v1.0.0/bin/jq . {LONG}", f"/opt/v1.0.1/bin/jq . {LONG}"), ("v1.0.0", "v1.0.1")),
        (("./prog --input data/large", TUNED), ("no hwcaps", "hwcaps=-AVX2,…")),
        ((f"./old/prog {LONG}", f"./new/prog {LONG}"), ("old", "new")),
        ((f"sort {LONG}", f"sort -u {LONG}"), ("no -u", "-u")),
        ((f"sort {LONG}", f"sort -u {LONG}", f"sort -n {LONG}"), ("none", "-u", "-n")),
        ((f"sh -c 'gzip -6 < {LONG}'", f"sh -c 'gzip -5 < {LONG}'"), ("-6", "-5")),
        ((f"cat {LONG}", f"cat {LONG}"), ("cat", "cat")),
        (
            (f"tool --level=2 --threads=1 {LONG}", f"tool --level=3 --threads=4 {LONG}"),
            ("--level=2 --threads…", "--level=3 --threads…"),
        ),
        ((f"{OLD} ./prog 1", f"{NEW} ./prog 2"), ("old 1", "new 2")),
        (
            ("./program-a a/x 10 100", "./program-b a/y 20 200"),
            ("program-a x 10 100", "program-b y 20 200"),
        ),
        (("python3 -c 'print(1)' 'x", "python3 -c 'print(2)' 'x"), ("'print(1)'", "'print(2)'")),
        ((f"./prog {LONG}", f"./prog  {LONG}"), ("./prog data/a-long-…", "./prog  data/a-long…")),
        ((f"{'a' * 40}1", f"{'a' * 40}2"), (f"…{'a' * 18}1", f"…{'a' * 18}2")),
    ],
)
def test_a_name_is_what_differs(commands: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert command_names(commands) == names


def test_names_are_short_and_differ_as_commands_do() -> None:
    commands = tuple(
        f"/srv/build/{'x' * 30}/{index}/prog --mode {'fast' * (index % 3)} -o /dev/null {LONG}"
        for index in range(12)
    )
    names = command_names(commands)
    assert len(set(names)) == len(commands)
    assert all(len(each) <= LONGEST for each in names)


def test_what_is_cut_alike_shows_where_it_differs() -> None:
    texts = ("the same beginning and one end", "the same beginning and another end")
    first, second = distinct_short(texts, 16)
    assert first != second
    assert max(len(first), len(second)) <= 16
    assert distinct_short(("short", "other"), 16) == ("short", "other")
