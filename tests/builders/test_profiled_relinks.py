"""Relinks of a program that a profile has sorted into hot, cold and other functions."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from builders.test_profiles import PlainTrainer, study
from builders.test_relink import functions
from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.model.study_axes import Layouts
from ensign.model.variants import Variant
from ensign.proof.loaded_bytes import read_artifact

_EACH = 6
_CLASSES = ("hot", "unlikely")
_BODY = "__attribute__((noinline)) long {name}(long x) {{ return x * {factor} + sum++; }}\n"


def write_source(folder: Path) -> None:
    """Two objects, each with functions that run all the time and others that never run."""
    folder.mkdir()
    declared, calls = "", ""
    for part in ("one", "two"):
        names = [f"{part}_{kind}_{i}" for i in range(_EACH) for kind in ("often", "never")]
        bodies = (_BODY.format(name=name, factor=at + 3) for at, name in enumerate(names))
        (folder / f"{part}.c").write_text("static volatile long sum;\n" + "".join(bodies))
        declared += "".join(f"long {name}(long);\n" for name in names)
        often, never = (
            "".join(f"total += {name}(total);" for name in names if kind in name)
            for kind in ("often", "never")
        )
        calls += f"if (argc > 2) {{ {never} }} {often}"
    (folder / "main.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        f"{declared}"
        "int main(int argc, char **argv) { long total = 0;"
        f"for (long i = atol(argv[1]); i; i--) {{ {calls} }}"
        'printf("%ld\\n", total); return 0; }\n'
    )
    (folder / "Makefile").write_text(
        "program: main.o one.o two.o\n\t$(CC) $(LDFLAGS) -o $@ main.o one.o two.o\n"
        "%.o: %.c\n\t$(CC) $(CFLAGS) -c -o $@ $<\n"
    )


def classes(objects: Path) -> dict[str, str]:
    """Of each function the class that the compiler put it into: `hot`, `unlikely` or none."""
    found = {}
    for path in sorted(objects.glob("*.o")):
        with path.open("rb") as file:
            elf = ELFFile(file)
            table = elf.get_section_by_name(".symtab")
            assert isinstance(table, SymbolTableSection)
            for each in table.iter_symbols():
                if each["st_info"]["type"] == "STT_FUNC":
                    section = elf.get_section(each["st_shndx"]).name
                    word = section.removeprefix(".text.").partition(".")[0]
                    found[each.name] = word if word in _CLASSES else ""
    return found


def order(program: Path, names: set[str]) -> list[str]:
    places = functions(program)
    return sorted(names, key=places.__getitem__)


def runs(names: list[str], class_of: dict[str, str]) -> int:
    """How often the class changes from a function to the next, and one."""
    return sum(1 for _ in groupby(names, key=class_of.__getitem__))


@pytest.mark.parametrize(
    "variant",
    [
        Variant("trained", "clang-19", "-O2", pgo="on"),
        Variant("trained", "gcc-12", "-O2", pgo="on", linker="lld"),
    ],
)
def test_a_shuffle_keeps_hot_and_cold_functions_apart(
    tmp_path: Path, recording_ports: BuildPorts, variant: Variant
) -> None:
    write_source(tmp_path / "branchy")
    asked = study()
    kept = asked.build.model_copy(update={"runtime_files": ["*.o"]})
    layouts = Layouts.model_validate({"count": 3, "how": "shuffle", "variants": "baseline"})
    asked = asked.model_copy(update={"build": kept, "layouts": layouts})
    wanted = BuildRequest(asked, tmp_path / "branchy.toml", (variant,), variant.name)
    report = build_variants(wanted, replace(recording_ports, trainer=PlainTrainer()))
    (result,) = report.results
    assert [each.text for each in report.findings if "relink" in each.code] == []
    assert result.facts.layout_kind == "shuffled sections, hot and cold apart"
    assert result.files is not None
    assert result.artifact is not None
    class_of = classes(result.files)
    assert {*class_of.values()} >= {"hot", "unlikely"}
    natural = order(result.artifact, {*class_of})
    orders = {tuple(natural)}
    said = subprocess.run([result.artifact, "100"], capture_output=True, check=True).stdout
    assert len(result.layouts) == 3
    for path, digest in zip(result.layouts, result.facts.layouts, strict=True):
        facts = read_artifact(path)
        assert facts is not None
        assert facts.loadable_sha256 == digest != result.facts.loadable_sha256
        assert subprocess.run([path, "100"], capture_output=True, check=True).stdout == said
        here = order(path, {*class_of})
        # Where functions lay beside others of their class, they still do.
        assert runs(here, class_of) <= runs(natural, class_of)
        orders.add(tuple(here))
    assert len(orders) == 4
    for kind in _CLASSES:
        assert len({tuple(name for name in row if class_of[name] == kind) for row in orders}) == 4


@pytest.mark.parametrize("lto", ["off", "full"])
@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
def test_sources_in_a_link_keep_their_profile(
    tmp_path: Path, recording_ports: BuildPorts, compiler: str, lto: str
) -> None:
    write_source(tmp_path / "branchy")
    # Profiles name functions by their file, as it was spelled: so does __FILE__.
    main = tmp_path / "branchy/main.c"
    own = "static __attribute__((noinline)) long own(long x) { return x % 3 ? x + 1 : x / 2; }\n"
    text = main.read_text().replace("total = 0;", "total = own(argc); puts(__FILE__);")
    main.write_text(own + text)
    (tmp_path / "branchy/Makefile").write_text(
        "program: one.o two.o\n\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ ./main.c one.o two.o\n"
        "%.o: %.c\n\t$(CC) $(CFLAGS) -c -o $@ $<\n"
    )
    layouts = Layouts.model_validate({"count": 3, "variants": "baseline"})
    asked = study().model_copy(update={"layouts": layouts})
    variant = Variant("trained", compiler, "-O2", lto=lto, pgo="on")
    wanted = BuildRequest(asked, tmp_path / "branchy.toml", (variant,), variant.name)
    report = build_variants(wanted, replace(recording_ports, trainer=PlainTrainer()))
    (result,) = report.results
    assert "not-relinked" not in [each.code for each in report.findings], report.findings
    assert len(result.layouts) == 3
    assert result.artifact is not None
    said = subprocess.run([result.artifact, "100"], capture_output=True, check=True).stdout
    for path in result.layouts:
        assert subprocess.run([path, "100"], capture_output=True, check=True).stdout == said
