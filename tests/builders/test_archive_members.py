from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import pytest

from builders.test_relink import functions, relinked
from ensign.builders.build_results import BuildResult
from ensign.builders.request import BuildPorts
from ensign.host.processes import ProcessRequest
from ensign.model.study_axes import Layouts
from ensign.model.variants import Variant
from small_studies import CLANG_O2, GCC_LTO, GCC_O2

ASKED = Layouts.model_validate({"count": 6, "how": "order", "variants": "baseline"})
PARTS = ("one", "two", "three", "four")
PLAIN = "int {name}(int x) {{ return x * {number} + 1; }}\n"
USES = '#include <stdio.h>\nint {calls};\nint main(void) {{ printf("%d\\n", {sums}); return 0; }}\n'
CONSTRUCTED = (
    "#include <stdio.h>\nint {name}(int x) {{ return x * {number} + 1; }}\n"
    '__attribute__((constructor)) static void begin(void) {{ puts("{name}"); }}\n'
)
COMPILE = ["sh", "-c", "for each in *.c; do {cc} {cflags} -c $each || exit 1; done"]


@dataclass(frozen=True, slots=True)
class Laid:
    result: BuildResult
    said: tuple[str, ...]
    outputs: frozenset[str]
    orders: frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path
    ports: BuildPorts

    def write(self, name: str, text: str) -> None:
        path = self.folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def parts(self, form: str = PLAIN) -> None:
        for number, name in enumerate(PARTS, 3):
            self.write(f"{name}.c", form.format(name=name, number=number))
        self.write(
            "main.c",
            USES.format(
                calls=", ".join(f"{name}(int)" for name in PARTS),
                sums=" + ".join(f"{name}({number})" for number, name in enumerate(PARTS)),
            ),
        )

    def laid(self, variant: Variant, *commands: str, own: tuple[str, ...] = ()) -> Laid:
        """Relinks of what these commands build of compiled sources."""
        steps = [COMPILE, *(["sh", "-c", each] for each in commands)]
        report = relinked(
            self.folder, self.ports, variant, ASKED,
            dependencies=[], tool_commands=[], tools={}, own_flags=list(own), commands=steps,
        )  # fmt: skip
        result = report.results[0]
        assert result.artifact is not None
        programs = (result.artifact, *result.layouts)
        run = self.ports.processes.run
        return Laid(
            result,
            tuple(each.text for each in report.findings if "relink" in each.code),
            frozenset(run(ProcessRequest((str(each),))).stdout for each in programs),
            frozenset(tuple(sorted(PARTS, key=functions(each).__getitem__)) for each in programs),
        )


@pytest.fixture
def built(tmp_path: Path, recording_ports: BuildPorts) -> Project:
    return Project(tmp_path, recording_ports)


LINK = "{cc} {cflags} {ldflags} main.o libparts.a -o program"
ARCHIVE = "ar rcs libparts.a one.o two.o three.o four.o"
FORMS = {
    "by its path": (ARCHIVE, LINK),
    "by its name": (ARCHIVE, "{cc} {ldflags} main.o -L. -lparts -lm -o program"),
    "thin": (ARCHIVE.replace("rcs", "rcsT"), LINK),
    "thin, a name of 15 letters": (
        "cp one.o exactly-15-ch.o; ar rcsT libparts.a exactly-15-ch.o two.o three.o four.o",
        LINK,
    ),
    "whole": (
        ARCHIVE,
        LINK.replace("libparts.a", "-Wl,--whole-archive libparts.a -Wl,--no-whole-archive"),
    ),
    "two of them": (
        "ar rcs lib/libparts.a one.o two.o; ar rcs libparts.a three.o four.o",
        LINK.replace("libparts.a", "lib/libparts.a libparts.a"),
    ),
    "a program whose main is in it": (
        "ar rcs libparts.a one.o two.o three.o main.o",
        LINK.replace("main.o", "four.o -Wl,-u,main"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "variant",
    [
        GCC_O2,
        CLANG_O2,
        replace(CLANG_O2, name="clang-lld", linker="lld"),
        replace(GCC_O2, name="gcc-mold", linker="mold"),
    ],
    ids=["bfd", "clang", "lld", "mold"],
)
def test_members_of_archives_change_places(built: Project, form: str, variant: Variant) -> None:
    built.parts()
    (built.folder / "source/lib").mkdir()
    found = built.laid(variant, *FORMS[form])
    assert len(found.result.layouts) == 6
    assert found.outputs == {f"{sum(n * (n + 3) + 1 for n in range(4))}\n"}
    assert len(found.orders) > 2
    assert not any("keep their" in each for each in found.said), found.said


def test_constructors_of_members_run_in_the_order_of_the_build(built: Project) -> None:
    built.parts(CONSTRUCTED)
    found = built.laid(GCC_O2, *FORMS["by its path"])
    assert len(found.outputs) == 1
    assert len(found.orders) == 1
    spaces = set()
    for path in found.result.layouts:
        here = functions(path)
        spaces.add(tuple(here[name] - here["one"] for name in PARTS))
    assert len(spaces) > 3


def test_an_archive_whose_members_share_a_name_keeps_its_place(built: Project) -> None:
    built.parts()
    found = built.laid(
        GCC_O2,
        "mkdir twice && mv two.o twice/one.o",
        "ar qcs libparts.a one.o three.o twice/one.o && ar rcs libmore.a four.o",
        LINK.replace("libparts.a", "libparts.a libmore.a"),
    )
    assert len(found.outputs) == 1
    assert len(found.result.layouts) == 6
    (said,) = [each for each in found.said if "keep" in each]
    assert said == "members of libparts.a keep their order: it has several members called one.o"


def test_weak_definitions_of_members_are_those_of_the_build(built: Project) -> None:
    form = "__attribute__((weak)) int chosen(void) {{ return {number}; }}\n"
    built.parts(form + "int {name}(int x) {{ return x + chosen(); }}\n")
    found = built.laid(GCC_O2, *FORMS["by its path"])
    assert len(found.outputs) == 1
    assert len(found.result.layouts) == 6


def test_equal_weak_definitions_do_not_bind_their_objects(built: Project) -> None:
    form = '__attribute__((weak, section(".text.chosen"))) int chosen(void) {{ return 1; }}\n'
    built.parts(form + "int {name}(int x) {{ return x * {number} + chosen(); }}\n")
    found = built.laid(GCC_O2, *FORMS["by its path"])
    assert len(found.outputs) == 1
    assert len(found.orders) > 2


def test_tables_that_a_program_walks_keep_their_order(built: Project) -> None:
    form = (
        'static const char *const entry __attribute__((used, section("parts"))) = "{name}";\n'
        "int {name}(int x) {{ return x + {number}; }}\n"
    )
    built.parts(form)
    built.write(
        "main.c",
        "#include <stdio.h>\nextern const char *const __start_parts[], *const __stop_parts[];\n"
        "int one(int), two(int), three(int), four(int);\nint main(void) {\n"
        "for (const char *const *each = __start_parts; each < __stop_parts; each++) puts(*each);\n"
        "return one(1) + two(1) + three(1) + four(1) == 0; }\n",
    )
    found = built.laid(GCC_O2, *FORMS["by its path"])
    (output,) = found.outputs
    assert tuple(output.split()) in set(permutations(PARTS))


def test_members_without_intermediate_code_move_in_an_lto_link(built: Project) -> None:
    built.parts()
    plain = "for each in one two three four; do gcc-12 -O2 -fno-lto -c $each.c || exit 1; done"
    found = built.laid(GCC_LTO, plain, ARCHIVE, LINK, own=tuple(f"{name}.c" for name in PARTS))
    assert len(found.outputs) == 1
    assert len(found.orders) > 2
