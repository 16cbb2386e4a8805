"""Whether `ensign doctor` sees in stripped bytes that code is not optimized, and nothing else.

    python bench/unoptimized.py FOLDER            builds into FOLDER (20 minutes), then looks
    python bench/unoptimized.py FOLDER --look     looks again at what was built

Results: bench/results/unoptimized.md. FOLDER gets root directories of Debian 11 and 12 with their
compilers (mmdebstrap, bwrap), the sources of Debian's packages, and the binaries. `tuned` are
programs by which the limits of `proof/unoptimized.py` were chosen; the others were held out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ensign.proof.unoptimized import read_unoptimized

_RESULTS = Path(__file__).parent / "results/unoptimized.md"
_EACH = 7
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_ROOTS = {
    "bullseye": ("gcc-9", "gcc-10"),
    "bookworm": ("gcc-11", "gcc-12", "clang-14", "clang-16", "clang-19"),
}
_LEVELS = ("-O0", "-Og", "-O1", "-O2", "-O3", "-Os")
_RUST_LEVELS = {"-O0": "0", "-O1": "1", "-O2": "2", "-O3": "3", "-Os": "s"}
# Ways that make optimized code look like the other kind, or the other way round.
_WAYS = {
    "plain": (_LEVELS, ()),
    "frame pointers": (("-Og", "-O1", "-O2", "-Os"), ("-fno-omit-frame-pointer",)),
    "no frame pointers": (("-O0",), ("-fomit-frame-pointer",)),
    "sanitizer": (("-O0", "-O1", "-O2"), ("-fsanitize=address,undefined",)),
    "hardened": (("-O0", "-O2"), ("-fstack-protector-all", "-fcf-protection", "-fPIE", "-pie",
                                  "-fstack-clash-protection")),
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A program of one of Debian's packages: its sources by globs, and what they need."""

    package: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tuned: bool = False

    @property
    def cpp(self) -> bool:
        """Whether it is C++."""
        return not self.sources[0].endswith(".c")


PROGRAMS = {
    "zlib": Program("zlib", ("*.c", "test/minigzip.c"), ("-DHAVE_UNISTD_H", "-I."), tuned=True),
    "tinyxml2": Program("tinyxml2", ("tinyxml2.cpp", "xmltest.cpp"), tuned=True),
    "bzip2": Program(
        "bzip2",
        ("*.c",),
        without=("bzip2recover.c", "unzcrash.c", "spewG.c", "mk251.c", "dlltest.c"),
    ),
    "lz4": Program("lz4", ("lib/*.c", "programs/*.c"), ("-Ilib", "-DXXH_NAMESPACE=LZ4_")),
    "jsoncpp": Program(
        "libjsoncpp", ("src/lib_json/*.cpp", "src/jsontestrunner/main.cpp"), ("-Iinclude",)
    ),
}
_METER = Path(__file__).parents[1] / "meter"
_WORDS = """
use std::collections::BTreeMap;
use std::io::{self, BufRead};
#[derive(Debug, Clone, Default)]
struct Count { words: usize, letters: usize, longest: String }
impl Count {
    fn add(&mut self, word: &str) {
        self.words += 1;
        self.letters += word.chars().count();
        if word.len() > self.longest.len() { self.longest = word.to_string(); }
    }
}
fn main() {
    let mut found: BTreeMap<char, Count> = BTreeMap::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        for word in line.split_whitespace() {
            let first = word.chars().next().map(|c| c.to_ascii_lowercase());
            if let Some(first) = first { found.entry(first).or_default().add(word); }
        }
    }
    let mut all: Vec<_> = found.into_iter().collect();
    all.sort_by(|a, b| b.1.words.cmp(&a.1.words));
    for (first, count) in &all { println!("{first}: {count:?}"); }
}
"""


@dataclass(frozen=True)
class Built:
    """A binary; `unoptimized` is `all`, `part` or empty."""

    program: str
    compiler: str
    level: str
    way: str
    unoptimized: str
    path: Path


def main() -> int:
    """Build, look, write the results; 0 where nothing was called wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--look", action="store_true")
    asked = parser.parse_args()
    folder = asked.folder.absolute()
    if not asked.look:
        prepare(folder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = [each for each in pool.map(lambda one: make(folder, one), plan(folder)) if each]
    text, wrong = looked_at(built, libraries())
    _RESULTS.write_text(text)
    print(text)
    return 1 if wrong else 0


def prepare(folder: Path) -> None:
    """Root directories and sources, where they are missing."""
    folder.mkdir(exist_ok=True)
    for release, compilers in _ROOTS.items():
        wanted = [*compilers, *(name.replace("gcc", "g++") for name in compilers if "gcc" in name)]
        if not (folder / release).exists():
            words = ("mmdebstrap", "--variant=minbase", f"--include={','.join(wanted)},libc6-dev")
            subprocess.run([*words, release, folder / release], check=True)
    lists = folder / "src/lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    found = f"deb-src [signed-by={_KEYS}] http://deb.debian.org/debian bookworm main\n"
    (folder / "src/list").write_text(found)
    apt = ["apt-get", "-o", f"Dir::Etc::sourcelist={folder}/src/list",
           "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={lists}"]  # fmt: skip
    subprocess.run([*apt, "update"], check=True)
    for each in PROGRAMS.values():
        if not any((folder / "src").glob(f"{each.package}-*/")):
            subprocess.run([*apt, "source", each.package], cwd=folder / "src", check=True)


def plan(folder: Path) -> Iterator[Built]:
    """All combinations."""
    (folder / "built").mkdir(exist_ok=True)
    compilers = [name for names in _ROOTS.values() for name in names]
    for name, compiler, (way, (levels, _)) in itertools.product(PROGRAMS, compilers, _WAYS.items()):
        for level in levels:
            path = folder / "built" / f"{name}{level}-{compiler}-{way.replace(' ', '-')}"
            yield Built(name, compiler, level, way, "all" if level == "-O0" else "", path)
        if way == "plain":
            path = folder / "built" / f"{name}-{compiler}-mixed"
            yield Built(name, compiler, "-O2", "one object at -O0", "part", path)
    rust = [("words", level) for level in _RUST_LEVELS] + [("meter", "-O0"), ("meter", "-O3")]
    for name, level in rust:
        path = folder / "built" / f"{name}{level}-rustc"
        # Of a Rust program the standard library is optimized in any case.
        yield Built(name, "rustc", level, "plain", "part" if level == "-O0" else "", path)


def make(folder: Path, wanted: Built) -> Built | None:
    """Compile it, where it is missing; None where it cannot be built."""
    if wanted.path.exists():
        return wanted
    done = _make_rust(wanted) if wanted.compiler == "rustc" else _make_c(folder, wanted)
    if done.returncode or not wanted.path.exists():
        print(f"{wanted.path.name}: {done.stderr[-300:]}", file=sys.stderr)
        return None
    return wanted


def _make_c(folder: Path, wanted: Built) -> subprocess.CompletedProcess[str]:
    program = PROGRAMS[wanted.program]
    root = next(name for name, compilers in _ROOTS.items() if wanted.compiler in compilers)
    source = next((folder / "src").glob(f"{program.package}-*/"))
    sources = [
        path
        for glob in program.sources
        for path in sorted(source.glob(glob))
        if path.name not in program.without
    ]
    _, words = _WAYS.get(wanted.way, ((), ()))
    driver = wanted.compiler
    if program.cpp:
        driver = driver.replace("gcc", "g++").replace("clang", "clang++")
    objects = f"/built/{wanted.path.name}.d"
    lines = [f"mkdir -p {objects}"]
    by_size = sorted(sources, key=lambda path: path.stat().st_size)
    one = by_size[len(by_size) // 2]
    for path in sources:
        level = "-O0" if wanted.unoptimized == "part" and path == one else wanted.level
        flags = " ".join((level, "-w", *words, *program.flags))
        to = f"{objects}/{path.stem}{path.parent.name}.o"
        lines.append(f"{driver} {flags} -c {path.relative_to(source)} -o {to}")
    link = " ".join((*words, *program.libraries))
    lines.append(f"{driver} -s {objects}/*.o -o /built/{wanted.path.name} {link}")
    lines.append(f"rm -r {objects}")
    argv = ["bwrap", "--bind", str(folder / root), "/", "--dev", "/dev", "--proc", "/proc",
            "--ro-bind", str(folder / "src"), "/src", "--bind", str(folder / "built"), "/built",
            "--chdir", f"/src/{source.name}", "sh", "-e", "-c", "\n".join(lines)]  # fmt: skip
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _make_rust(wanted: Built) -> subprocess.CompletedProcess[str]:
    if wanted.program == "words":
        words = (f"-Copt-level={_RUST_LEVELS[wanted.level]}", "-Cstrip=symbols", "--edition=2021")
        argv = ["rustc", "-", "-o", str(wanted.path), *words]
        return subprocess.run(argv, input=_WORDS, capture_output=True, text=True, check=False)
    target = wanted.path.with_suffix(".d")
    release = wanted.level != "-O0"
    argv = ["cargo", "build", "--locked", *(["--release"] if release else [])]
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(argv, cwd=_METER, env=env, capture_output=True, text=True, check=False)
    if not done.returncode:
        made = target / ("release" if release else "debug") / "ensign-meter"
        subprocess.run(["strip", made, "-o", wanted.path], check=True)
        shutil.rmtree(target)
    return done


def libraries() -> list[Path]:
    """Each seventh of the system's libraries."""
    folder = Path("/usr/lib/x86_64-linux-gnu")
    found = dict.fromkeys(path.resolve() for path in sorted(folder.rglob("*.so*")))
    return [each for each in found if each.is_file()][::_EACH]


@dataclass(frozen=True)
class Looked:
    """What was said of a file, and how long that took."""

    said: str
    seconds: float


def look(path: Path) -> Looked:
    """As `ensign doctor` does."""
    start = time.process_time()
    found = read_unoptimized(path)
    said = "" if not found else "all" if found.whole else "part"
    return Looked(said, time.process_time() - start)


def looked_at(built: list[Built], there: list[Path]) -> tuple[str, int]:
    """The table, and how many were called wrongly."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        mine = list(pool.map(look, [each.path for each in built], chunksize=8))
        theirs = list(pool.map(look, there, chunksize=8))
    rows, wrong = [], 0
    for tuned in (True, False):
        for kind, group in _groups(built, mine, tuned=tuned):
            bad = [each for each in group if each[0].unoptimized]
            called = sum(bool(each[1].said) for each in bad)
            other = [
                each[0].path.name for each in group if not each[0].unoptimized and each[1].said
            ]
            wrong += len(other)
            whole = sum(each[1].said == "all" for each in bad)
            of = "tuned" if tuned else "held out"
            good = len(group) - len(bad)
            rows.append(
                f"| {of} | {kind} | {called} of {len(bad)} | {whole} | {len(other)} of {good} |"
            )
    called_there = [
        f"- {path.name}: {each.said}" for path, each in zip(there, theirs, strict=True) if each.said
    ]
    slowest = max(each.seconds for each in (*mine, *theirs))
    text = "\n".join((
        "# Unoptimized code by its bytes", "",
        "Made by `python bench/unoptimized.py`. All files are stripped.", "",
        "| programs | compilers, ways | unoptimized: seen | of these, whole | others: called |",
        "| --- | --- | --- | --- | --- |", *rows, "",
        f"{len(there)} libraries of the system, {len(called_there)} of them called so:", "",
        *called_there, "", f"The slowest took {slowest:.1f} s of CPU time.", "",
    ))  # fmt: skip
    return text, wrong


def _groups(
    built: list[Built], looks: list[Looked], *, tuned: bool
) -> Iterator[tuple[str, list[tuple[Built, Looked]]]]:
    pairs = zip(built, looks, strict=True)
    found: dict[str, list[tuple[Built, Looked]]] = {}
    for each in pairs:
        program = PROGRAMS.get(each[0].program)
        if (program is not None and program.tuned) == tuned:
            found.setdefault(f"{each[0].compiler.partition('-')[0]}, {each[0].way}", []).append(
                each
            )
    yield from found.items()


if __name__ == "__main__":
    sys.exit(main())
