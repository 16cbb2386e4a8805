"""Rule: all parts of what runs were compiled by this build, with the compiler asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from ensign.model.finding_kinds.proof import NOT_FROM_THIS_BUILD, WRONG_COMPILER
from ensign.model.findings import Finding
from ensign.proof.comparison import grouped
from ensign.proof.evidence import BuildEvidence, Request, shown, some
from ensign.proof.facts import FileOrigins, Stray, UnitKind, Why, compiler_of_comment

_LANGUAGES = (UnitKind.EARLY, UnitKind.WHOLE, UnitKind.CLANG)
# Where such parts come from, and the way out.
_WHERE = {
    Why.BEFORE: (
        "lay in the source, built by an earlier build",
        'remove what was built earlier (build.clean = [["make", "clean"]], or source.exclude)',
    ),
    Why.OUTSIDE: ("came from a folder outside of the build", "build it from this source"),
}


def origin_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Parts that came from elsewhere, and compilers that nobody asked for. Errors, all."""
    if seen.request is None:
        return
    for file in seen.proof.origins:
        strays = grouped((stray.why, stray) for stray in undeclared(file.strays, seen.request))
        for why in _WHERE:
            if why in strays:
                yield seen.finding(NOT_FROM_THIS_BUILD, _not_from_here(file, strays[why], why))
        wrong = [*_wrong_compilers(seen.request, file)] if seen.request.programs else []
        if wrong:
            asked = f"{seen.request.variant.compiler} was asked for, but in {file.path}"
            yield seen.finding(WRONG_COMPILER, f"{asked} {'; '.join(wrong)}")


def undeclared(strays: Sequence[Stray], request: Request) -> Iterator[Stray]:
    """Those that the study does not declare in `build.prebuilt`."""
    for stray in strays:
        archive = stray.name.partition("(")[0]
        names = (stray.name, archive, stray.was, stray.was.partition("(")[0])
        if not any(fnmatch(name, glob) for name in names if name for glob in request.prebuilt):
            yield stray


def _not_from_here(file: FileOrigins, strays: Sequence[Stray], why: Why) -> str:
    where, way_out = _WHERE[why]
    if [stray.name for stray in strays] == [file.path]:
        text = f"{file.path} was not made by this build: it {where}"
    else:
        total = file.objects + len(file.strays)
        names = list(dict.fromkeys(map(_named, strays)))
        text = (
            f"{len(strays)} of the {total} objects in {file.path} were not compiled by this "
            f"build: they {where}: {some(names)}"
        )
    first = strays[0].name.partition("(")[0]
    declare = f'declare what belongs there: build.prebuilt = ["{first}"]'
    return f"{text}; {way_out}, or {declare}"


def _named(stray: Stray) -> str:
    moved = stray.was and stray.was != stray.name
    return f"{stray.name} (as {stray.was})" if moved else stray.name


def _wrong_compilers(request: Request, file: FileOrigins) -> Iterator[str]:
    rust = request.compiler.startswith("rustc ")
    for program, names in file.compiled:
        # C that build scripts of a Rust program compile has a finding of its own.
        beside_rust = rust and not any(name.endswith(".rs") for name in names)
        if program not in request.programs and not beside_rust:
            yield f"{program} compiled {shown(names)}"
    unrecorded = (stray for stray in file.strays if stray.why is Why.UNRECORDED)
    made = grouped(pair for stray in unrecorded for pair in _made_by(stray))
    for compiler, parts in made.items():
        if compiler != request.compiler:
            yield f"{compiler} compiled {shown(parts)}"


def _made_by(stray: Stray) -> Iterator[tuple[str, str]]:
    """Compilers of C and its kin that made an object nobody saw being made, and of what."""
    for unit in stray.units:
        if unit.kind in _LANGUAGES:
            yield unit.compiler, unit.name
    for text in () if stray.units else stray.comments:
        compiler = compiler_of_comment(text)
        if compiler:
            yield compiler, stray.name


def origin_lines(seen: BuildEvidence) -> Iterator[str]:
    """Findings on the origins, in sentences; what could not be judged, and why."""
    for file in seen.proof.origins:
        if file.unknown:
            yield f"not judged: which build the objects of {file.path} are from: {file.unknown}"
            continue
        unrecorded = [stray for stray in file.strays if stray.why is Why.UNRECORDED]
        silent = [stray.name for stray in unrecorded if not stray.units]
        told = [stray.name for stray in unrecorded if stray.units]
        if file.objects:
            yield f"{file.path}: {file.objects} objects come from recorded calls of this build"
        if told:
            yield (
                f"{file.path}: {len(told)} objects were made by calls that are not recorded, and "
                f"are judged by their debug information: {some(told)}"
            )
        if silent:
            by = sorted({text for stray in unrecorded for text in stray.comments})
            compilers = f" (they name {', '.join(by)})" if by else ""
            yield (
                f"not judged: who compiled {len(silent)} objects in {file.path}, how: no recorded "
                f"call made them, and they have no debug information{compilers}: {some(silent)}"
            )
        if seen.request is not None:
            left = {stray.name for stray in undeclared(file.strays, seen.request)}
            declared = [stray.name for stray in file.strays if stray.name not in left]
            if declared:
                yield f"{file.path}: linked as the study declares: {some(declared)}"
        if file.machine:
            yield f"{file.path}: linked in from this machine: {some(file.machine)}"
