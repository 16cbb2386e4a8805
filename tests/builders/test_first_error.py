"""The error that failed a build, by what tools really print."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.builders.first_error import excerpt, first_error
from ensign.model.calls import Call, CommandLine

CALL = Call("cc", "/usr/bin/cc", (), (), "/b", 0, 10, 1, ())
CLANG = """dc.c:2:9: error: call to undeclared function 'isatty'; ISO C99 and later do not support \
implicit function declarations [-Wimplicit-function-declaration]
    2 |     if (isatty(0)) return 1;
      |         ^
1 error generated.
"""
SAID = [
    ("wi.c:1:10: fatal error: nohdr.h: No such file or directory\ncompilation terminated.\n",
     "wi.c:1: nohdr.h: No such file or directory"),
    ("\x1b[01m\x1b[Kbad.c:1:9:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[K'y' undeclared\n",
     "bad.c:1: 'y' undeclared"),
    (("/usr/bin/ld: /tmp/cc1.o: in function `main':\n/b/ud.c:2: undefined reference to `nope'\n"
     "collect2: error: ld returned 1 exit status\n"), "ud.c:2: undefined reference to `nope'"),
    (("/usr/bin/ld: /tmp/cc1.o: in function `main':\nud.c:(.text+0x5): undefined reference to `f'\n"
     "collect2: error: ld returned 1 exit status\n"), "ud.c: undefined reference to `f'"),
    (("/usr/bin/ld: /tmp/a.ltrans0.ltrans.o: in function `main':\n"
     "<artificial>:(.text.startup+0x1): undefined reference to `nope'\n"),
     "undefined reference to `nope'"),
    ("/b/ccM.o:ud.c:function main: error: undefined reference to 'nope'\n",
     "ud.c: undefined reference to 'nope'"),
    (("/usr/bin/ld: warning: a.o: missing .note.GNU-stack section\n"
     "/usr/bin/ld: cannot find -lfoobar: No such file or directory\n"
     "clang: error: linker command failed with exit code 1 (use -v to see invocation)\n"),
     "cannot find -lfoobar: No such file or directory"),
    (("ld.lld: error: undefined symbol: nope\n>>> referenced by ud.c:2 (/b/ud.c:2)\n"
     ">>>               /tmp/ud-7203b7.o:(main)\n"), "ud.c:2: undefined symbol: nope"),
    ("mold: error: undefined symbol: nope\n>>> referenced by ud.c\n>>>   /tmp/u.o:(main)\n",
     "ud.c: undefined symbol: nope"),
    ("mold: fatal: library not found: foobar\n", "library not found: foobar"),
    ("clang-19: error: unknown argument: '-fnonsense'\n", "unknown argument: '-fnonsense'"),
    ("cc1: error: bad value 'nosuch' for '-march=' switch\ncc1: note: valid arguments are: x\n",
     "bad value 'nosuch' for '-march=' switch"),
    ("error: unknown target CPU 'nosuch'\nnote: valid target CPU values are: nocona\n",
     "unknown target CPU 'nosuch'"),
    ("lto-wrapper: fatal error: gcc returned 1 exit status\n", "gcc returned 1 exit status"),
    ("a.s: Assembler messages:\na.s:3: Error: no such instruction: `foo'\n",
     "a.s:3: no such instruction: `foo'"),
    (("error[E0308]: mismatched types\n --> src/main.rs:1:25\n  |\n1 | x\n\n"
     "error[E0425]: cannot find function\n --> src/main.rs:1:30\n\n"
     'error: could not compile `x` (bin "x") due to 2 previous errors\n'),
     "src/main.rs:1: mismatched types"),
    (("error: linking with `cc` failed: exit status: 1\n  |\n"
     "  = note: rust-lld: error: undefined symbol: nope\n"
     "          >>> referenced by main.rs:2 (src/main.rs:2)\n"),
     "src/main.rs:2: undefined symbol: nope"),
    (("error: failed to run custom build command for `x v0.1.0`\n\nCaused by:\n  --- stderr\n\n"
     "  thread 'main' (17210) panicked at build.rs:1:12:\n  no libfoo\n  stack backtrace:\n"),
     "build.rs:1: no libfoo"),
    (("cargo:warning=src/a.c:3:1: error: expected ';'\n"
     "thread 'main' panicked at build.rs:4:1:\ncc failed\n"), "src/a.c:3: expected ';'"),
    ("CMake Error at CMakeLists.txt:6 (message):\n  We need\n  libfoo\n\n\n-- Configuring\n",
     "CMakeLists.txt:6: We need libfoo"),
    ('meson.build:2:0: ERROR: Dependency "nosuchdep" not found\n\nA full log can be found\n',
     'meson.build:2: Dependency "nosuchdep" not found'),
    ("checking for foo... no\nconfigure: error: foo is needed\n", "foo is needed"),
    ("checking for foo... configure: error: foo is needed\n\n  Or is it?\n", "foo is needed"),
    (("checking order... unknown\nconfigure: error: \n\nUnknown order. You need to preset\n"
     "order=no.\n\n    \n"), "Unknown order. You need to preset order=no."),
    ("make: *** No rule to make target 'x.c', needed by 'x'.  Stop.\n",
     "No rule to make target 'x.c', needed by 'x'"),
    ("M2:2: *** missing separator.  Stop.\n", "M2:2: missing separator"),
    ("make: flex: No such file or directory\nmake: *** [M:2: a] Error 127\n",
     "flex: No such file or directory"),
    ("/bin/sh: 1: flexx: not found\nmake: *** [M:5: b] Error 127\n", "flexx: not found"),
    (('Traceback (most recent call last):\n  File "gen.py", line 3, in <module>\n    import x\n'
     "ModuleNotFoundError: No module named 'x'\nmake: *** [M:7: c] Error 1\n"),
     "gen.py:3: ModuleNotFoundError: No module named 'x'"),
    ("generating\nmake: *** [M:7: c] Error 3\n", "M:7: 'c' ended with Error 3"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "said"), SAID)
def test_each_tool_has_its_form(output: str, said: str) -> None:
    error = first_error(output, tree="/b")
    assert error is not None
    assert error.said == said


@pytest.mark.parametrize(
    "output",
    ["", "all is well\n", "gcc -DERROR=1 -c a.c\n", "a.c:1:2: warning: implicit declaration\n"],
)
def test_what_is_no_error_is_none(output: str) -> None:
    assert first_error(output) is None


def test_what_make_ignores_is_not_the_cause() -> None:
    ignored = (
        "probe.c:1:9: error: expected expression\nmake: [Makefile:5: probe] Error 1 (ignored)\n"
    )
    error = first_error(f"{ignored}{CLANG}make: *** [Makefile:7: dc.o] Error 1\n")
    assert error is not None
    assert (error.file, error.line) == ("dc.c", 2)


def test_of_parallel_jobs_the_one_counts_whose_target_make_gave_up() -> None:
    output = (
        f"b.c:1:1: error: other\n{CLANG}b.c:7:1: error: more\nmake: *** [M:7: x_la-dc.lo] Error 1\n"
    )
    error = first_error(output)
    assert error is not None
    assert error.file == "dc.c"


def test_what_a_script_tolerates_comes_before_the_cause() -> None:
    probe = "probe.c:1:9: error: expected expression\nno probe\n"
    error = first_error(f"{probe}{CLANG}dc.c:3:1: error: more\n")
    assert error is not None
    assert (error.file, error.line) == ("dc.c", 2)


def test_a_build_that_compiled_on_did_not_fail_for_that() -> None:
    probe = replace(CALL, line=CommandLine(compiles=True, sources=("dc.c",)))
    later = replace(CALL, started_unix_ns=99, exit=0)
    assert first_error(CLANG, (probe,)) is not None
    assert first_error(CLANG, (probe, later)) is None
    assert first_error(CLANG, (probe, replace(later, started_unix_ns=5))) is not None
    assert first_error(f"{CLANG}make: *** [M:7: dc.o] Error 1\n", (probe, later)) is not None


def test_files_are_named_from_the_source_folder() -> None:
    call = replace(CALL, cwd="/b/out", line=CommandLine(compiles=True, sources=("../src/dc.c",)))
    output = CLANG.replace("dc.c", "../src/dc.c")
    recorded = first_error(output, (call,), "/b")
    assert recorded is not None
    assert recorded.file == "src/dc.c"
    entered = f"make[1]: Entering directory '/b/out'\n{output}make[1]: *** [M:7: dc.o] Error 1\n"
    unrecorded = first_error(entered, tree="/b")
    assert unrecorded is not None
    assert unrecorded.file == "src/dc.c"
    elsewhere = first_error("/usr/include/x.h:3:1: error: no\n", tree="/b")
    assert elsewhere is not None
    assert elsewhere.file == "/usr/include/x.h"


def test_ninja_says_which_command_failed() -> None:
    before = "[1/3] CC a\na.c:1:1: error: tolerated\n"
    failed = f"FAILED: x.p/dc.c.o\nclang -c dc.c\n{CLANG}"
    after = "[2/3] CC b\nb.c:9:1: error: later\nninja: build stopped: subcommand failed.\n"
    error = first_error(f"{before}{failed}{after}")
    assert error is not None
    assert error.file == "dc.c"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (CLANG, ("Clang 16", '["-Wno-implicit-function-declaration"]')),
        ("u.c:1:2: error: unused variable 'u' [-Werror,-Wunused-variable]\n",
         ("-Werror", "-Wno-unused-variable")),
        ("u.c:1:2: error: unused variable 'u' [-Werror=unused-variable]\n",
         ("-Werror", "-Wno-unused-variable")),
        (("/usr/bin/ld: cannot find /usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/"
         "libclang_rt.profile-x86_64.a: No such file or directory\n"), ("libclang-rt-14-dev",)),
    ],
)  # fmt: skip
def test_what_helps_is_said_where_it_is_known(output: str, words: tuple[str, ...]) -> None:
    error = first_error(output)
    assert error is not None
    assert all(word in error.way_out for word in words)
    assert "[-W" not in error.text


def test_an_excerpt_begins_at_the_error() -> None:
    output = "".join(f"line {at}\n" for at in range(50)) + CLANG + "after\n" * 50
    lines = excerpt(output, first_error(output))
    assert lines[0] == "line 49"
    assert lines[1].startswith("dc.c:2:9: error:")
    assert excerpt(output, None) == ("after",) * 12
