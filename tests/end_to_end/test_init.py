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
    made = {path.name for path in tree.iterdir()} - {*before, "ensign.toml", "ensign.lock.json"}
    # Which file of the tree is repeated hangs on which took long enough twice.
    assert made in ({"ensign-input.c"}, {"ensign-input"})
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


def test_a_makefile_that_lies_deep_and_a_program_that_is_called_a_test(
    ensign: Ensign,
) -> None:
    tree = ensign.folder / "tree"
    (tree / "projects/make").mkdir(parents=True)
    (tree / "sum.c").write_text(FILTER)
    made = MAKEFILE.replace("sum.c", "../../sum.c").replace("-o sum", "-o sum_test")
    (tree / "projects/make/Makefile").write_text(made.replace("sum:", "sum_test:"))
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    text = (tree / "ensign.toml").read_text()
    assert 'folder = "projects/make"' in text
    assert 'artifact = "projects/make/sum_test"' in text
    assert "\ninput = " in text


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


def test_where_the_preferred_build_fails_the_next_one_is_taken(ensign: Ensign) -> None:
    tree = ensign.folder / "tree"
    write_tree(tree)
    (tree / "CMakeLists.txt").write_text("project(sum C)\nset_target_properties(sum OOPS)\n")
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    text = (tree / "ensign.toml").read_text()
    assert 'system = "make"' in text
    assert "# Not built by cmake: the project does not build here" in text


def test_where_no_build_works_each_says_why(ensign: Ensign) -> None:
    tree = ensign.folder / "tree"
    write_tree(tree, "int main(void) { return missing; }\n")
    (tree / "CMakeLists.txt").write_text("project(sum C)\nset_target_properties(sum OOPS)\n")
    done = ensign("init", "tree")
    assert done.status == 3
    assert "CMakeLists.txt:2" in done.err
    assert "\nby make:\n" in done.err
    assert "'missing' undeclared" in done.err
    assert not (tree / "ensign.toml").exists()


def test_errors_that_a_makefile_ignores_are_why_there_is_no_program(ensign: Ensign) -> None:
    tree = ensign.folder / "tree"
    write_tree(tree)
    (tree / "Makefile").write_text("all:\n\t-no-such-tool sum.c\n")
    done = ensign("init", "tree")
    assert done.status == 3
    assert "no program was made" in done.err
    assert "no-such-tool: not found" in done.err or "no-such-tool: No such file" in done.err


def write_package(tree: Path, depends: str) -> None:
    (tree / "debian").mkdir(parents=True)
    (tree / "sum.c").write_text(FILTER)
    (tree / "debian/rules").write_text(
        "#!/usr/bin/make -f\nbuild build-arch:\n\t$(CC) $(DEB_CFLAGS_APPEND) -o sum sum.c\n"
    )
    (tree / "debian/control").write_text(
        f"Source: sum\nMaintainer: Nobody <nobody@example.org>\nBuild-Depends: {depends}\n\n"
        "Package: sum\nArchitecture: any\nDescription: sums\n"
    )


def test_a_package_that_has_its_rules_alone_is_built_by_them(ensign: Ensign) -> None:
    tree = ensign.folder / "sum"
    write_package(tree, "dpkg-dev")
    done = ensign("init", "sum")
    assert done.status == 0, done.err
    text = (tree / "ensign.toml").read_text()
    assert 'system = "debian"' in text
    assert 'artifact = "sum"' in text


def test_a_package_whose_build_dependencies_are_missing_is_one_line(ensign: Ensign) -> None:
    write_package(ensign.folder / "sum", "no-such-package (>= 2), dpkg-dev")
    done = ensign("init", "sum")
    assert done.status == 2
    assert "build dependencies are missing: no-such-package (>= 2); as root run" in done.complaint
    assert "ensign.toml" not in {each.name for each in (ensign.folder / "sum").iterdir()}


CONFIGURE = """\
#!/bin/sh
# Generated by GNU Autoconf 2.71.
printf 'sum: config.h\\n\\t%s -O2 -o $@ %s/sum.c\\n' "${CC:-cc}" "$(dirname "$0")" > Makefile
echo '#define YES 1' > config.h
"""


def test_a_project_that_builds_in_its_source_folder_alone_does(ensign: Ensign) -> None:
    tree = ensign.folder / "tree"
    tree.mkdir()
    (tree / "sum.c").write_text('#include "config.h"\n' + FILTER)
    (tree / "configure").write_text(CONFIGURE)
    (tree / "configure").chmod(0o755)
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    text = (tree / "ensign.toml").read_text()
    assert "in_source = true" in text
    assert 'artifact = "sum"' in text


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
    assert "of its CPU time there, and most in /usr/lib" in done.complaint
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
        # A chain of multiplications: as many cycles on every processor.
        "int main(int argc, char **argv) { unsigned s = argc;\n"
        "for (long i = 0; i < 150000000; i++) s = s * 1103515245 + 12345;\n"
        "return s == 1 && argv[0][0] == 0; }\n"
    )
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    text = (tree / "ensign.toml").read_text()
    assert 'targets = ["all", "a_test"]' in text, text
    assert 'artifact = "ensign-build/a_test"' in text
    assert 'command = ["{artifact}"]' in text


# Encoding is the C library's work, decoding is its own.
CODEC = """\
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    unsigned sum = 0;
    if (argc > 2) return 1;
    if (argc == 2 && strcmp(argv[1], "-d")) {
        puts("Packs its input.\\nUsage: sum [-d]\\n  -d  unpack");
        return !strstr(argv[1], "help");
    }
    if (argc == 1) {
        for (int each; (each = getchar()) != EOF;) fprintf(stdout, "%08.4f\\n", (double)each);
        return 0;
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (strlen(line) != 9 || line[3] != '.') return 1;
        for (int i = 0; i < 300; i++) sum = sum * 31 + line[i % 8];
    }
    printf("%u\\n", sum);
    return 0;
}
"""


def test_what_a_program_wrote_is_given_back_to_it(ensign: Ensign) -> None:
    write_tree(ensign.folder / "tree", CODEC)
    done = ensign("init", "tree")
    assert done.status == 0, done.err
    text = (ensign.folder / "tree/ensign.toml").read_text()
    assert 'command = ["{artifact}", "-d"]' in text
    assert "ensign-input is what 'sum' wrote" in text
    given = (ensign.folder / "tree/ensign-input").read_text().splitlines()
    assert {len(line) for line in given} == {8}
