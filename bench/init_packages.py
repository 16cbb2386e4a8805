"""Choose the Debian source packages that `ensign init` is tried on, by a rule made beforehand.

    bench/init_packages.py FOLDER     # apt's lists, archives and trees go there; prints the list

A source package of Debian 12 (main) is a candidate if all of this holds:

1. One of its binary packages is a program of files: in a section of SECTIONS, no library,
   documentation or data by its name, its summary has a word of WORK, and it depends on libc6 and
   otherwise on libraries of LIBRARIES (or its own source) alone: no screen, no network, no device.
2. Its files have at most 3 MB together, and at most 8 build dependencies besides those of HELPERS.
3. It was not tried before the rule was written: not in TRIED.

Candidates are taken in the order of the SHA-256 of their names. Each is unpacked as
`apt-get source` does, with Debian's patches; a Rust package is the crate of that version as Cargo
fetches it, because Debian's patches replace the versions of its Cargo.lock, of which there must be
one with at most 60 crates. A package counts for the build system that ensign recognizes first in
its top folder. What a mirror lists and does not have is passed over. The first four of each build
system are the list.

Where that gives fewer than four of one (few programs are built by Meson), candidates of that one
follow, in the same order, whose program may have any summary, also a section of MORE_SECTIONS, and
depend on any library that is not of SCREEN; at most 12 build dependencies and 10 MB.

The list of 2026-11, from which nothing was dropped or exchanged, is bench/init_packages.tsv.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from ensign.builders.systems.registry import listing_of, recognize

SECTIONS = ("utils", "text", "science", "math", "graphics", "sound", "video", "electronics",
            "interpreters", "devel", "database", "misc", "rust")  # fmt: skip
NO_PROGRAM = re.compile(
    r"^lib(?!\S*-(bin|tools|utils)$)|-(dev|doc|data|dbg|common)$|^(python|ruby)"
)
WORK = re.compile(
    r"compress|convert|encod|decod|pars(e|ing)|format|interpret|compil|comput|calculat|simulat|solv"
    r"|analy[sz]|search|grep|sort|align|optimi[sz]|render|checksum|hash|count|extract|diff|generat"
    r"|codec|syntax|manipulat|process|transform|translat",
    re.IGNORECASE,
)
LIBRARIES = re.compile(
    r"^(libc6|libgcc-s1|libstdc\+\+6|zlib1g|libbz2-1\.0|liblzma5|libzstd1|liblz4-1|libpcre.*"
    r"|libglib2\.0-0|libpng16-16|libjpeg62-turbo|libtiff6|libgmp10|libmpfr6|libxml2|libexpat1"
    r"|libsndfile1|libgomp1|libfmt9|libsqlite3-0|libselinux1|libacl1)$"
)
MORE_SECTIONS = ("libs", "libdevel")
SCREEN = re.compile(
    r"gtk|qt|x11|xcb|wayland|libgl|egl|drm|dbus|pulse|jack|asound|libnl|usb|systemd|udev|init-system"
    r"|lsb-base|curl|soup|gstreamer|curses|tinfo|fuse|ssh|sdl|notify|dconf|gsettings|python|perl|mpd"
    r"|libssl|gnutls|libpci|elogind|polkit|adduser|pipewire|libnm|vulkan|cairo|clutter|imagemagick|elementary"
)
HELPERS = re.compile(r"^(debhelper|debhelper-compat|dh-.*|cmake|meson|ninja-build|cargo|rustc"
                     r"|autotools-dev|autoconf|automake|libtool|pkg-config|pkgconf"
                     r"|librust-.*|libstd-rust-dev)$")  # fmt: skip
TRIED = frozenset(("zopfli", "bzip2", "brotli", "gzip", "zstd", "libzstd", "lz4", "xz-utils",
                   "rust-hexyl", "redis", "sqlite3", "lua5.1"))  # fmt: skip
SYSTEMS = ("cmake", "autotools", "meson", "make", "cargo")
EACH = 4
MOST_BYTES, MORE_BYTES = 3_000_000, 10_000_000
MOST_DEPENDENCIES, MORE_DEPENDENCIES = 8, 12
MOST_CRATES = 60

Stanza = Mapping[str, str]


def stanzas(text: str) -> Iterator[Stanza]:
    """Paragraphs of `Name: value`; continuation lines belong to the value."""
    for paragraph in text.split("\n\n"):
        fields = re.split(r"^([\w-]+):[ \t]*", paragraph, flags=re.MULTILINE)
        if fields[1:]:
            yield dict(zip(fields[1::2], (each.strip() for each in fields[2::2]), strict=True))


def names(dependencies: str) -> set[str]:
    """The first package of each dependency."""
    split = (re.split(r"[\s(\[:<|]", each.strip())[0] for each in dependencies.split(","))
    return {each for each in split if each}


def is_program(binary: Stanza, own: set[str], *, loose: bool) -> bool:
    """Part 1 of the rule, of one binary package."""
    needed = names(binary.get("Depends", ""))
    if loose:
        return (
            binary.get("Section", "") in (*SECTIONS, *MORE_SECTIONS)
            and not NO_PROGRAM.search(binary["Package"])
            and "libc6" in needed
            and not any(SCREEN.search(each) for each in needed)
        )
    return (
        binary.get("Section", "") in SECTIONS
        and not NO_PROGRAM.search(binary["Package"])
        and WORK.search(binary.get("Description", "").split("\n")[0]) is not None
        and "libc6" in needed
        and all(LIBRARIES.search(each) or each in own for each in needed)
    )


def candidates(sources: str, packages: str, *, loose: bool = False) -> list[Stanza]:
    """All of them, in the order in which they are taken."""
    most_bytes = MORE_BYTES if loose else MOST_BYTES
    most_dependencies = MORE_DEPENDENCIES if loose else MOST_DEPENDENCIES
    binaries: dict[str, list[Stanza]] = defaultdict(list)
    for binary in stanzas(packages):
        binaries[binary.get("Source", binary["Package"]).split()[0]].append(binary)
    found: dict[str, Stanza] = {}
    for source in stanzas(sources):
        name = source["Package"]
        own = {each["Package"] for each in binaries[name]}
        needed = names(source.get("Build-Depends", "")) | names(
            source.get("Build-Depends-Arch", "")
        )
        size = sum(int(line.split()[1]) for line in source["Files"].splitlines() if line.strip())
        if (
            name not in TRIED
            and size <= most_bytes
            and sum(not HELPERS.search(each) for each in needed) <= most_dependencies
            and any(is_program(each, own, loose=loose) for each in binaries[name])
        ):
            found[name] = source
    return [
        found[name]
        for name in sorted(found, key=lambda each: hashlib.sha256(each.encode()).hexdigest())
    ]


def hint(source: Stanza) -> str:
    """The system that the build dependencies ask for; empty where it is not said."""
    needed = names(source.get("Build-Depends", ""))
    asked = {"cmake": "cmake", "meson": "meson", "cargo": "cargo", "dh-cargo": "cargo"}
    return next((system for package, system in asked.items() if package in needed), "")


def unpacked(source: Stanza, folder: Path) -> Path:
    """Its tree."""
    name = source["Package"]
    place = folder / "trees" / name
    if not place.exists() and hint(source) == "cargo":
        shutil.copytree(crate(name.removeprefix("rust-"), source["Version"], folder), place)
    if not place.exists():
        fetched = folder / "archives" / name
        fetched.mkdir(parents=True, exist_ok=True)
        wanted = f"{name}={source['Version']}"
        getting = ["apt-get", "-qq", "source", "--download-only", wanted]
        subprocess.run(getting, cwd=fetched, check=True)
        described = next(fetched.glob("*.dsc"))
        place.parent.mkdir(exist_ok=True)
        subprocess.run(["dpkg-source", "--no-check", "-x", str(described), str(place)],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return place


def crate(name: str, version: str, folder: Path) -> Path:
    """A crate of the upstream version of a package, as Cargo fetches it."""
    upstream = version.partition(":")[2] or version
    upstream = re.sub(r"[+~].*$", "", upstream.rpartition("-")[0])
    asking = folder / "archives" / name
    (asking / "src").mkdir(parents=True, exist_ok=True)
    (asking / "src/lib.rs").touch()
    package = '[package]\nname = "asking"\nversion = "1.0.0"\n'
    (asking / "Cargo.toml").write_text(f'{package}[dependencies]\n{name} = "={upstream}"\n')
    home = folder / "cargo"
    subprocess.run(["cargo", "fetch", "--quiet"], cwd=asking, check=True,
                   env={**os.environ, "CARGO_HOME": str(home)})  # fmt: skip
    return next((home / "registry/src").glob(f"*/{name}-{upstream}"))


def recognized(tree: Path) -> str:
    """What ensign takes it for; empty where it is none that counts."""
    system = next((each.system for each in recognize(listing_of(tree))), "")
    if system == "cargo":
        lock = tree / "Cargo.lock"
        count = lock.read_text().count("[[package]]") if lock.exists() else MOST_CRATES + 1
        return system if count <= MOST_CRATES else ""
    return system


def lists(folder: Path) -> tuple[str, str]:
    """The indexes of sources and binary packages, fetched by an apt of our own."""
    for each in ("lists/partial", "cache/archives/partial"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    suite = "http://deb.debian.org/debian bookworm main"
    (folder / "sources.list").write_text(f"deb {suite}\ndeb-src {suite}\n")
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/sources.list"; Dir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{folder}/lists"; Dir::Cache "{folder}/cache";\n'
    )
    os.environ["APT_CONFIG"] = f"{folder}/apt.conf"
    subprocess.run(["apt-get", "-qq", "update"], check=True)

    def read(ending: str) -> str:
        path = next(each for each in (folder / "lists").iterdir() if ending in each.name)
        helper = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
        return subprocess.run(helper, check=True, capture_output=True).stdout.decode(
            errors="replace"
        )

    return read("_Sources"), read("_Packages")


def main() -> None:
    """Print the list: build system, package, version."""
    folder = Path(sys.argv[1]).absolute()
    indexes = lists(folder)
    chosen: dict[str, list[str]] = {system: [] for system in SYSTEMS}
    for source in (*candidates(*indexes), *candidates(*indexes, loose=True)):
        wanted = [system for system in SYSTEMS if len(chosen[system]) < EACH]
        asked = hint(source)
        if source["Package"] in (name for each in chosen.values() for name in each):
            continue
        # Autotools and make are not told apart by what a package depends on.
        if (asked and asked not in wanted) or not (asked or {"autotools", "make"} & {*wanted}):
            continue
        try:
            system = recognized(unpacked(source, folder))
        except subprocess.CalledProcessError as error:
            print(f"passed over: {source['Package']}: {error}", file=sys.stderr)
            continue
        if system in wanted:
            chosen[system].append(source["Package"])
            print(f"{system}\t{source['Package']}\t{source['Version']}", flush=True)


if __name__ == "__main__":
    main()
