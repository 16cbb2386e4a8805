"""Whether all parts of what runs were compiled by this build, with the compiler asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from ensign.model.finding_kinds.proof import NOT_FROM_THIS_BUILD, WRONG_COMPILER
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Request, shown, some
from ensign.proof.facts import (
    FileOrigins,
    Stray,
    UnitKind,
    Why,
    compiler_of_comment,
)

_LANGUAGES = (UnitKind.EARLY, UnitKind.WHOLE, UnitKind.CLANG)
_WHERE = {
    Why.BEFORE: "lay in the source, built by an earlier build",
    Why.OUTSIDE: "came from a folder outside of the build",
}


def origin_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Parts that came from elsewhere, and compilers that nobody asked for. Errors, all."""
    if seen.request is None:
        return
    for file in seen.proof.origins:
        yield from _strays(seen, seen.request, file)
        yield from _compilers(seen, seen.request, file)


def _strays(seen: BuildEvidence, request: Request, file: FileOrigins) -> Iterator[Finding]:
    for why, where in _WHERE.items():
        found = [each for each in undeclared(file.strays, request) if each.why is why]
        if not found:
            continue
        names = list(dict.fromkeys(_told(each) for each in found))
        if [each.name for each in found] == [file.path]:
            text = f"{file.path} was not made by this build: it {where}"
        else:
            total = file.objects + len(file.strays)
            text = (
                f"{len(found)} of the {total} objects in {file.path} were not compiled by this "
                f"build: they {where}: {some(names)}"
            )
        yield seen.finding(NOT_FROM_THIS_BUILD, f"{text}; {_way_out(found, why)}")


def undeclared(strays: Sequence[Stray], request: Request) -> Iterator[Stray]:
    """Those that the study does not declare in `build.prebuilt`."""
    for each in strays:
        archive = each.name.partition("(")[0]
        names = (each.name, archive, each.was, each.was.partition("(")[0])
        if not any(fnmatch(name, glob) for name in names if name for glob in request.prebuilt):
            yield each


def _told(stray: Stray) -> str:
    moved = stray.was and stray.was != stray.name
    return f"{stray.name} (as {stray.was})" if moved else stray.name


def _way_out(found: Sequence[Stray], why: Why) -> str:
    first = found[0].name.partition("(")[0]
    declare = f'declare what belongs there: build.prebuilt = ["{first}"]'
    if why is Why.BEFORE:
        return (
            'remove what was built earlier (build.clean = [["make", "clean"]], or source.exclude), '
            f"or {declare}"
        )
    return f"build it from this source, or {declare}"


def _compilers(seen: BuildEvidence, request: Request, file: FileOrigins) -> Iterator[Finding]:
    if not request.programs:
        return
    foreign = {
        program: names
        for program, names in file.compiled
        if program not in request.programs and not _beside_rust(request, names)
    }
    by_units: dict[str, list[str]] = {}
    for stray in file.strays:
        if stray.why is Why.UNRECORDED:
            for compiler, name in _made_by(stray):
                if compiler != request.compiler:
                    by_units.setdefault(compiler, []).append(name)
    parts = [f"{program} compiled {shown(names)}" for program, names in foreign.items()]
    parts += [f"{compiler} compiled {shown(names)}" for compiler, names in by_units.items()]
    if parts:
        text = f"{request.variant.compiler} was asked for, but in {file.path} {'; '.join(parts)}"
        yield seen.finding(WRONG_COMPILER, text)


def _beside_rust(request: Request, names: Sequence[str]) -> bool:
    """C that build scripts of a Rust program compile is told by a finding of its own."""
    return request.compiler.startswith("rustc ") and not any(n.endswith(".rs") for n in names)


def _made_by(stray: Stray) -> Iterator[tuple[str, str]]:
    """Compilers of C and its kin that made an object nobody saw being made, and of what."""
    if stray.units:
        for unit in stray.units:
            if unit.kind in _LANGUAGES:
                yield unit.compiler, unit.name
        return
    for text in stray.comments:
        compiler = compiler_of_comment(text)
        if compiler:
            yield compiler, stray.name


def origin_lines(seen: BuildEvidence) -> Iterator[str]:
    """What was found of the origins, in sentences; what could not be judged, and why."""
    request = seen.request
    for file in seen.proof.origins:
        if file.unknown:
            yield f"not judged: which build the objects of {file.path} are from: {file.unknown}"
            continue
        open_ = [each for each in file.strays if each.why is Why.UNRECORDED]
        silent = [each.name for each in open_ if not each.units]
        told = [each.name for each in open_ if each.units]
        if file.objects:
            yield f"{file.path}: {file.objects} objects come from recorded calls of this build"
        if told:
            yield (
                f"{file.path}: {len(told)} objects were made by calls that are not recorded, and "
                f"are judged by their debug information: {some(told)}"
            )
        if silent:
            by = sorted({text for each in open_ for text in each.comments})
            said = f" (they name {', '.join(by)})" if by else ""
            yield (
                f"not judged: who compiled {len(silent)} objects in {file.path}, how: no recorded "
                f"call made them, and they have no debug information{said}: {some(silent)}"
            )
        if request is not None:
            left = {each.name for each in undeclared(file.strays, request)}
            declared = [each.name for each in file.strays if each.name not in left]
            if declared:
                yield f"{file.path}: linked as the study declares: {some(declared)}"
        if file.machine:
            yield f"{file.path}: linked in from this machine: {some(file.machine)}"
