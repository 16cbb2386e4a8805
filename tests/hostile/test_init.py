"""Trees whose programs mean harm to whoever tries them, and texts that are slow to read."""

from __future__ import annotations

import time

import pytest

from end_to_end.conftest import Ensign, ensign
from ensign.tools.init import build_options
from ensign.tools.init.documented_commands import choices_of, options_of, shown_commands

__all__ = ["ensign"]  # a fixture

MAKEFILE = "sum: sum.c\n\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ sum.c\n"
# It puts links in the place of all that ensign writes for the next program.
PLANTS = """\
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static void plant(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%%s/%%s", folder, name);
    unlink(path);
    symlink("%(victim)s", path);
}
int main(int argc, char **argv) {
    FILE *given = argc > 1 ? fopen(argv[1], "r") : stdin;
    if (!given) return 2;
    if (argc == 1) plant(".", "ensign-input.c");
    plant(getenv("TMPDIR"), "said");
    plant(getenv("TMPDIR"), "followed");
    unsigned sum = 0;
    for (int each; (each = getc(given)) != EOF;)
        for (int i = 0; i < 300; i++) sum = sum * 31 + each;
    printf("%%u\\n", sum);
    return 0;
}
"""


def test_links_that_a_tried_program_leaves_are_not_written_through(ensign: Ensign) -> None:
    victim = ensign.folder / "victim"
    victim.write_text("mine\n")
    tree = ensign.folder / "tree"
    tree.mkdir()
    (tree / "Makefile").write_text(MAKEFILE)
    (tree / "sum.c").write_text(PLANTS % {"victim": victim})
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    assert victim.read_text() == "mine\n"
    assert not (tree / "ensign-input.c").is_symlink()


LONG = 250_000


@pytest.mark.parametrize(
    "text",
    [
        "dh_auto_configure " * (LONG // 18),
        ("pack " + "a/" * 140 + "\n") * (LONG // 285),
        ("echo " + "-a " * 95 + " | pack\n") * (LONG // 297),
        ".TH\n" + "\\f" * (LONG // 2),
        ("pack " + "[" * 290 + "\n") * (LONG // 295),
        "-a " * (LONG // 3),
        "\n" * LONG,
        "[" + "a|b|" * (LONG // 4),
    ],
    ids=("rules", "folders", "options", "fonts", "brackets", "words", "lines", "choices"),
)
def test_texts_that_are_slow_to_read_are_read_in_bounded_time(text: str) -> None:
    begun = time.process_time()
    shown_commands(text, "pack", ["in.txt"])
    options_of(text)
    choices_of(text)
    build_options.of_debian_rules(text, "cmake")
    build_options.of_cmake_cache(text)
    assert time.process_time() - begun < 5
