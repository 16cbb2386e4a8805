"""Twelve programs with hot code in objects, archives, shared libraries and crates, and their edits.

Sources come from Debian (apt) and crates.io (cargo). Each tree gets a makefile that builds
`program` (and `libown.so`), so that benches and `ensign run` build it alike.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from init_packages import crate
from material import text

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_MAKEFILE = "GNUmakefile"  # is taken before what the project calls Makefile
_CALL = "// a call that nobody makes"
_RULES = """\
MAKEFLAGS += -r
CC = gcc
CXX = g++
AR = ar
CFLAGS = -O2
CXXFLAGS = $(CFLAGS)
%.o: %.c
\t$(CC) $(CFLAGS) {flags} -w -c -o $@ $<
%.o: %.cc
\t$(CXX) $(CXXFLAGS) {flags} -w -c -o $@ $<
%.o: %.cpp
\t$(CXX) $(CXXFLAGS) {flags} -w -c -o $@ $<
libown.a: {library}
\trm -f $@
\t$(AR) rcs $@ $^
libown.so: {library}
\t$(CC) $(LDFLAGS) -shared -o $@ $^
"""


@dataclass(frozen=True)
class Program:
    """A program: `sources` of its own and of its `library` as globs, and what it is run on.

    `where` says where its hot code is: in objects, an archive, shared, or a crate (`package` is a
    crate with its version then, and `library` names crates, what others need first).
    """

    name: str
    package: str
    sources: tuple[str, ...]
    arguments: tuple[str, ...]
    library: tuple[str, ...] = ()
    where: str = "objects"
    flags: str = ""
    libraries: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    prepare: str = ""

    @property
    def language(self) -> str:
        """C, C++ or Rust."""
        return {".c": "C", ".rs": "Rust"}.get(Path(self.sources[0]).suffix, "C++")

    @property
    def made(self) -> tuple[str, ...]:
        """What a build makes and a run loads."""
        return ("program", "libown.so") if self.where == "shared" else ("program",)

    def sources_in(self, tree: Path) -> tuple[str, ...]:
        """Its own sources, in the order of globs and names."""
        return self._found(tree, self.sources)

    def library_in(self, tree: Path) -> tuple[str, ...]:
        """Those of its library."""
        crates = tuple(f"{each}/src/**/*.rs" for each in self.library)
        return self._found(tree, crates if self.where == "crate" else self.library)

    def _found(self, tree: Path, globs: Sequence[str]) -> tuple[str, ...]:
        found = (path for glob in globs for path in sorted(tree.glob(glob)))
        names = (str(path.relative_to(tree)) for path in found)
        return tuple(dict.fromkeys(each for each in names if each not in self.without))

    def link(self, tree: Path, made: str) -> tuple[str, ...]:
        """The call that links a file; of Rust as `KEEP` has written it down."""
        if self.where == "crate":
            return ("cc", *(tree / "kept/words").read_text().splitlines())
        if made == "libown.so":
            return ("gcc", "-shared", "-o", made, *_objects(self.library_in(tree)))
        driver = "g++" if self.language == "C++" else "gcc"
        return (driver, "-o", "program", *self._linked(tree, "$ORIGIN"))

    def _linked(self, tree: Path, origin: str) -> tuple[str, ...]:
        own = {"archive": ("libown.a",), "shared": ("libown.so", f"-Wl,-rpath,{origin}")}
        objects = _objects(self.sources_in(tree))
        return (*objects, *own.get(self.where, ()), *self.libraries)

    def makefile(self, tree: Path) -> str:
        """A makefile that builds it."""
        if self.where == "crate":
            return self._makefile_of_crates(tree)
        words = self._linked(tree, "'$$ORIGIN'")
        needed = " ".join(each for each in words if not each.startswith("-"))
        driver = "$(CXX)" if self.language == "C++" else "$(CC)"
        link = f"program: {needed}\n\t{driver} $(LDFLAGS) -o $@ {' '.join(words)}\n"
        flags = f"{self.flags} -fPIC" if self.where == "shared" else self.flags
        library = " ".join(_objects(self.library_in(tree)))
        return link + _RULES.format(flags=flags, library=library)

    def _makefile_of_crates(self, tree: Path) -> str:
        common = "rustc -O --edition 2021 --cap-lints allow -L ."
        features = "".join(f" --cfg 'feature=\"{each}\"'" for each in self.flags.split())
        rules, known, needed = [], "", "main.rs"
        for name in self.library:
            sources = " ".join(self._found(tree, (f"{name}/src/**/*.rs",)))
            words = f"--crate-name {name} --crate-type rlib{known} {name}/src/lib.rs"
            libraries = needed.removeprefix("main.rs")
            rules.append(f"lib{name}.rlib: {sources}{libraries}\n\t{common}{features} {words}\n")
            known, needed = f"{known} --extern {name}=lib{name}.rlib", f"{needed} lib{name}.rlib"
        words = f"$(RUSTFLAGS) --crate-name program -o program{known} main.rs"
        return "".join((f"program: {needed}\n\t{common} {words}\n", *rules))


def _objects(sources: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(Path(each).with_suffix(".o")) for each in sources)


_CALLED = """extern "C" { fn harmless_edit(x: u32) -> u32; }
    if std::env::args().len() > 77 { println!("{}", unsafe { harmless_edit(1) }); }"""
# A linker for rustc that keeps what is gone afterwards, and its own words.
KEEP = """#!/bin/sh
set -e
mkdir -p kept
: >kept/words
for word; do
    case $word in *.o) cp "$word" kept/; word=$PWD/kept/${word##*/};; esac
    printf '%s\\n' "$word" >>kept/words
done
exec cc "$@"
"""
_RUST = f"""USES
fn main() {{
    {_CALL}
    let data = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    WORK
}}
"""
_MINIZ = _RUST.replace("USES", "use miniz_oxide::deflate::compress_to_vec;").replace(
    "WORK", 'println!("{}", compress_to_vec(&data, 6).len());'
)
_REGEX = _RUST.replace("USES", "use regex_lite::Regex;").replace(
    "WORK",
    """let text = String::from_utf8(data).unwrap();
    for each in ["a[a-m]*e", "[ei]s+ "] {
        println!("{}", Regex::new(each).unwrap().find_iter(&text).count());
    }""",
)
_JSON = """#include <json/json.h>
#include <fstream>
#include <iostream>
int main(int, char **names) {
    std::ifstream in(names[1]);
    Json::Value root;
    in >> root;
    std::cout << Json::FastWriter().write(root).size() << std::endl;
}
"""
# Files of ours in the trees.
_ADDED = {
    "lua": {"src/lua5.4-deb-multiarch.h": '#define DEB_HOST_MULTIARCH ""'},
    "xmlwf": {"expat/lib/expat_config.h": ""},
    "jsoncpp": {"work.cpp": _JSON},
    "miniz": {"main.rs": _MINIZ},
    "regex": {"main.rs": _REGEX},
}
_LUA = """local words, n = {}, 0
for i = 1, 300000 do
  local w = "w" .. (i * 7919 % 5003)
  words[w] = (words[w] or 0) + i % 7
  n = n + #w
end
local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
local sorted = {}
for w, c in pairs(words) do sorted[#sorted + 1] = w .. c end
table.sort(sorted)
print(n, #sorted, fib(26))
"""
_AWK = """BEGIN {
    for (i = 1; i <= 800000; i++) {
        a[i % 100] += i
        if (i % 3 == 0) s += i * 2; else s -= i
    }
    print s
}
"""
_MAWK = "touch parse.c; ./configure; make -f Makefile scancode.c; rm -f makescan config.status *.o"

PROGRAMS = (
    Program("mawk", "mawk", ("*.c",), ("-f", "work.awk"), flags="-I. -DHAVE_CONFIG_H",
            libraries=("-lm",), prepare=_MAWK,
            without=("makescan.c", "rexp.c", "rexp0.c", "rexp1.c", "rexp2.c", "rexp3.c", "rexp4.c",
                     "rexpdb.c", "fpe_check.c", "regexp_system.c", "trace.c")),
    Program("zopfli", "zopfli", ("src/zopfli/*.c",), ("-c", "--i1", "small"), libraries=("-lm",)),
    Program("xmlwf", "expat", ("expat/xmlwf/codepage.c", "expat/xmlwf/unixfilemap.c",
                               "expat/xmlwf/xml[fw]*.c", "expat/lib/xml*.c"), ("text.xml",),
            flags="-Iexpat/lib -DXML_DEV_URANDOM -DXML_NS -DXML_DTD -DXML_CONTEXT_BYTES=1024"
                  " -DBYTEORDER=1234 -DHAVE_UNISTD_H",
            without=("expat/lib/xmltok_impl.c", "expat/lib/xmltok_ns.c")),
    Program("lua", "lua5.4", ("src/lua.c",), ("work.lua",), ("src/l*.c",), "archive",
            "-DLUA_COMPAT_5_3 -DLUA_USE_LINUX", ("-lm", "-ldl", "-Wl,-E"),
            ("src/luac.c",)),
    Program("bzip2", "bzip2", ("bzip2.c",), ("-c", "text"),
            ("blocksort.c", "huffman.c", "crctable.c", "randtable.c", "compress.c", "decompress.c",
             "bzlib.c"), "archive", "-D_FILE_OFFSET_BITS=64"),
    Program("minigzip", "zlib", ("test/minigzip.c",), ("-c", "large"), ("*.c",), "archive",
            "-DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE=1 -I.",
            without=("compress.c", "uncompr.c", "infback.c")),
    Program("lz4", "lz4", ("programs/*.c",), ("-q", "-9", "-c", "large"), ("lib/*.c",), "shared",
            "-Ilib -DXXH_NAMESPACE=LZ4_"),
    Program("brotli", "brotli", ("c/tools/brotli.c",), ("-q", "6", "-c", "large"),
            ("c/common/*.c", "c/dec/*.c", "c/enc/*.c"), "shared", "-Ic/include", ("-lm",)),
    Program("lzip", "lzip", ("*.cc",), ("-1", "-c", "text"), flags="-DPROGVERSION=__DATE__"),
    Program("jsoncpp", "libjsoncpp", ("work.cpp", "src/lib_json/*.cpp"), ("text.json",),
            flags="-Iinclude"),
    Program("miniz", "miniz_oxide 0.8.0", ("main.rs",), ("large",), ("adler2", "miniz_oxide"),
            "crate", "with-alloc"),
    Program("regex", "regex-lite 0.1.6", ("main.rs",), ("text",), ("regex_lite",), "crate",
            "std string"),
)  # fmt: skip
_CRATES = {"adler2": ("adler2", "2.0.0"), "miniz_oxide": ("miniz_oxide", "0.8.0"),
           "regex_lite": ("regex-lite", "0.1.6")}  # fmt: skip


def write_inputs(folder: Path) -> None:
    """What programs read; the same bytes each time."""
    if (folder / "text").exists():
        return
    folder.mkdir(parents=True)
    words = text(4_000_000).decode().split()
    lines = [" ".join(words[at : at + 9]) for at in range(0, len(words), 9)]
    rows = [{"id": i, "words": line.split()} for i, line in enumerate(lines[:12_000])]
    elements = [f'<row id="{i}"><w a="1">{line}</w></row>' for i, line in enumerate(lines)]
    (folder / "text.json").write_text(json.dumps(rows))
    (folder / "text.xml").write_text("\n".join(("<all>", *elements, *elements, "</all>")))
    (folder / "work.lua").write_text(_LUA)
    (folder / "work.awk").write_text(_AWK)
    (folder / "small").write_text("\n".join(lines[:1_500]))
    (folder / "large").write_text("\n".join(lines[:40_000]))
    (folder / "text").write_text("\n".join(lines[:20_000]))


def command(program: Program, made: Path, inputs: Path) -> tuple[str, ...]:
    """How it is run on its input."""
    words = (str(inputs / each) if "." in each or each in ("large", "small", "text") else each
             for each in program.arguments)  # fmt: skip
    return (str(made / "program"), *words)


def prepared(folder: Path, program: Program) -> Path:
    """Its tree with our makefile, not built."""
    tree = folder / "trees" / program.name
    if tree.exists():
        return tree
    part = tree.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    if program.where == "crate":
        part.mkdir(parents=True)
        for name in program.library:
            package, version = _CRATES[name]
            shutil.copytree(crate(package, f"{version}-1", folder), part / name)
            for path in (part / name / "src").rglob("*.rs"):  # an edit has #[no_mangle]
                path.write_text(
                    path.read_text().replace("forbid(unsafe_code)", "allow(unsafe_code)")
                )
    else:
        shutil.copytree(_fetched(folder / "sources", program.package), part)
    for name, content in _ADDED.get(program.name, {}).items():
        (part / name).write_text(content)
    if program.prepare:
        run(("sh", "-e", "-c", program.prepare), part)
    (part / _MAKEFILE).write_text(program.makefile(part))
    if program.where == "crate":
        (part / "Cargo.toml").write_text(_cargo_toml(program))
        run(("cargo", "generate-lockfile", "--offline"), part)
    part.rename(tree)
    return tree


def _cargo_toml(program: Program) -> str:
    """The same as the makefile for Cargo, whose builds ensign can relink."""
    *others, own = program.library
    name, features = _CRATES[own][0], json.dumps(program.flags.split())
    patches = "".join(f'{_CRATES[each][0]} = {{ path = "{each}" }}\n' for each in others)
    return (
        '[package]\nname = "program"\nversion = "1.0.0"\nedition = "2021"\n\n'
        '[[bin]]\nname = "program"\npath = "main.rs"\n\n[dependencies]\n'
        f'{name} = {{ path = "{own}", default-features = false, features = {features} }}\n\n'
        f"[patch.crates-io]\n{patches}\n[workspace]\nexclude = {json.dumps(program.library)}\n"
    )


def _fetched(folder: Path, package: str) -> Path:
    """A Debian source package, by an apt of our own, whose lists are fetched once."""
    lists, found = folder / "lists", folder / "list"
    apt = ("apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={found}",
           "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={lists}")  # fmt: skip
    if not found.exists():
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        found.write_text(f"deb-src [signed-by={_KEYS}] http://deb.debian.org/debian bookworm main")
        run((*apt, "update"), folder)
    if not any(folder.glob(f"{package}-*/")):
        run((*apt, "source", package), folder)
    return next(folder.glob(f"{package}-*/"))


def run(argv: Sequence[str], folder: Path) -> None:
    """Run a command quietly; what it said is told where it fails."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr[-2000:]}")


def edit(program: Program, tree: Path, number: int) -> str:
    """A function and data that nobody uses, of random sizes, in a file that is returned."""
    rng = random.Random(f"{program.name} {number}")
    rust = program.where == "crate"
    name = rng.choice((*program.sources_in(tree), *program.library_in(tree)))
    code = _rust_edit(rng) if rust else _c_edit(rng)
    path = tree / name
    before = path.read_text(errors="surrogateescape")
    # Attributes of a crate come first in its file.
    after = code + before if not rust and rng.random() < 1 / 2 else f"{before}\n{code}"
    path.write_text(after, errors="surrogateescape")
    if rust:
        main = tree / "main.rs"
        main.write_text(main.read_text().replace(_CALL, _CALLED))
    return name


def _size(rng: random.Random, least: int, most: int) -> int:
    """A size whose logarithm is uniform."""
    return round(math.exp(rng.uniform(math.log(least), math.log(most))))


def _steps(rng: random.Random, pattern: str) -> str:
    return "\n".join(
        pattern.format(rng.randrange(2**31), rng.randrange(2**30) * 2 + 1, rng.randint(1, 30))
        for _ in range(_size(rng, 1, 300))
    )


def _c_edit(rng: random.Random) -> str:
    # Static, because lz4.c is part of two objects.
    kind, value = rng.choice((("const", 1), ("", 1), ("", 0)))
    used = "static __attribute__((used))"
    steps = _steps(rng, "    x = (x ^ {}u) * {}u; x ^= x >> {};")
    return (
        f"{used} {kind} unsigned char harmless_data[{_size(rng, 1, 8192)}] = {{{value}}};\n"
        f"{used} unsigned harmless_edit(unsigned x) {{\n{steps}\n    return x;\n}}\n"
    )


def _rust_edit(rng: random.Random) -> str:
    size = _size(rng, 1, 8192)
    steps = _steps(rng, "    x = (x ^ {}).wrapping_mul({}); x ^= x >> {};")
    return (
        f"static HARMLESS: [u8; {size}] = [1; {size}];\n/// Not called.\n#[no_mangle]\n"
        f'pub extern "C" fn harmless_edit(mut x: u32) -> u32 {{\n{steps}\n'
        f"    x ^ u32::from(HARMLESS[x as usize % {size}])\n}}\n"
    )
