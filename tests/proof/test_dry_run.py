from __future__ import annotations

from ensign.meter.client import find_meter
from ensign.meter.questions import calls_of
from ensign.proof.dry_run import asked_of_commands, asked_of_dry_run

PRINTED = """\
make: Entering directory '/t'
echo "  CC   a.c"; gcc -O2 -c a.c
make[1]: Entering directory '/t/sub'
x86_64-linux-gnu-gcc-12 -O3 \\
  -c -o b.o b.c && ar rcs libb.a b.o
make[1]: Leaving directory '/t/sub'
cd sub && ccache g++ -c d.cc
/bin/sh ./libtool --mode=link clang-19 -o program a.o sub/libb.a -lm
echo "it's an open quote
make: Leaving directory '/t'
"""


def test_calls_with_their_folders_and_outputs() -> None:
    calls = calls_of(find_meter(), asked_of_dry_run(PRINTED, "/t"))
    assert [(call.tool, call.cwd, [out.path for out in call.outputs]) for call in calls] == [
        ("cc", "/t", ["/t/a.o"]),
        ("cc", "/t/sub", ["/t/sub/b.o"]),
        ("ar", "/t/sub", []),
        ("cxx", "/t/sub", ["/t/sub/d.o"]),
        ("cc", "/t", ["/t/program"]),
    ]
    assert calls[-1].argv[0] == "clang-19"
    assert [call.line.links for call in calls if call.tool != "ar"] == [False, False, False, True]


def test_both_forms_of_a_compile_commands_file() -> None:
    asked = asked_of_commands(
        [
            {"directory": "/d", "command": "gcc -c 'a b.c' -o a.o", "file": "a b.c"},
            {"directory": "/d", "arguments": ["clang", "-c", "b.c"], "file": "b.c"},
        ]
    )
    calls = calls_of(find_meter(), asked)
    assert [call.outputs[0].path for call in calls] == ["/d/a.o", "/d/b.o"]
