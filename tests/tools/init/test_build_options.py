"""Options with which a build makes programs, from the files that name them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ensign.tools.init import build_options

RULES = """\
override_dh_auto_configure:
\t# dh_auto_configure -- -DNOT_THIS=ON
\tdh_auto_configure --buildsystem=cmake -- \\
\t\t-DBUILD_PACK=ON \\
\t\t-DCMAKE_BUILD_TYPE=Release -DUSE_LTO=1 -DLIB=$(MULTIARCH) \\
\t\t-DLEVEL=3
"""


def test_a_package_says_what_it_is_configured_with() -> None:
    assert build_options.of_debian_rules(RULES, "cmake") == ("-DBUILD_PACK=ON", "-DLEVEL=3")
    rules = "x:\n\tdh_auto_configure -- --enable-static CFLAGS=-O3 --with-x=$(Y)\n"
    assert build_options.of_debian_rules(rules, "autotools") == ("--enable-static",)
    assert build_options.of_debian_rules("x:\n\tdh_auto_configure -- 'open\n", "cmake") == ()


def test_switches_of_cmake_that_make_programs_are_turned_on() -> None:
    cache = "BUILD_TOOLS:BOOL=OFF\nWITH_ZLIB:BOOL=OFF\nX_BENCH:BOOL=ON\nBUILD_DEMO:BOOL=off\n"
    more = "INSTALL_TOOLS:BOOL=OFF\nTOOLS:STRING=OFF\n"
    assert build_options.of_cmake_cache(cache + more) == ("-DBUILD_TOOLS=ON", "-DBUILD_DEMO=ON")


def test_options_of_meson_that_make_programs_are_turned_on() -> None:
    text = b"""[{"name": "tools", "section": "user", "type": "boolean", "value": false},
        {"name": "examples", "section": "user", "value": "disabled"},
        {"name": "docs", "section": "user", "value": false}, 3,
        {"name": "test x", "section": "user", "value": false},
        {"name": "install_tools", "section": "core", "value": false}]"""
    assert build_options.of_meson(text) == ("-Dtools=true", "-Dexamples=enabled")
    assert build_options.of_meson(b"{}") == ()


def test_features_that_programs_of_a_crate_need_are_asked_for() -> None:
    text = '[[bin]]\nname = "x"\nrequired-features = ["cli", "a b"]\n[[bin]]\nname = "y"\n'
    assert build_options.of_cargo(text) == ("--features", "cli")
    assert build_options.of_cargo("[package]\n") == ()


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    build_options.of_debian_rules(f"dh_auto_configure -- {text}", "meson")
    build_options.of_cmake_cache(text)
    build_options.of_meson(text.encode())
    build_options.of_cargo(text)
