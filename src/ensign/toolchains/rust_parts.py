"""Finding the parts of a Rust toolchain: the real rustc behind rustup, its Cargo, its linker."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ensign.host.confined_view import rustup_home
from ensign.host.files import file_sha256, is_file
from ensign.host.processes import Outcome
from ensign.host.programs import names_in
from ensign.model.errors import InputError
from ensign.toolchains.rust import host_of_rustc, kind_of_rustc, rustup_toolchain
from ensign.toolchains.table import Kind

Run = Callable[..., Outcome]
_LIBRARY = re.compile(r"=> (\S*/lib(?:LLVM|rustc_driver)\S*)")
_OWN_LLD = re.compile(r"-B([^\s\"]*/gcc-ld)\b")
_PROGRAM = "fn main() {}\n"


@dataclass(frozen=True, slots=True)
class RustParts:
    """A Rust toolchain as found here; paths are absolute.

    `cc` is the compiler of C that it links by, `ld` the linker that this one starts, `host` the
    target triple of this machine, `contents` what decides its code: paths with hashes or names.
    `cargo` is empty where there is none. `own_lld` is empty unless it brings its linker along.
    """

    kind: Kind
    version_line: str
    rustc: str
    cargo: str
    cc: str
    ld: str
    host: str
    sysroot: str
    own_lld: str
    contents: tuple[tuple[str, str], ...]


def locate_rustc(name: str, path: str) -> str | None:
    """The program that a name stands for: of rustup's toolchain for `rustc+NAME`, else on `path`.

    InputError, naming those that there are, where rustup has no such toolchain.
    """
    wanted = rustup_toolchain(name)
    if not wanted:
        return shutil.which(name, path=path)
    home = rustup_home(path)
    if not home:
        raise InputError(f"'{name}' asks for a toolchain of rustup, and no rustup is on the path")
    there = sorted(names_in(f"{home}/toolchains"))
    # `1.95` and `stable` are short for what rustup calls `stable-x86_64-unknown-linux-gnu`.
    found = [each for each in there if each == wanted or each.startswith(f"{wanted}-")]
    if not found:
        names = ", ".join(there) or "none"
        text = f"rustup has no toolchain '{wanted}' (there are: {names})"
        raise InputError(f"{text}; run 'rustup toolchain install {wanted}'")
    best = wanted if wanted in found else found[0]
    return shutil.which(f"{home}/toolchains/{best}/bin/rustc")


def find_rust_parts(name: str, located: str, path: str, run: Run, scratch: Path) -> RustParts:
    """Look at what `located` is. InputError if it is no rustc, does not work, or lacks a part."""
    said = run(located, "-vV")
    kind = kind_of_rustc(said.stdout) if said.ok else None
    if kind is None:
        last = (said.tail.strip().splitlines() or [said.describe()])[-1]
        raise InputError(f"'{name}' ({located}) is not rustc, or does not work: {last}")
    sysroot = run(located, "--print", "sysroot").stdout.strip()
    # What rustup puts on the path is itself: it would look for a toolchain anew in each folder.
    inner = Path(sysroot, "bin", "rustc")
    rustc = str(inner) if sysroot and is_file(inner) else str(Path(located).absolute())
    cc = shutil.which("cc", path=path)
    if cc is None:
        raise InputError(f"'{name}' links by 'cc', which is not here; run 'apt-get install gcc'")
    host = host_of_rustc(said.stdout)
    own_lld = _own_lld(rustc, run, scratch)
    ld = own_lld or run(cc, "-print-prog-name=ld").stdout.strip()
    ld = shutil.which(ld, path=path) or ld
    return RustParts(
        kind=kind,
        version_line=said.stdout.splitlines()[0],
        rustc=rustc,
        cargo=_cargo(Path(rustc), path),
        cc=cc,
        ld=ld,
        host=host,
        sysroot=sysroot,
        own_lld=own_lld,
        contents=_contents(rustc, (cc, ld), Path(sysroot, "lib/rustlib", host, "lib"), run),
    )


def _cargo(rustc: Path, path: str) -> str:
    """The one beside it, or of the same ending; any other one will do, too."""
    beside = rustc.with_name("cargo" + rustc.name.removeprefix("rustc"))
    return shutil.which(str(beside)) or shutil.which("cargo", path=path) or ""


def _own_lld(rustc: str, run: Run, scratch: Path) -> str:
    """The linker of its own that rustc links by, as of 1.90 on x86-64; empty where it has none."""
    source = scratch / "linked.rs"
    source.write_text(_PROGRAM)
    made, words = scratch / "linked", scratch / "link-args"
    # Through a file, because the last bytes of what is printed are returned alone.
    run(rustc, f"--print=link-args={words}", "-o", str(made), str(source))
    said = words.read_text(errors="replace") if is_file(words) else ""
    for each in (source, made, words):
        each.unlink(missing_ok=True)
    folder = _OWN_LLD.search(said)
    if folder is None or "-fuse-ld=lld" not in said:
        return ""
    return shutil.which(f"{folder[1]}/ld.lld") or ""


def _contents(
    rustc: str, programs: tuple[str, ...], library: Path, run: Run
) -> tuple[tuple[str, str], ...]:
    """The standard library is told by the names of its files, in which their hashes are."""
    linked = [Path(each).resolve() for each in _LIBRARY.findall(run("ldd", rustc).stdout)]
    files = [Path(rustc).resolve(), *(Path(each).resolve() for each in programs), *linked]
    hashed = [(str(path), file_sha256(path)) for path in files if is_file(path)]
    names = sorted(name for name in names_in(str(library)) if name.endswith(".rlib"))
    return (*hashed, (str(library), " ".join(names)))
