"""Small projects of each build system, right ones and those that are wrong in one way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SOURCES = {
    "main.c": """\
#include <stdio.h>
int part(int);
int other(int);
int shared(int);

int main(int argc, char **argv)
{
    (void)argv;
    printf("%d %d %d\\n", part(argc), other(argc), shared(argc));
    return 0;
}
""",
    "part.c": """\
int part(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += i * x;
    return sum;
}
""",
    "other.c": "int other(int x)\n{\n    return x * 3 + 1;\n}\n",
    "spare.c": "int spare(int x)\n{\n    return x * 7;\n}\n",
    "shared.c": "int shared(int x)\n{\n    return x * 5 + 2;\n}\n",
}

_CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(planted C)
{before}
add_library(other STATIC other.c)
add_library(spare STATIC spare.c)
add_library(shared SHARED shared.c)
add_executable(program main.c part.c)
target_link_libraries(program other shared {more})
"""
CMAKE = {
    "right": {},
    "lto-lost": {
        "before": "add_compile_options(-ffat-lto-objects)\n"
        'set(CMAKE_C_LINK_EXECUTABLE "<CMAKE_C_COMPILER> -fno-lto <OBJECTS> -o <TARGET> '
        '<LINK_LIBRARIES>")'
    },
    "level": {"before": "add_compile_options(-O1)"},
    "profile": {"before": "add_compile_options(-fprofile-use -Wmissing-profile)"},
    "archive": {"more": "spare"},
}

_MESON = """\
project('planted', 'c', default_options: ['buildtype=release', 'b_lto=true'])
args = [{arguments}]
other = static_library('other', 'other.c', c_args: args)
spare = static_library('spare', 'spare.c', c_args: args)
shared = shared_library('shared', 'shared.c', c_args: args)
executable('program', 'main.c', 'part.c', c_args: args, link_args: [{link}],
    link_with: [other, shared{more}])
"""
MESON = {
    "right": {},
    "lto-lost": {"arguments": "'-ffat-lto-objects'", "link": "'-fno-lto'"},
    "level": {"arguments": "'-O1'"},
    "profile": {"arguments": "'-fprofile-use', '-Wmissing-profile'"},
    "archive": {"more": ", spare"},
}

_CONFIGURE = """\
AC_INIT([planted], [1])
AC_CONFIG_SRCDIR([main.c])
AC_PROG_CC
AC_PROG_RANLIB
AC_CHECK_TOOL([AR], [ar])
{before}
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
"""
_MAKEFILE_IN = """\
VPATH = @srcdir@
program: main.o part.o libother.a libspare.a libshared.so
	@CC@ {link} -o $@ main.o part.o libother.a {more} libshared.so -Wl,-rpath,`pwd`
libother.a: other.o
	@AR@ rcs $@ other.o
libspare.a: spare.o
	@AR@ rcs $@ spare.o
libshared.so: shared.c
	@CC@ @CFLAGS@ @LDFLAGS@ -fPIC -shared -Wl,-soname,libshared.so -o $@ @srcdir@/shared.c
.c.o:
	@CC@ @CFLAGS@ -c -o $@ $<
"""
AUTOTOOLS = {
    "right": {},
    "lto-lost": {"before": 'CFLAGS="$CFLAGS -ffat-lto-objects"', "link": "-fno-lto"},
    "level": {"before": 'CFLAGS="$CFLAGS -O1"'},
    "profile": {"before": 'CFLAGS="$CFLAGS -fprofile-use -Wmissing-profile"'},
    "archive": {"more": "libspare.a"},
}
_LIBTOOL = {
    "configure.ac": """\
AC_INIT([planted], [1])
AM_INIT_AUTOMAKE([foreign])
AC_CONFIG_SRCDIR([main.c])
AC_PROG_CC
AM_PROG_AR
LT_INIT([disable-static])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
""",
    "Makefile.am": """\
lib_LTLIBRARIES = libshared.la
libshared_la_SOURCES = shared.c
bin_PROGRAMS = program
program_SOURCES = main.c part.c other.c
program_LDADD = libshared.la
""",
}


def _files(system: str, more: Mapping[str, str]) -> dict[str, str]:
    texts = {"before": "", "more": "", "arguments": "", "link": "", **more}
    match system:
        case "cmake":
            return {"CMakeLists.txt": _CMAKE.format(**texts)}
        case "meson":
            return {"meson.build": _MESON.format(**texts)}
        case "libtool":
            return _LIBTOOL
    texts["link"] = texts["link"] or "@CFLAGS@ @LDFLAGS@"
    return {
        "configure.ac": _CONFIGURE.format(**texts),
        "Makefile.in": _MAKEFILE_IN.format(**texts),
    }


FAULTS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "cmake": CMAKE,
    "meson": MESON,
    "autotools": AUTOTOOLS,
}


def plant(folder: Path, system: str, fault: str = "right") -> None:
    """Write a project of this system (or `libtool`) into a new folder."""
    folder.mkdir()
    more = FAULTS.get(system, {}).get(fault, {})
    for name, text in {**SOURCES, **_files(system, more)}.items():
        (folder / name).write_text(text)
