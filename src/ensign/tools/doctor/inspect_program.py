"""`ensign doctor BINARY | DIR | PID`: findings, facts and advice of one program."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path

from ensign.host.processes import Processes
from ensign.host.programs import LocalPrograms, Programs
from ensign.host.regular_file import read_regular
from ensign.model.checkup import ArtifactCheckup, Fact
from ensign.model.errors import InputError
from ensign.model.finding_kinds.proof import FAST_MATH_START, FILE_REPLACED, LOOKS_UNOPTIMIZED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units
from ensign.proof.fast_math import FLUSHED, links_fast_math
from ensign.proof.identity import read_identity
from ensign.proof.instructions import read_instructions
from ensign.proof.loader import (
    ALLOCATORS,
    Library,
    libraries_of,
    read_cache,
    unknown_loader,
)
from ensign.toolchains.instructions import set_named
from ensign.toolchains.table import COMPILERS, PROFILERS
from ensign.tools.doctor.advice import Offers, advice_for
from ensign.tools.doctor.artifact import examine_evidence
from ensign.tools.doctor.program_facts import AskedSet, ProgramLook, facts_of
from ensign.tools.doctor.running_process import RunningProcess, read_process
from ensign.tools.doctor.unused_archives import loader_surroundings, processor_levels

_MOST_SOURCES, _MOST_BYTES = 2000, 1 << 20
_CONDITION = re.compile(
    rb"^[ \t]*#[ \t]*(?:if|ifdef|elif)\b(?:[^\n\\]|\\[ \t]*\n|\\)*", re.MULTILINE
)
_MACRO = re.compile(rb"\b__([A-Z][A-Z0-9_]{1,30}?)__\b")
_FLAG = re.compile(r"-m([a-z0-9][a-z0-9_.-]*)")
_VERSION = re.compile(r"-(\d+)$")
_ASKED_VERSION = re.compile(r"(\d+)\.\d+\.\d+")
_JAVA = "libjvm.so"
_SYSTEM = ("/usr", "/bin", "/sbin", "/opt", "/lib", "/lib64")
_PLAIN = ("gcc", "clang")
_MACHINES_HERE = {
    "x86_64": ("x86-64", "x86 (32 bits)"),
    "i686": ("x86 (32 bits)",),
    "aarch64": ("AArch64",),
    "riscv64": ("RISC-V",),
    "ppc64le": ("POWER",),
    "s390x": ("s390",),
}


def examine_program(
    path: Path, processes: Processes, *, dry_run: bool = False, record: Path | None = None
) -> ArtifactCheckup:
    """As `examine_path`, with facts and advice where it is one program or library.

    A folder has them where one program was built in it. InputError.
    """
    checkup, built = examine_evidence(path, processes, dry_run=dry_run, record=record)
    if len(built) != 1:
        return checkup
    seen = built[0]
    look = look_at(Path(seen.proof.binary.path), seen)
    if look is None:
        return checkup
    look = replace(look, unoptimized=any(e.is_a(LOOKS_UNOPTIMIZED) for e in checkup.findings))
    # What is looked at brings no programs of its own.
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    installed = any(folder.is_relative_to(system) for system in _SYSTEM)
    done = completed(checkup, look, LocalPrograms(folders=() if installed else (folder,)))
    named = (Fact("file", seen.subject),) if path.is_dir() else ()
    return replace(done, facts=(*named, *done.facts))


def examine_process(number: int, processes: Processes) -> ArtifactCheckup:
    """Look at a running process. InputError where there is none, or it may not be looked at."""
    process = read_process(number)
    checkup, built = examine_evidence(process.executable, processes)
    look = look_at(process.executable, built[0]) if built else None
    if look is None:
        raise InputError(f"process {number} has ended, or its program cannot be read")
    return of_process(checkup, process, with_mapped(look, process))


def look_at(path: Path, seen: BuildEvidence) -> ProgramLook | None:
    """Read what else there is of a program that was read; None where it changed meanwhile."""
    identity = read_identity(path)
    if identity is None:
        return None
    foreign = identity.machine not in _MACHINES_HERE.get(platform.machine(), ())
    asked = asked_sets(seen)
    look = ProgramLook(seen, identity, read_instructions(path), foreign=foreign, asked=asked)
    why = unknown_loader(identity)
    if why:
        return replace(look, libraries=None, why=f"unknown: {why}")
    libraries = libraries_of(path, identity, loader_surroundings())
    return replace(look, libraries=libraries)


def with_mapped(look: ProgramLook, process: RunningProcess) -> ProgramLook:
    """With the libraries that are really there."""
    libraries = tuple(
        Library(
            Path(mapped_file.path).name,
            mapped_file.readable or Path(mapped_file.path),
            read_identity(mapped_file.readable) if mapped_file.readable else None,
        )
        for mapped_file in process.mapped
    )
    return replace(look, libraries=libraries, mapped=True)


def completed(
    checkup: ArtifactCheckup, look: ProgramLook, programs: Programs, user_share: float | None = None
) -> ArtifactCheckup:
    """The checkup with facts and advice."""
    offers = _offers(programs, user_share)
    return replace(
        checkup,
        facts=facts_of(look),
        advice=advice_for(look, offers),
        findings=(*checkup.findings, *_of_libraries(look)),
    )


def _of_libraries(look: ProgramLook) -> Iterator[Finding]:
    paths = [library.path for library in look.libraries or () if library.path is not None]
    names = ", ".join(path.name for path in paths if links_fast_math(path))
    if names:
        text = f"loads libraries with fast-math start-up code ({names}): {FLUSHED}"
        yield look.seen.finding(FAST_MATH_START, text)


def of_process(
    checkup: ArtifactCheckup, process: RunningProcess, look: ProgramLook
) -> ArtifactCheckup:
    """Facts of the running one alone: files that were replaced under it, its CPU time."""
    findings = [
        FILE_REPLACED.found(
            f"{mapped_file.path} was deleted or replaced while process {process.number} runs the "
            "old one; restart it to have the new one",
            Path(process.program).name,
        )
        for mapped_file in process.mapped
        if mapped_file.deleted and (".so" in Path(mapped_file.path).name)
    ]
    if process.deleted:
        text = f"the file of process {process.number} was deleted or replaced; it runs the old one"
        findings.append(FILE_REPLACED.found(text, Path(process.program).name))
    share = process.user_share
    of = "too little to tell its user share" if share is None else f"{share:.0%} of it user time"
    used = f"CPU time: {process.cpu_s:.1f} s, {of}"
    running = Fact("process", f"{process.number}, running {process.program}; {used}{_run(process)}")
    done = completed(checkup, look, LocalPrograms(), share)
    return replace(
        done,
        path=process.program,
        facts=(running, *done.facts),
        findings=(
            *(replace(finding, subject=Path(process.program).name) for finding in done.findings),
            *findings,
        ),
    )


def _run(process: RunningProcess) -> str:
    """Files that it runs besides its own."""
    java = any(Path(mapped_file.path).name == _JAVA for mapped_file in process.mapped)
    return "; it runs Java, which is compiled in the process and not in any file" if java else ""


def _offers(programs: Programs, user_share: float | None) -> Offers:
    compilers = {}
    for name in programs.matching(COMPILERS):
        match = _VERSION.search(name)
        if match is not None:
            compilers[name] = int(match[1])
        elif name in _PLAIN:
            asked = _ASKED_VERSION.search(programs.ask((name, "--version")).line)
            compilers |= {name: int(asked[1])} if asked else {}
    return Offers(
        compilers=compilers,
        programs=frozenset(programs.matching(PROFILERS)),
        allocators=_allocators(),
        levels=processor_levels(),
        worth=read_worth(),
        user_share=user_share,
    )


def _allocators() -> dict[str, str]:
    cache = read_cache()
    return {
        name: files[0]
        for name in ALLOCATORS
        for library, files in sorted(cache.items())
        if name in library
    }


def read_worth() -> dict[str, str]:
    """Worth of each practice in the studies, with its source."""
    text = resources.files("ensign.tools.doctor").joinpath("worth.json").read_text(encoding="utf-8")
    return {key: "; ".join(map(_study_said, studies)) for key, studies in json.loads(text).items()}


def _study_said(each: Mapping[str, str]) -> str:
    of = f"{each['program']}: " if "program" in each else ""
    return f"{of}{each['worth']} ({each['source']})"


def asked_sets(seen: BuildEvidence) -> tuple[AskedSet, ...]:
    """Each once, in the order of their names; sources are read as far as they are there."""
    sets: dict[str, AskedSet] = {}
    for asked_set in (*_by_flags(seen), *_by_guards(seen)):
        sets.setdefault(asked_set.name, asked_set)
    return tuple(sets[name] for name in sorted(sets))


def _by_flags(seen: BuildEvidence) -> Iterator[AskedSet]:
    for unit in own_units(seen):
        for word in unit.words or ():
            match = _FLAG.fullmatch(word)
            name = set_named(match[1]) if match else ""
            if name:
                yield AskedSet(name, word, f"{Path(unit.source).name} is compiled with {word}")


def _by_guards(seen: BuildEvidence) -> Iterator[AskedSet]:
    for unit in own_units(seen)[:_MOST_SOURCES]:
        for macro in dict.fromkeys(_guards(unit)):
            name = set_named(macro)
            flag = f"-m{macro.lower().replace('sse4_', 'sse4.')}"
            if name and not _has(unit, flag):
                yield AskedSet(name, flag, f"__{macro}__ in {Path(unit.source).name}")


def _has(unit: Compiled, flag: str) -> bool:
    return flag in (unit.words or ())


def _guards(unit: Compiled) -> Iterator[str]:
    try:
        text = read_regular(Path(unit.source), _MOST_BYTES)
    except OSError:
        return
    for condition in _CONDITION.findall(text):
        for macro in _MACRO.findall(condition):
            yield macro.decode("ascii")
