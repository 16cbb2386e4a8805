"""Finding a compiler, what it is, and the tools that belong to it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ensign.host.confined_view import rustup_home
from ensign.host.files import file_sha256, remove_tree
from ensign.host.processes import Outcome, Processes, ProcessRequest
from ensign.host.programs import LocalPrograms, names_in
from ensign.host.root_directory import RootDirectory
from ensign.host.storage import full_file_system
from ensign.model.errors import CommandFailed, InputError, StorageFailed
from ensign.model.instructions import InstructionSets
from ensign.model.study_environment import program_of
from ensign.model.variants import OWN_COMPILER, Variant
from ensign.toolchains.instructions import (
    BASE_FLAG,
    deciding_flags,
    instructions_of,
    instructions_of_rust,
)
from ensign.toolchains.places import MachinePlace, ToolPlace
from ensign.toolchains.profiling import NO_PROFILERS, Profilers, branch_recording, instrumenting
from ensign.toolchains.rust import RustParts, find_rust_parts, is_rustc, locate_rustc
from ensign.toolchains.single_flags import QUESTION
from ensign.toolchains.spelling import flags_for
from ensign.toolchains.table import (
    BOLT,
    COMPILERS,
    Family,
    Flags,
    Kind,
    advice,
    kind_of,
    package_of,
    passes,
    tool_names,
)

_DEADLINE_NS = 60 * 10**9
_LLD = "-fuse-ld=lld"
_USUAL = ("cc", "gcc", "clang", "rustc")
_LINKERS = ("bfd", "lld", "mold")
_REASON = re.compile(
    r"error: (?!ld returned|linker command failed)|cannot (find|open)|error loading|unrecognized"
    r"|undefined|unknown"
)
_NO_MEMORY = re.compile(r"out of memory|virtual memory exhausted|Cannot allocate memory")
_PROGRAM = "int main(void) { return 0; }\n"
_RUST_PROGRAM = "fn main() {}\n"


@dataclass(frozen=True, slots=True)
class Linker:
    """Meaning of `-fuse-ld=NAME`; `folder` is where a compiler must be told to look, or empty."""

    name: str
    sha256: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler as found here. `name` is how the study calls it, paths are absolute.

    `identity` changes when the machine code it makes might: it hashes the path, the version text,
    and the contents of the driver, its passes (cc1, lto1, the assembler; libLLVM, libclang-cpp)
    and its linker. A distribution's patch keeps the version, so the contents count too.
    `linker_flag` selects the linker of all its variants (see `table`), `linker_version` names it.
    `cxx` is empty where there is no C++ driver. `linkers` are those that can be asked for.
    `profilers` are looked for on request (see `ToolchainFinder`). Of Rust, `cc` is rustc, `cargo`
    its Cargo, empty where there is none, and `host` the target triple of this machine.
    `environment` is in which root directory it is, and in which its variants are built; `problem`
    why it cannot be used there.
    """

    name: str
    kind: Kind
    version_line: str
    cc: str
    cxx: str
    ar: str
    ranlib: str
    nm: str
    ld: str
    linker_flag: str
    linker_version: str
    identity: str
    linkers: tuple[Linker, ...] = ()
    profilers: Profilers = NO_PROFILERS
    environment: str = ""
    problem: str = ""
    cargo: str = ""
    host: str = ""

    def identity_for(self, variant: Variant) -> str:
        """As `identity`, with the linker that the variant asks for."""
        linker = self._linker(variant)
        return _digest([self.identity, "" if linker is None else linker.sha256])

    def _linker(self, variant: Variant) -> Linker | None:
        return next((linker for linker in self.linkers if linker.name == variant.linker), None)

    def flags(self, variant: Variant) -> Flags:
        """Spelling of a variant's choices for this compiler."""
        if variant.by_project:
            return Flags((), ())
        linker = self._linker(variant)
        folder = "" if linker is None else linker.folder
        return flags_for(self.kind, variant, self.linker_flag, folder)


class MissingCompiler(InputError):
    """There is no such program on the search path; `compiler` is the name asked for."""

    def __init__(self, text: str, *, compiler: str) -> None:
        super().__init__(text)
        self.compiler = compiler


class ToolchainFinder:
    """Finds compilers by running them, through `processes`, in the folder `scratch`."""

    def __init__(
        self,
        processes: Processes,
        scratch: Path,
        path: str | None = None,
        place: ToolPlace | None = None,
    ) -> None:
        self._processes = processes
        self._scratch = scratch
        self._place = place or MachinePlace(
            os.environ.get("PATH", os.defpath) if path is None else path
        )
        self._path = self._place.path

    def find(self, name: str) -> Toolchain:
        """Find the toolchain of that compiler. InputError if there is none, or it does not work.

        Of `default` it is that of the machine's usual compiler, whose tools builds may ask for.
        """
        if name == OWN_COMPILER:
            usual = next((each for each in _USUAL if self._which(each)), _USUAL[0])
            return replace(self.find(usual), name=name)
        rust = is_rustc(program_of(name))
        if rust and self._place.name:
            raise InputError(f"compiler '{name}': rustc is taken from this machine alone")
        located = locate_rustc(name, self._path) if rust else self._which(program_of(name))
        if not located:
            raise MissingCompiler(self._missing(name), compiler=name)
        if rust:
            return self._rust(name, located)
        cc = Path(located).absolute()
        kind = self._kind(name, cc)
        tools = self._tools(kind, cc)
        linker_flag = ""
        if kind.family is Family.CLANG and not self.complaint(str(cc), (), (_LLD,)):
            linker_flag, ld = _LLD, self._said(cc, "-print-prog-name=ld.lld")
        else:
            ld = self._said(cc, "-print-prog-name=ld")
        ld = self._which(ld) or tools["ld"]
        for tool in ("ar", "ranlib", "nm"):
            if not tools[tool]:
                wanted = tool_names(kind, cc.name)[tool][0]
                advised = self._install(f"llvm-{kind.version[0]}" if "llvm" in wanted else cc.name)
                raise InputError(f"compiler '{name}' lacks its '{wanted}'; {advised}")
        version_line = self._said(cc, "--version").splitlines()[0]
        return Toolchain(
            name=name,
            kind=kind,
            version_line=version_line,
            cc=str(cc),
            cxx=tools["cxx"],
            ar=tools["ar"],
            ranlib=tools["ranlib"],
            nm=tools["nm"],
            ld=ld,
            linker_flag=linker_flag,
            linker_version=(self._said(Path(ld), "--version").splitlines() or [""])[0],
            identity=self._identity(kind, cc, version_line, ld),
            linkers=self._linkers(cc),
            environment=self._place.name,
        )

    def _rust(self, name: str, located: str) -> Toolchain:
        self._scratch.mkdir(parents=True, exist_ok=True)
        parts = find_rust_parts(name, located, self._path, self._run, self._scratch)
        ar, ranlib, nm = map(self._which, ("ar", "ranlib", "nm"))
        return Toolchain(
            name=name,
            kind=parts.kind,
            version_line=parts.version_line,
            cc=parts.rustc,
            cxx="",
            ar=ar,
            ranlib=ranlib,
            nm=nm,
            ld=parts.ld,
            linker_flag="",
            linker_version=(self._said(Path(parts.ld), "--version").splitlines() or [""])[0],
            identity=_digest([parts.rustc, parts.version_line, parts.contents]),
            linkers=self._rust_linkers(parts),
            cargo=parts.cargo,
            host=parts.host,
        )

    def _rust_linkers(self, parts: RustParts) -> tuple[Linker, ...]:
        """Those of its compiler of C; where it brings LLD along, that one is meant by the name."""
        linkers = self._linkers(Path(parts.cc))
        if not parts.own_lld:
            return linkers
        own = Linker("lld", file_sha256(Path(parts.own_lld).resolve()))
        return (own, *(linker for linker in linkers if linker.name != own.name))

    def profilers(self, toolchain: Toolchain) -> Profilers:
        """Find the programs that collect, merge and use profiles; the newest BOLT there is."""
        llvm = toolchain.kind.llvm_major
        major = llvm or toolchain.kind.version[0]
        bolt = self._real(self._newest("llvm-bolt"))
        runtime = Path(bolt).parent.parent / "lib/libbolt_rt_instr.a"
        tools = Path(self._real(toolchain.cc)).parent
        if toolchain.kind.family is Family.RUST:
            tools = tools.parent / "lib/rustlib" / toolchain.host / "bin"
        profdata = self._first((f"llvm-profdata-{major}", str(tools / "llvm-profdata")))
        decisive = [Path(path) for path in (bolt, profdata if llvm else "") if path]
        return Profilers(
            profdata=profdata if llvm else "",
            gcov_dump="" if llvm else self._first((f"gcov-dump-{major}", "gcov-dump")),
            bolt=bolt,
            bolt_runtime=str(runtime) if bolt and self._place.file(str(runtime)) else "",
            merge_fdata=self._first((str(Path(bolt).parent / "merge-fdata"), "merge-fdata")),
            perf=self._branch_recorder() if bolt else "",
            identity=_digest([self._sha256(str(path)) for path in decisive]),
        )

    def profiling_complaint(self, toolchain: Toolchain, variant: Variant) -> str:
        """Why PGO or BOLT cannot be had, with the package to install; empty where they can."""
        major, profilers = toolchain.kind.llvm_major, toolchain.profilers
        rust = toolchain.kind.family is Family.RUST
        if variant.pgo == "on" and major:
            if not profilers.profdata:
                advised = self._install(f"llvm-{major}")
                whose = f"{toolchain.name} is made of" if rust else f"{toolchain.name} is"
                or_else = " or 'rustup component add llvm-tools'" if rust else ""
                return (
                    f"there is no llvm-profdata of version {major}, the LLVM that {whose}; "
                    f"{advised}{or_else}"
                )
            flags = (*instrumenting(toolchain.kind), toolchain.linker_flag)
            complaint = self.complaint(toolchain.cc, (), tuple(flag for flag in flags if flag))
            if complaint:
                advised = self._install(f"libclang-rt-{major}-dev")
                if rust:
                    advised = "this rustc came without its profiler_builtins; take one of rustup's"
                return (
                    f"{toolchain.name} cannot link an instrumented program ({complaint}); {advised}"
                )
        if variant.bolt == "on":
            if not profilers.bolt or not profilers.merge_fdata:
                return f"there is no llvm-bolt; {self._install(BOLT)}"
            if not profilers.bolt_runtime and not profilers.perf:
                version = re.search(r"llvm-(\d+)", profilers.bolt)
                package = f"libbolt-{version[1] if version else 19}-dev"
                advised = self._install(package)
                return f"BOLT's runtime for instrumented programs is missing; {advised}"
        return ""

    def _install(self, package: str) -> str:
        if self._place.name:
            return f"the environment '{self._place.name}' needs the package {package}"
        return advice(package, LocalPrograms(self._path).packages())

    def _branch_recorder(self) -> str:
        perf = self._first(("perf",))
        if not perf:
            return ""
        argv = branch_recording(perf, os.devnull)
        return perf if self._run(*argv, "true").ok else ""

    def _first(self, names: tuple[str, ...]) -> str:
        return next((place for n in names if (place := self._which(n))), "")

    def _newest(self, name: str) -> str:
        """The program of that name, else the one with the highest version behind a dash."""
        numbered = re.compile(rf"{re.escape(name)}-(\d+)")
        versions = [
            int(match[1])
            for folder in self._path.split(os.pathsep)
            for name_there in self._place.names_in(folder)
            if (match := numbered.fullmatch(name_there))
        ]
        return self._first((name, *(f"{name}-{n}" for n in sorted(versions, reverse=True))))

    def complaint(self, cc: str, compiling: tuple[str, ...], linking: tuple[str, ...]) -> str:
        """Empty if a tiny program can be compiled and linked with these flags, else the reason."""
        folder = self._scratch / f"probe-{_digest([cc, *compiling, '|', *linking])[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        made, program = folder / "probe.o", folder / "probe"
        rust = is_rustc(cc)
        source = folder / ("probe.rs" if rust else "probe.c")
        source.write_text(_RUST_PROGRAM if rust else _PROGRAM)
        steps: tuple[tuple[str, ...], ...] = (
            (cc, *compiling, "-c", "-o", str(made), str(source)),
            (cc, *linking, "-o", str(program), str(made)),
        )
        if rust:
            steps = ((cc, *compiling, *linking, "-o", str(program), str(source)),)
        try:
            for step in steps:
                outcome = self._run(*step)
                if not outcome.ok:
                    self._raise_if_not_its_fault(f"'{cc}'", outcome)
                    lines = outcome.tail.strip().splitlines()
                    return _progress(lines) if lines else outcome.describe()
            return ""
        finally:
            remove_tree(folder)

    def instructions(self, toolchain: Toolchain, flags: Sequence[str]) -> InstructionSets | None:
        """Instructions that code made with these flags may use; None where that is not known."""
        cc, deciding = Path(toolchain.cc), deciding_flags(flags)
        if toolchain.kind.family is Family.RUST:
            return instructions_of_rust(self._said(cc, "--print", "cfg", *deciding))
        macros, base = self._macros(cc, *deciding)[0], self._macros(cc, BASE_FLAG)[0]
        return instructions_of(macros, base) if macros and base else None

    def settings(self, toolchain: Toolchain, flags: Sequence[str]) -> str:
        """What GCC says of all its flags, given these; empty of other compilers."""
        if toolchain.kind.family is not Family.GCC:
            return ""
        settings = self._scratch / "settings"
        outcome = self._run(toolchain.cc, *flags, *QUESTION, stdout=settings)
        return settings.read_text(errors="replace") if outcome.ok else ""

    def _kind(self, name: str, cc: Path) -> Kind:
        macros, outcome = self._macros(cc)
        kind = kind_of(macros) if macros else None
        if kind is None:
            what = f"'{name}' ({cc})"
            self._raise_if_not_its_fault(what, outcome)
            last = (outcome.tail.strip().splitlines() or [outcome.describe()])[-1]
            raise InputError(f"{what} is neither GCC nor Clang nor rustc, or does not work: {last}")
        return kind

    def _macros(self, cc: Path, *flags: str) -> tuple[str, Outcome]:
        """Macros that a compiler of C defines by itself; empty where it does not work."""
        empty = self._scratch / "empty.c"
        empty.parent.mkdir(parents=True, exist_ok=True)
        empty.touch()
        # Through a file, because the meter returns the last bytes of what is printed alone.
        macros = self._scratch / f"macros-{_digest([str(cc)])[:16]}"
        argv = (str(cc), *flags, "-dM", "-E", "-x", "c", str(empty), "-o", str(macros))
        outcome = self._run(*argv)
        text = macros.read_text() if outcome.ok and macros.exists() else ""
        macros.unlink(missing_ok=True)
        return text, outcome

    def _raise_if_not_its_fault(self, what: str, outcome: Outcome) -> None:
        """Raises where a program failed for want of something: that says nothing of its abilities.

        StorageFailed where the disk is full, CommandFailed where it was killed or too slow,
        InputError where it cannot be executed.
        """
        full = full_file_system(self._scratch, outcome.tail)
        if full:
            raise StorageFailed(f"cannot try {what}: {full}")
        if outcome.reason == "not-found":
            raise InputError(f"{what} cannot be executed: {outcome.tail.strip() or 'not found'}")
        if outcome.reason != "exited" or outcome.signal == signal.SIGKILL:
            hint = "; is there memory left?" if outcome.signal == signal.SIGKILL else ""
            raise CommandFailed(f"cannot try {what}: it {outcome.describe()}{hint}")
        if _NO_MEMORY.search(outcome.tail):
            raise CommandFailed(f"cannot try {what}: there is not enough memory for it")

    def _tools(self, kind: Kind, cc: Path) -> dict[str, str]:
        folders = (str(cc.parent), self._path, str(Path(self._real(str(cc))).parent))
        tools = {}
        for tool, names in tool_names(kind, cc.name).items():
            places = [self._place.which(name, folder) for name in names for folder in folders]
            tools[tool] = next((place for place in places if place), "")
        return tools

    def _identity(self, kind: Kind, cc: Path, version_line: str, ld: str) -> str:
        files = [self._real(str(cc)), self._real(ld)]
        for program in passes(kind):
            answer = self._said(cc, f"-print-prog-name={program}")
            files.append(self._which(answer) or answer)
        if kind.family is Family.CLANG:
            linked = self._run("ldd", self._real(str(cc))).stdout
            files += [self._real(path) for path in _COMPILER_LIBRARY.findall(linked)]
        contents = [(path, self._sha256(path)) for path in files if self._place.file(path)]
        whole = [self._place.identity] if self._place.identity else []
        return _digest([str(cc), version_line, contents, *whole])

    def _linkers(self, cc: Path) -> tuple[Linker, ...]:
        linkers = []
        for name in _LINKERS:
            answer = self._which(self._said(cc, f"-print-prog-name=ld.{name}"))
            if answer:
                linkers.append(Linker(name, self._sha256(answer)))
            elif elsewhere := self._place.newest_linker(name):
                folder = str(PurePosixPath(elsewhere).parent)
                linkers.append(Linker(name, self._sha256(elsewhere), folder))
        return tuple(linkers)

    def _which(self, name: str) -> str:
        return self._place.which(name, self._path)

    def _real(self, path: str) -> str:
        """The path without links; empty for an empty one."""
        return self._place.real(path) if path else ""

    def _sha256(self, path: str) -> str:
        file = self._place.file(path)
        return "" if file is None else file_sha256(file)

    def _said(self, program: Path, *arguments: str) -> str:
        return self._run(str(program), *arguments).stdout.strip()

    def _run(self, *argv: str, stdout: Path | None = None) -> Outcome:
        env = {"PATH": self._path, "LC_ALL": "C", "TMPDIR": str(self._scratch)}
        argv = (*self._place.argv(self._scratch), *argv)
        if rust := rustup_home(self._path):
            env["RUSTUP_HOME"] = rust
        return self._processes.run(
            ProcessRequest(argv, env, self._scratch, deadline_ns=_DEADLINE_NS, stdout=stdout)
        )

    def _missing(self, name: str) -> str:
        if self._place.name:
            wanted = package_of(program_of(name))
            return (
                f"the environment '{self._place.name}' has no compiler '{program_of(name)}'; "
                f'with packages = ["{wanted}", …] Debian\'s has'
            )
        there = installed_compilers(self._path)
        instead = f"installed are {', '.join(there)}" if there else "no compiler is"
        return f"compiler '{name}' is not installed ({instead}); {self._install(package_of(name))}"


def _progress(lines: list[str]) -> str:
    """The line that says what is wrong; the last one often says only that something was."""
    return next((line for line in lines if _REASON.search(line)), lines[-1])


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


_COMPILER_LIBRARY = re.compile(r"=> (\S*/lib(?:LLVM|clang)\S*)")


def installed_compilers(path: str, root: RootDirectory | None = None) -> list[str]:
    """Names of the C compilers in the folders of `path`, such as gcc-12; of a root directory's."""
    names: set[str] = set()
    for folder in path.split(os.pathsep):
        names.update(
            name
            for name in (names_in(folder) if root is None else root.names_in(folder))
            if re.fullmatch(COMPILERS, name) and _is_program(folder, name, root)
        )
    return sorted(names, key=lambda name: (name.split("-")[0], len(name), name))


def _is_program(folder: str, name: str, root: RootDirectory | None) -> bool:
    if root is not None:
        return bool(root.which(name, folder))
    return os.access(Path(folder, name), os.X_OK)
