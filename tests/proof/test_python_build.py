"""Options of a Python interpreter, read from what its installation says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.proof.python_build import python_options
from ensign.proof.visible_code import VisibleBuild, differences

TEXT = """# generated
build_time_vars = {
    'CONFIG_ARGS': "'--enable-shared' '--prefix=/usr' '--with-lto=full' 'CC=gcc -x'",
    'HAVE_X': 1,
    'PY_CFLAGS': '-Wall -DNDEBUG -g -O2 -fno-semantic-interposition -ffile-prefix-map=/a=.',
    'PY_LDFLAGS': '-Wl,-z,relro -Wl,-Bsymbolic-functions -flto',
}
"""


def installed(folder: Path, text: str = TEXT) -> Path:
    library = folder / "lib/python3.12"
    library.mkdir(parents=True)
    (library / "_sysconfigdata__x86_64-linux-gnu.py").write_text(text)
    return folder / "bin/python3.12"


def test_options_that_change_code_are_told_without_running_it(tmp_path: Path) -> None:
    assert python_options(installed(tmp_path)) == {
        "configured": {"--enable-shared", "--with-lto=full"},
        "compiled": {"-DNDEBUG", "-O2", "-fno-semantic-interposition"},
        "linked": {"-Wl,-Bsymbolic-functions", "-flto"},
    }
    library = tmp_path / "lib/x86_64-linux-gnu/libpython3.12.so.1.0"
    assert python_options(tmp_path / "lib/libpython3.12.so.1.0") == python_options(library)


@pytest.mark.parametrize(
    "text", ["", "build_time_vars = {", "build_time_vars = [1]", "x = 1", "\0"]
)
def test_what_tells_nothing_is_no_interpreter(tmp_path: Path, text: str) -> None:
    assert python_options(installed(tmp_path, text)) == {}
    assert python_options(tmp_path / "bin/python3.11") == {}
    assert python_options(tmp_path / "bin/perl") == {}


def test_options_of_two_interpreters_are_compared() -> None:
    first, other = (
        VisibleBuild({}, frozenset(), 1, {}, {"compiled": frozenset(words), "linked": frozenset()})
        for words in (["-O2", "-fwrapv"], ["-O3", "-fwrapv"])
    )
    assert list(differences(first, other)) == ["Python compiled with -O3, without -O2"]
    assert not [*differences(first, VisibleBuild({}, frozenset(), 1))]
