"""Rust: what is said to rustc and to Cargo for a variant, and what rustc has not. Pure.

rustc compiles and links in one call, so `Flags.compile` are its own options and `Flags.link` what
it hands to the linker; a direct call takes both. Cargo decides level, LTO, codegen units and panic
by its profile, and refuses some of them as flags, so these go to it as settings of that profile.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ensign.host.confined_view import rustup_home
from ensign.host.files import file_sha256, is_file
from ensign.host.processes import Outcome
from ensign.host.programs import names_in
from ensign.model.errors import InputError
from ensign.model.variants import DEFAULTS, Variant
from ensign.toolchains.alignment import rust_alignment
from ensign.toolchains.table import Family, Flags, Kind

# As in CARGO_ENCODED_RUSTFLAGS: flags may hold blanks.
_SEPARATOR = "\x1f"
# What is compiled and not used is told in the log, whatever the project says of warnings.
_TELLS = "--force-warn=unused-crate-dependencies"
_NAME = re.compile(r"rustc(-\d+(\.\d+)*)?(\+[\w.-]+)?")
_RELEASE = re.compile(r"^release: (\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_LLVM = re.compile(r"^LLVM version: (\d+)", re.MULTILINE)
_HOST = re.compile(r"^host: ([\w.-]+)$", re.MULTILINE)
_LEVELS = {"-O0": "0", "-O1": "1", "-O2": "2", "-O3": "3", "-Os": "s", "-Oz": "z"}
# Without LTO Cargo's own default: the codegen units of one crate are optimized together.
_CARGO_LTO = {"off": "false", "thin": "thin", "full": "fat"}
_LTO = {"thin": "thin", "full": "fat"}
_TARGETS = {"generic": "x86-64"}
_OF_CARGO = ("-Copt-level=", "-Cdebuginfo=", "-Clto=", "-Ccodegen-units=", "-Cpanic=")
_NOT_OF_RUST = {
    "interposition": "a Rust program's own functions cannot be interposed",
    "plt": "rustc makes no calls through the PLT, unless -Zplt=yes says so",
    "floating_point": "rustc has no flag that lets floating point differ",
    "aliasing": "Rust's references have their rules whatever the flags are",
    "hardening": "its presets are options of C compilers; a Rust program is PIE with full RELRO",
    "allocator": "a Rust program chooses its allocator itself, by #[global_allocator]",
    "dependencies": "all crates that Cargo builds get the variant's flags",
}
_OF_RUST = ("codegen_units", "panic")


def is_rustc(name: str) -> bool:
    """True if a compiler's name or path is one of rustc: `rustc`, `rustc-1.76`, `rustc+nightly`."""
    return _NAME.fullmatch(name.rsplit("/", 1)[-1]) is not None


def rustup_toolchain(name: str) -> str:
    """The toolchain that a name such as `rustc+nightly` asks rustup for; empty for none."""
    return name.rsplit("/", 1)[-1].partition("+")[2] if is_rustc(name) else ""


def kind_of_rustc(text: str) -> Kind | None:
    """Tell what `rustc -vV` printed; None if that was no rustc."""
    release, llvm = _RELEASE.search(text), _LLVM.search(text)
    if release is None:
        return None
    version = (int(release[1]), int(release[2]), int(release[3]))
    return Kind(Family.RUST, version, 0 if llvm is None else int(llvm[1]))


def host_of_rustc(text: str) -> str:
    """The target triple of this machine, as `rustc -vV` names it; empty if it does not."""
    match = _HOST.search(text)
    return "" if match is None else match[1]


def rust_flags(variant: Variant, others: list[str], linker_folder: str) -> Flags:
    """A variant's choices as options of rustc, its further flags last; see the module."""
    compiling = [f"-Copt-level={_LEVELS.get(variant.optimization, '2')}", "-Cdebuginfo=1"]
    if variant.lto != "off":
        compiling.append(f"-Clto={_LTO[variant.lto]}")
    if variant.codegen_units != "default":
        compiling.append(f"-Ccodegen-units={variant.codegen_units}")
    if variant.panic != "default":
        compiling.append(f"-Cpanic={variant.panic}")
    if variant.target != "default":
        compiling.append(f"-Ctarget-cpu={_TARGETS.get(variant.target, variant.target)}")
    compiling += rust_alignment(variant.alignment)
    linking = []
    if variant.linker != "default":
        linking += [f"-Clink-arg=-B{linker_folder}"] if linker_folder else []
        linking.append(f"-Clink-arg=-fuse-ld={variant.linker}")
    if variant.bolt == "on":
        linking.append("-Clink-arg=-Wl,--emit-relocs")
    return Flags((*compiling, *joined(others)), tuple(linking))


def joined(words: list[str]) -> Iterator[str]:
    """Options in one word each: `-C` and `target-cpu=native` are `-Ctarget-cpu=native`."""
    waiting = ""
    for word in words:
        if waiting:
            yield waiting + word
            waiting = ""
        elif word in ("-C", "--codegen"):
            waiting = "-C"
        else:
            yield word
    if waiting:
        yield waiting


def cargo_settings(flags: Flags) -> tuple[str, ...]:
    """The environment, as NAME=VALUE, by which Cargo's release profile passes these flags.

    Cargo gives its own flags first and these later. The debug information is what proves them, and
    a project's wish to be stripped would take it away.
    """
    values = {
        key: word.removeprefix(key)
        for word in flags.compile
        for key in _OF_CARGO
        if word.startswith(key)
    }
    profile = {
        "OPT_LEVEL": values.get("-Copt-level=", ""),
        "DEBUG": values.get("-Cdebuginfo=", ""),
        "LTO": values.get("-Clto=", _CARGO_LTO["off"]),
        "CODEGEN_UNITS": values.get("-Ccodegen-units=", ""),
        "PANIC": values.get("-Cpanic=", ""),
        "STRIP": "none",
    }
    settings = [f"CARGO_PROFILE_RELEASE_{key}={value}" for key, value in profile.items() if value]
    words = (*rustflags(flags), _TELLS)
    return (*settings, f"CARGO_ENCODED_RUSTFLAGS={_SEPARATOR.join(words)}")


def release_profile(flags: Flags) -> dict[str, object]:
    """The keys of a release profile in Cargo.toml that say the same, but for debug information."""
    keys: dict[str, object] = {"lto": False}
    for word in flags.compile:
        name, _, value = word.removeprefix("-C").partition("=")
        if word.startswith(_OF_CARGO) and name != "debuginfo":
            keys[name] = int(value) if value.isdigit() else value
    return keys


def rustflags(flags: Flags) -> tuple[str, ...]:
    """Those that Cargo's profile has no word for, the linker's last."""
    own = [word for word in flags.compile if not word.startswith(_OF_CARGO)]
    return (*own, *flags.link)


def rust_refusal(variant: Variant) -> str:
    """Why rustc cannot build a variant; empty where nothing speaks against it."""
    if variant.optimization not in _LEVELS:
        return f"rustc has no level {variant.optimization}; it has {', '.join(_LEVELS)}"
    for axis, why in _NOT_OF_RUST.items():
        value = getattr(variant, axis)
        if value != DEFAULTS[axis]:
            return f"rustc has no {axis} '{value}': {why}"
    return ""


def refusal_of_c(variant: Variant) -> str:
    """Why a compiler of C cannot build a variant that asks for what rustc alone has."""
    for axis in _OF_RUST:
        if getattr(variant, axis) != DEFAULTS[axis]:
            return f"'{axis}' is an axis of rustc; {variant.compiler} compiles C"
    return ""


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
    matching = [each for each in there if each == wanted or each.startswith(f"{wanted}-")]
    if not matching:
        names = ", ".join(there) or "none"
        text = f"rustup has no toolchain '{wanted}' (there are: {names})"
        raise InputError(f"{text}; run 'rustup toolchain install {wanted}'")
    best = wanted if wanted in matching else matching[0]
    return shutil.which(f"{home}/toolchains/{best}/bin/rustc")


def find_rust_parts(name: str, located: str, path: str, run: Run, scratch: Path) -> RustParts:
    """Look at what `located` is. InputError if it is no rustc, does not work, or lacks a part."""
    answer = run(located, "-vV")
    kind = kind_of_rustc(answer.stdout) if answer.ok else None
    if kind is None:
        last = (answer.tail.strip().splitlines() or [answer.describe()])[-1]
        raise InputError(f"'{name}' ({located}) is not rustc, or does not work: {last}")
    sysroot = run(located, "--print", "sysroot").stdout.strip()
    # What rustup puts on the path is itself: it would look for a toolchain anew in each folder.
    inner = Path(sysroot, "bin", "rustc")
    rustc = str(inner) if sysroot and is_file(inner) else str(Path(located).absolute())
    cc = shutil.which("cc", path=path)
    if cc is None:
        raise InputError(f"'{name}' links by 'cc', which is not here; run 'apt-get install gcc'")
    host = host_of_rustc(answer.stdout)
    own_lld = _own_lld(rustc, run, scratch)
    ld = own_lld or run(cc, "-print-prog-name=ld").stdout.strip()
    ld = shutil.which(ld, path=path) or ld
    return RustParts(
        kind=kind,
        version_line=answer.stdout.splitlines()[0],
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
    text = words.read_text(errors="replace") if is_file(words) else ""
    for path in (source, made, words):
        path.unlink(missing_ok=True)
    folder = _OWN_LLD.search(text)
    if folder is None or "-fuse-ld=lld" not in text:
        return ""
    return shutil.which(f"{folder[1]}/ld.lld") or ""


def _contents(
    rustc: str, programs: tuple[str, ...], library: Path, run: Run
) -> tuple[tuple[str, str], ...]:
    """The standard library is told by the names of its files, in which their hashes are."""
    linked = [Path(each).resolve() for each in _LIBRARY.findall(run("ldd", rustc).stdout)]
    files = [Path(rustc).resolve(), *(Path(program).resolve() for program in programs), *linked]
    hashed = [(str(path), file_sha256(path)) for path in files if is_file(path)]
    names = sorted(name for name in names_in(str(library)) if name.endswith(".rlib"))
    return (*hashed, (str(library), " ".join(names)))
