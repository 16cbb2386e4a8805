"""Calls of rustc against what a variant asked of it. Pure.

rustc records no flags in what it makes, so its calls are the proof. The standard library came
compiled, and is judged by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise

from ensign.model.finding_kinds.proof import (
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
from ensign.proof.evidence import BuildEvidence, Request, shown
from ensign.proof.rules_crates import crate_findings
from ensign.proof.rules_flags import BY_CALLS
from ensign.proof.rust_calls import Crate, crates_of, last_options, linked_crates

# What Cargo's profile has a word for, and a manifest may say otherwise of a package.
_OPTIONS = ("opt-level", "codegen-units", "panic", "target-cpu", "llvm-args")
_IGNORED_PROFILE = re.compile(
    r"profiles for the non root package will be ignored.*\n(?:.*\n)??package:\s*(.*)"
)
_WAYS_OUT = {
    "opt-level": "[profile.release.package] in Cargo.toml",
    "codegen-units": "[profile.release.package] in Cargo.toml",
}


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
