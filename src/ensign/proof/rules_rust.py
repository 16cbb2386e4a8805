"""Calls of rustc against what a variant asked of it. Pure.

rustc records no flags in what it makes, so its calls are the proof. The standard library came
compiled, and is judged by nobody.

rustc leaves out a crate that no source names, and links archives of C as any linker does: what
nobody calls stays outside. rustc tells the first (`unused_crate_dependencies`, for which Cargo is
asked), units of debug information the second.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from itertools import pairwise

from ensign.model.calls import Call
from ensign.model.finding_kinds.proof import (
    ARCHIVE_UNUSED,
    CODE_OF_C,
    CRATE_UNUSED,
    FLAG_MISSING,
    FLAG_OVERRIDDEN,
    FLAGS_DIFFER,
    LTO_NOT_ASKED,
    LTO_NOT_LINKED,
    NO_DEBUG_INFO_THERE,
    OWN_RUSTFLAGS,
    PROFILE_NOT_GIVEN,
    PROFILE_OF_MEMBER,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Request, linked_calls, shown, source_of
from ensign.proof.flags import effects
from ensign.proof.rules_flags import BY_CALLS
from ensign.proof.rust_calls import Crate, crates_of, externs, last_options, linked_crates

# What Cargo's profile has a word for, and a manifest may say otherwise of a package.
_OPTIONS = ("opt-level", "codegen-units", "panic", "target-cpu", "llvm-args")
_IGNORED_PROFILE = re.compile(
    r"profiles for the non root package will be ignored.*\n(?:.*\n)??package:\s*(.*)"
)
_WAYS_OUT = {
    "opt-level": "[profile.release.package] in Cargo.toml",
    "codegen-units": "[profile.release.package] in Cargo.toml",
}
_UNUSED = re.compile(r"extern crate `(\w+)` is unused in crate `(\w+)`")


def is_of_rust(seen: BuildEvidence) -> bool:
    """Whether rustc was asked for, or recorded as what linked it."""
    if seen.request is None:
        return bool(linked_crates(seen))
    return seen.request.compiler.startswith("rustc ")


def rust_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Levels, LTO, codegen units, panics, targets and profiles that are not what was asked for."""
    request = seen.request
    if seen.file:
        return
    if request is None:
        if not seen.proof.binary.units:
            yield seen.finding(NO_DEBUG_INFO_THERE, BY_CALLS)
        yield from crate_findings(seen)
        return
    crates = [each for each in crates_of(seen) if not _has_own_flags(seen, request, each)]
    wanted = crate_options(request.flags.compile)
    yield from crate_findings(seen)
    yield from _own_rustflags(seen)
    if not crates:
        return
    for option in _OPTIONS:
        if option in wanted:
            yield from _against(seen, option, wanted[option], crates)
    yield from _lto(seen, wanted.get("lto", "off"), crates)
    if "profile-use" in wanted:
        yield from _profile(seen, crates)


def crate_options(words: Sequence[str]) -> dict[str, str]:
    """Options of code generation, by the last word of each."""
    pairs = (word[2:].partition("=") for word in words if word.startswith("-C"))
    return last_options((name, value) for name, _, value in pairs)


def rust_lines(seen: BuildEvidence) -> Iterator[str]:
    """What the calls say, in sentences."""
    crates = crates_of(seen)
    if not crates:
        yield "flags of rustc: unknown, because no call of it was recorded"
        return
    levels = sorted({f"opt-level {each.value('opt-level')}" for each in crates})
    yield f"{len(crates)} crates compiled by recorded calls of rustc: {', '.join(levels)}"
    for each in crates:
        if each.links:
            said = [
                f"{name}={each.value(name)}"
                for name in ("lto", "codegen-units", "panic", "target-cpu")
                if each.value(name)
            ]
            yield f"linked by rustc: {each.name} ({', '.join(said) or 'by its defaults'})"
    using = sum("profile-use" in each.options for each in crates)
    if using:
        yield f"compiled with a profile: {using} of {len(crates)} crates"
    yield (
        "the standard library came compiled: level, target, alignment and profile do not reach it"
    )


def _has_own_flags(seen: BuildEvidence, request: Request, crate: Crate) -> bool:
    path = f"{crate.call.cwd}/{crate.source}" if crate.source[:1] != "/" else crate.source
    relative = path.removeprefix(f"{seen.proof.build_path}/")
    return any(fnmatch(relative, glob) for glob in request.own_flags)


def _against(
    seen: BuildEvidence, option: str, wanted: str, crates: Sequence[Crate]
) -> Iterator[Finding]:
    others = [each for each in crates if not each.has(option, wanted)]
    if not others:
        return
    names = shown([each.name for each in others])
    there = ", ".join(sorted({each.value(option) or "nothing" for each in others}))
    asked = f"-C {option}={wanted}"
    where = _WAYS_OUT.get(option, "what else gives flags to rustc")
    if len(others) < len(crates):
        paths = ", ".join(f'"{_relative(seen, each)}"' for each in others[:3])
        text = (
            f"{asked} was asked for, but {len(others)} of {len(crates)} crates have {there}: "
            f"{names}; look at {where}, or declare them: build.own_flags = [{paths}]"
        )
        yield seen.finding(FLAGS_DIFFER, text)
        return
    given = any(asked in _said(each) for each in others)
    text = f"no crate ({len(crates)}) has {asked}, which was asked for (there is {there})"
    if given:
        text = f"{asked} is overridden later on the command line by {there}: {names}"
    yield seen.finding(FLAG_OVERRIDDEN if given else FLAG_MISSING, f"{text}; look at {where}")


def _relative(seen: BuildEvidence, crate: Crate) -> str:
    return f"{crate.call.cwd}/{crate.source}".removeprefix(f"{seen.proof.build_path}/")


def _said(crate: Crate) -> tuple[str, ...]:
    """All options of a call, in one spelling each, also those that a later one overrides."""
    words = crate.call.ran[1:]
    pairs = pairwise(words)
    apart = (f"-C {value}" for name, value in pairs if name in ("-C", "--codegen"))
    return (*apart, *(f"-C {word[2:]}" for word in words if word[:2] == "-C" and word[2:]))


def _lto(seen: BuildEvidence, wanted: str, crates: Sequence[Crate]) -> Iterator[Finding]:
    linked = [each for each in crates if each.links]
    lacking = [each for each in linked if each.value("lto") != wanted]
    if wanted == "off":
        having = [each for each in linked if each.value("lto") in ("thin", "fat")]
        if having:
            names = shown([each.name for each in having])
            text = f"LTO was not asked for, but rustc linked with it: {names}"
            yield seen.finding(LTO_NOT_ASKED, text)
    elif lacking:
        there = ", ".join(sorted({each.value("lto") for each in lacking}))
        text = (
            f"-C lto={wanted} was asked for, but rustc linked {shown([e.name for e in lacking])} "
            f"with lto={there}: LTO did not happen as asked; look for 'lto' in --config, "
            "RUSTFLAGS and the profile that is built"
        )
        yield seen.finding(LTO_NOT_LINKED, text)
    else:
        bare = [each for each in crates if each.options.get("embed-bitcode") in ("no", "n", "off")]
        if bare:
            text = (
                f"{len(bare)} of {len(crates)} crates were compiled without bitcode, so LTO left "
                f"them out: {shown([each.name for each in bare])}"
            )
            yield seen.finding(LTO_NOT_LINKED, text)


def _profile(seen: BuildEvidence, crates: Sequence[Crate]) -> Iterator[Finding]:
    bare = [each.name for each in crates if "profile-use" not in each.options]
    if bare:
        text = (
            f"{len(bare)} of {len(crates)} crates were compiled without the profile "
            f"(-C profile-use): {shown(bare)}; look at what else sets RUSTFLAGS"
        )
        yield seen.finding(PROFILE_NOT_GIVEN, text)


def _own_rustflags(seen: BuildEvidence) -> Iterator[Finding]:
    ignored = _IGNORED_PROFILE.search(seen.log)
    if ignored is not None:
        text = (
            f"Cargo ignores the profile of a workspace member: {ignored[1].strip()}; profiles "
            "count in the manifest of the workspace alone"
        )
        yield seen.finding(PROFILE_OF_MEMBER, text)
    if seen.proof.own_rustflags:
        text = (
            f"the project's own rustflags are not in effect, since the variant's take their place: "
            f"{'; '.join(seen.proof.own_rustflags)}; write what the program needs into axes.flags"
        )
        yield seen.finding(OWN_RUSTFLAGS, text)


def crate_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Crates that nothing uses, and C code that is in the program, or is not."""
    crates = crates_of(seen)
    unused = unused_crates(seen.log, crates)
    # What is a dependency of such a crate alone is not in it either, but nobody's mistake.
    named = sorted(name for name, crate in unused.items() if crate in _direct(seen.log, crates))
    if named:
        text = (
            f"compiled, but no source uses it, so it is not in the program: {shown(named)}; use "
            "it, or leave it out of the dependencies"
        )
        yield seen.finding(CRATE_UNUSED, text)
    yield from _of_c(seen, unused)


def unused_crates(log: str, crates: Sequence[Crate]) -> dict[str, Crate]:
    """By name those that no chain of uses leads to from what is linked; see `_edges`."""
    made = _made(crates)
    edges = _edges(log, crates)
    reached: set[int] = set()
    waiting = [index for index, each in enumerate(crates) if each.links]
    if not waiting:
        return {}
    while waiting:
        index = waiting.pop()
        if index not in reached:
            reached.add(index)
            waiting += [made[path] for path in edges[index] if path in made]
    return {each.name: each for index, each in enumerate(crates) if index not in reached}


def _direct(log: str, crates: Sequence[Crate]) -> list[Crate]:
    """Those that a crate of the project itself names and does not use."""
    made, edges = _made(crates), _edges(log, crates)
    found = []
    for index, crate in enumerate(crates):
        if "--cap-lints" not in crate.call.ran:
            dropped = set(externs(crate.call).values()) - set(edges[index])
            found += [crates[made[path]] for path in dropped if path in made]
    return found


def _made(crates: Sequence[Crate]) -> Mapping[str, int]:
    pairs = ((out.path, index) for index, each in enumerate(crates) for out in each.call.outputs)
    return dict(pairs)


def _edges(log: str, crates: Sequence[Crate]) -> list[list[str]]:
    """Paths of the crates that each one uses, as far as rustc says otherwise of the rest.

    A library and a program of one package have one name: of these nothing is taken away.
    """
    said = {(user, used) for used, user in _UNUSED.findall(log)}
    count = Counter(each.name for each in crates)
    return [
        [
            path
            for name, path in externs(each.call).items()
            if count[each.name] > 1 or (each.name, name) not in said
        ]
        for each in crates
    ]


def _of_c(seen: BuildEvidence, unused: Mapping[str, Crate]) -> Iterator[Finding]:
    """C that build scripts compile (the crate cc): by the system's compiler, with its own flags.

    Cargo tells build scripts the level, so that follows the variant's.
    """
    outside = {
        digest
        for crate in unused.values()
        for archive in crate.call.inputs
        for _, digest in archive.members
    }
    calls = [
        call
        for call in linked_calls(seen)
        if call.is_compiler and not any(each.sha256 in outside for each in call.outputs)
    ]
    there = {source_of(seen, unit) for unit in seen.proof.binary.units}
    missing = [call for call in calls if _is_missing(call, there)]
    calls = [call for call in calls if call not in missing]
    if missing:
        text = (
            "compiled by a build script, but the program takes nothing of it: "
            f"{shown(_sources(missing))}; no Rust code calls it"
        )
        yield seen.finding(ARCHIVE_UNUSED, text)
    if calls:
        programs = ", ".join(sorted({call.program for call in calls}))
        sources = _sources(calls)
        text = (
            f"build scripts compiled {len(sources)} sources of C or C++ into it with {programs} "
            f"({shown(sources)}): the variant's choices do not reach them, but for the level, "
            "which Cargo tells build scripts"
        )
        yield seen.finding(CODE_OF_C, text)


def _is_missing(call: Call, there: set[str]) -> bool:
    """Whether debug information, which the call asked for, has no unit of it."""
    if not there or effects(call.ran[1:]).get("g", "off") == "off":
        return False
    folder = f"{call.cwd}/"
    paths = {each if each[:1] == "/" else folder + each for each in call.line.sources}
    return not paths & there and not any(each.endswith((".s", ".S")) for each in paths)


def _sources(calls: Sequence[Call]) -> list[str]:
    return [source for call in calls for source in call.line.sources]
