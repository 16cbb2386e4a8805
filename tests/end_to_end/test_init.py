"""A first study of a tree that nobody prepared."""

from __future__ import annotations

from pathlib import Path

from end_to_end.conftest import Ensign

FILTER = """\
#include <stdio.h>
int main(int argc, char **argv) {
    unsigned sum = argc > 1 ? 0 : 1;
    for (int each; (each = getchar()) != EOF;)
        for (int i = 0; i < 300; i++) sum = sum * 31 + each;
    if (sum == 1) return 2; /* nothing to read */
    printf("%u\\n", sum);
    return 0;
}
"""
MAKEFILE = "CFLAGS = -O0\nsum: sum.c\n\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ sum.c\n"


def write_tree(folder: Path, program: str = FILTER) -> None:
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "sum.c").write_text(program)


def test_a_filter_gets_input_that_takes_long_enough_and_the_study_runs(ensign: Ensign) -> None:
    tree = ensign.folder / "sum-1.0"
    write_tree(tree)
    before = {path.name: path.read_bytes() for path in tree.iterdir()}
    done = ensign("init", "sum-1.0")
    assert done.status == 0, done.err
    assert "raced on\n  '{artifact}'" in done.out
    text = (tree / "ensign.toml").read_text()
    assert 'system = "make"' in text
    assert 'artifact = "sum"' in text
    made = {"ensign.toml", "ensign.lock.json", "ensign-input.c"}
    assert {path.name for path in tree.iterdir()} == {*before, *made}
    assert {name: (tree / name).read_bytes() for name in before} == before
    for axis in ("optimization", "lto", "compiler"):
        start = text.index(f"{axis} = [")
        end = text.index("]", start)
        text = text[:start] + text[start:end].split(",")[0] + text[end:]
    text = text.replace('optimization = ["-O2"', 'optimization = ["-O1", "-O2"')
    (tree / "ensign.toml").write_text(text.replace('"20s"', '"60s"\nrounds = 3'))
    done = ensign("run", "sum-1.0/ensign.toml")
    assert done.status == 0, done.err
    assert "-O1" in done.out


def test_a_study_that_is_there_stays(ensign: Ensign) -> None:
    write_tree(ensign.folder / "tree")
    (ensign.folder / "tree/ensign.toml").write_text("mine")
    done = ensign("init", "tree")
    assert done.status == 2
    assert "--force" in done.complaint
    assert (ensign.folder / "tree/ensign.toml").read_text() == "mine"


def test_what_does_not_build_leaves_nothing_and_says_why(ensign: Ensign) -> None:
    write_tree(ensign.folder / "tree", "int main(void) { return missing; }\n")
    done = ensign("init", "tree")
    assert done.status == 3
    assert "does not build here" in done.err
    assert "'missing' undeclared" in done.err
    assert {path.name for path in (ensign.folder / "tree").iterdir()} == {"Makefile", "sum.c"}


def test_a_tree_of_no_known_system_is_one_line(ensign: Ensign) -> None:
    (ensign.folder / "tree").mkdir()
    done = ensign("init", "tree")
    assert done.status == 2
    assert "CMakeLists.txt" in done.complaint


def test_a_program_that_needs_more_than_was_tried_can_be_named(ensign: Ensign) -> None:
    program = (
        "#include <string.h>\nint main(int n, char **v) { volatile long s = 0;\n"
        'if (n != 2 || strcmp(v[1], "--work")) return 1;\n'
        "for (long i = 0; i < 100000000; i++) s += i; return 0; }\n"
    )
    write_tree(ensign.folder / "tree", program)
    done = ensign("init", "tree")
    assert done.status == 2
    assert "--command" in done.complaint
    assert "× ended with status 1)" in done.complaint
    done = ensign("init", "tree", "--command", "sum --wrong")
    assert done.status == 2
    assert "'sum --wrong' ended with status 1; name another" in done.complaint
    assert {path.name for path in (ensign.folder / "tree").iterdir()} == {"Makefile", "sum.c"}
    done = ensign("init", "tree", "--command", "sum --work")
    assert done.status == 0, done.err
    text = (ensign.folder / "tree/ensign.toml").read_text()
    assert 'command = ["{artifact}", "--work"]' in text
    done = ensign("plan", "tree/ensign.toml")
    assert done.status == 0, done.err


def test_a_command_that_does_nothing_in_what_was_built_is_no_workload(ensign: Ensign) -> None:
    program = (
        "#include <stdlib.h>\n#include <string.h>\nint main(void) {\n"
        "char *all = calloc(1, 1 << 26); int sum = 0;\n"
        "for (int i = 0; i < 40; i++) { memset(all, i, 1 << 26); sum += all[i]; }\n"
        "return sum == 3; }\n"
    )
    write_tree(ensign.folder / "tree", program)
    done = ensign("init", "tree")
    assert done.status == 2, done.err
    assert "no command was found that works in what was built: 'sum" in done.complaint
    assert {path.name for path in (ensign.folder / "tree").iterdir()} == {"Makefile", "sum.c"}
    done = ensign("init", "tree", "--command", "sum")
    assert done.status == 0, done.err


def test_a_test_that_is_built_on_demand_is_raced_where_nothing_else_can_be(
    ensign: Ensign,
) -> None:
    tree = ensign.folder / "tree"
    tree.mkdir()
    (tree / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(late C)\n"
        "add_executable(tool tool.c)\n"
        "add_executable(slow_test EXCLUDE_FROM_ALL work.c)\n"
        "add_executable(a_test EXCLUDE_FROM_ALL work.c)\n"
    )
    (tree / "tool.c").write_text("int main(void) { return 1; }\n")
    (tree / "work.c").write_text(
        "int main(void) { volatile long s = 0;\n"
        "for (long i = 0; i < 400000000; i++) s += i; return 0; }\n"
    )
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    text = (tree / "ensign.toml").read_text()
    assert 'targets = ["all", "a_test"]' in text
    assert 'artifact = "ensign-build/a_test"' in text
    assert 'command = ["{artifact}"]' in text
