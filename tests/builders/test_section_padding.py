from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ensign.builders import section_padding
from ensign.builders.section_padding import write_padded_copies

_FUNCTIONS = "".join(
    f"__attribute__((noinline)) static int f{n}(int x) {{ return x * {n} + {n}; }}\n"
    for n in range(12)
)
_SUM = " + ".join(f"f{n}(n)" for n in range(12))
_SOURCE = f"""#include <stdio.h>
{_FUNCTIONS}int main(int n, char **names) {{ (void)names; printf("%d\\n", {_SUM}); return 0; }}
"""


def _object(folder: Path, *flags: str) -> Path:
    source = folder / "program.c"
    source.write_text(_SOURCE)
    subprocess.run(("cc", "-O1", *flags, "-c", source.name), cwd=folder, check=True)
    return folder / "program.o"


def _linked(path: str, folder: Path) -> Path:
    program = folder / f"{Path(path).parent.name}-{Path(path).stem}"
    subprocess.run(("cc", "-o", program, path), check=True)
    return program


def _functions(program: Path) -> tuple[int, ...]:
    return _places(program, *(f"f{n}" for n in range(12)))


def _places(program: Path, first: str, *others: str) -> tuple[int, ...]:
    with program.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        places = {each.name: int(each["st_value"]) for each in table.iter_symbols()}
    return tuple(places[each] - places[first] for each in others)


@pytest.mark.parametrize("flags", [("-g",), ("-g", "-fPIC", "-fno-asynchronous-unwind-tables")])
def test_copies_do_the_same_with_functions_elsewhere(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    path = _object(tmp_path, "-ffunction-sections", *flags)
    folder = tmp_path / "padded"

    copies = write_padded_copies({"program.o": path}, {}, (folder, str(folder)))["program.o"]

    programs = [_linked(each, tmp_path) for each in (str(path), *copies)]
    said = [subprocess.run((each,), capture_output=True, check=True).stdout for each in programs]
    places = [_functions(each) for each in programs]
    assert len(copies) == 7
    assert set(said) == {said[0]}
    assert len(set(places)) > 4  # within the object, and none of them all over the place
    assert all(each == tuple(sorted(each)) for each in places)


def test_an_object_of_one_section_and_what_is_none_have_no_copies(tmp_path: Path) -> None:
    source = tmp_path / "one.c"
    source.write_text("int one(int x) { return x + 1; }\n")
    subprocess.run(("cc", "-c", source.name), cwd=tmp_path, check=True)
    (tmp_path / "text.o").write_text("no object")
    objects = {name: tmp_path / name for name in ("one.o", "text.o", "gone.o")}

    assert write_padded_copies(objects, {}, (tmp_path / "padded", "/padded")) == {}


def test_large_programs_get_fewer_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _object(tmp_path, "-ffunction-sections")
    folder = tmp_path / "padded"
    monkeypatch.setattr(section_padding, "_MOST_BYTES", 2 * path.stat().st_size)

    copies = write_padded_copies({"a.o": path}, {}, (folder, "/padded"))

    assert copies == {"a.o": ("/padded/0/0.o", "/padded/1/0.o")}


@pytest.mark.parametrize("flags", ["rcs", "rcS", "rcsT"])
def test_archives_are_padded_with_an_index_of_the_new_places(tmp_path: Path, flags: str) -> None:
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdio.h>\nint f0(int), f1(int), f_with_a_long_name(int);\n"
        'int main(void) { printf("%d\\n", f0(1) + f1(2) + f_with_a_long_name(3)); return 0; }\n'
    )
    for name in ("f0", "f1", "f_with_a_long_name"):
        (tmp_path / f"{name}.c").write_text(f"int {name}(int x) {{ return x + {len(name)}; }}\n")
    made = [f"{name}.o" for name in ("f0", "f1", "f_with_a_long_name")]
    subprocess.run(("cc", "-c", *(f"{each[:-2]}.c" for each in made)), cwd=tmp_path, check=True)
    subprocess.run(("ar", flags, "libf.a", *made), cwd=tmp_path, check=True)
    archive, folder = tmp_path / "libf.a", tmp_path / "padded"

    copies = write_padded_copies({}, {"libf.a": archive}, (folder, str(folder))).get("libf.a", ())

    assert len(copies) == (0 if "T" in flags else 7)
    places = set()
    for number, each in enumerate(copies):
        if "s" not in flags:
            subprocess.run(("ranlib", each), check=True)
        program = tmp_path / f"program{number}"
        subprocess.run(("cc", "-o", program, main, each), check=True)
        assert subprocess.run((program,), capture_output=True, check=True).stdout == b"28\n"
        places.add(_places(program, "f0", "f1", "f_with_a_long_name"))
    assert len(places) > 1 or not copies
