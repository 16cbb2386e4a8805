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
from ensign.proof.evidence import BuildEvidence, linked_calls, shown, source_of
from ensign.proof.flags import effects
from ensign.proof.rules.flags import BY_CALLS
from ensign.proof.rust_calls import (
    Crate,
    crates_of,
    externs,
    last_options,
    linked_crates,
    options_of,
)

# What Cargo's profile has a word for, and a manifest may say otherwise of a package.
_OPTIONS = ("opt-level", "codegen-units", "panic", "target-cpu", "llvm-args")
_IGNORED_PROFILE = re.compile(
    r"profiles for the non root package will be ignored.*\n(?:.*\n)??package:\s*(.*)"
)
_BY_PACKAGE = "[profile.release.package] in Cargo.toml"
_WAYS_OUT = {"opt-level": _BY_PACKAGE, "codegen-units": _BY_PACKAGE}
_UNUSED = re.compile(r"extern crate `(\w+)` is unused in crate `(\w+)`")


def is_of_rust(seen: BuildEvidence) -> bool:
    """True if rustc was asked for, or recorded as what linked it."""
    if seen.request is None:
        return bool(linked_crates(seen))
    return seen.request.compiler.startswith("rustc ")


def rust_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Levels, LTO, codegen units, panics, targets and profiles that are not what was asked for."""
    request = seen.request
    if seen.file:
        return
    if request is None and not seen.proof.binary.units:
        yield seen.finding(NO_DEBUG_INFO_THERE, BY_CALLS)
    yield from _unused_parts(seen)
    if request is None:
        return
    yield from _own_rustflags(seen)
    crates = [crate for crate in crates_of(seen) if not seen.has_own_flags(crate.path)]
    if not crates:
        return
    words = [word for word in request.flags.compile if word.startswith("-C") and word != "-C"]
    wanted = last_options(options_of(words))
    for option in _OPTIONS:
        if option in wanted:
            yield from _against(seen, option, wanted[option], crates)
    if wanted.get("lto", "off") == "off":
        yield from _unrequested_lto(seen, crates)
    else:
        yield from _lto(seen, wanted["lto"], crates)
    bare = [crate.name for crate in crates if "profile-use" not in crate.options]
    if "profile-use" in wanted and bare:
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


def _against(
    seen: BuildEvidence, option: str, wanted: str, crates: Sequence[Crate]
) -> Iterator[Finding]:
    others = [crate for crate in crates if not crate.has(option, wanted)]
    there = ", ".join(sorted({crate.value(option) or "nothing" for crate in others}))
    asked, names = f"-C {option}={wanted}", shown([crate.name for crate in others])
    where = f"look at {_WAYS_OUT.get(option, 'what else gives flags to rustc')}"
    if 0 < len(others) < len(crates):
        paths = ", ".join(f'"{seen.relative(crate.path)}"' for crate in others[:3])
        text = (
            f"{asked} was asked for, but {len(others)} of {len(crates)} crates have {there}: "
            f"{names}; {where}, or declare them: build.own_flags = [{paths}]"
        )
        yield seen.finding(FLAGS_DIFFER, text)
    elif any((option, wanted) in options_of(other.call.ran[1:]) for other in others):
        text = f"{asked} is overridden later on the command line by {there}: {names}; {where}"
        yield seen.finding(FLAG_OVERRIDDEN, text)
    elif others:
        text = f"no crate ({len(crates)}) has {asked}, which was asked for (there is {there})"
        yield seen.finding(FLAG_MISSING, f"{text}; {where}")


def _unrequested_lto(seen: BuildEvidence, crates: Sequence[Crate]) -> Iterator[Finding]:
    having = [
        crate.name for crate in crates if crate.links and crate.value("lto") in ("thin", "fat")
    ]
    if having:
        text = f"LTO was not asked for, but rustc linked with it: {shown(having)}"
        yield seen.finding(LTO_NOT_ASKED, text)


def _lto(seen: BuildEvidence, wanted: str, crates: Sequence[Crate]) -> Iterator[Finding]:
    lacking = [crate for crate in crates if crate.links and crate.value("lto") != wanted]
    bare = [
        crate.name for crate in crates if crate.options.get("embed-bitcode") in ("no", "n", "off")
    ]
    if lacking:
        there = ", ".join(sorted({crate.value("lto") for crate in lacking}))
        text = (
            f"-C lto={wanted} was asked for, but rustc linked {shown([e.name for e in lacking])} "
            f"with lto={there}: LTO did not happen as asked; look for 'lto' in --config, "
            "RUSTFLAGS and the profile that is built"
        )
        yield seen.finding(LTO_NOT_LINKED, text)
    elif bare:
        text = (
            f"{len(bare)} of {len(crates)} crates were compiled without bitcode, so LTO left "
            f"them out: {shown(bare)}"
        )
        yield seen.finding(LTO_NOT_LINKED, text)


def _unused_parts(seen: BuildEvidence) -> Iterator[Finding]:
    """Crates that nothing uses, and C code that is in the program, or is not."""
    crates = crates_of(seen)
    made = {output.path: at for at, crate in enumerate(crates) for output in crate.call.outputs}
    uses = _uses(seen.log, crates)
    unused = _unused(crates, made, uses)
    # What is a dependency of such a crate alone is not in it either, but nobody's mistake.
    direct = {
        made[path]
        for crate, used in zip(crates, uses, strict=True)
        if "--cap-lints" not in crate.call.ran
        for path in externs(crate.call).values()
        if path in made and path not in used
    }
    named = sorted({crates[at].name for at in unused & direct})
    if named:
        text = (
            f"compiled, but no source uses it, so it is not in the program: {shown(named)}; use "
            "it, or leave it out of the dependencies"
        )
        yield seen.finding(CRATE_UNUSED, text)
    yield from _of_c(seen, [crates[at] for at in unused])


def _uses(log: str, crates: Sequence[Crate]) -> list[set[str]]:
    """Paths of the crates that each one uses, as far as rustc says otherwise of the rest.

    A library and a program of one package have one name: of these nothing is taken away.
    """
    unused = {(user, used) for used, user in _UNUSED.findall(log)}
    count = Counter(crate.name for crate in crates)
    return [
        {
            path
            for name, path in externs(crate.call).items()
            if count[crate.name] > 1 or (crate.name, name) not in unused
        }
        for crate in crates
    ]


def _unused(crates: Sequence[Crate], made: Mapping[str, int], uses: Sequence[set[str]]) -> set[int]:
    """Those that no chain of uses leads to from what is linked."""
    waiting = [at for at, crate in enumerate(crates) if crate.links]
    unused = set(range(len(crates))) if waiting else set()
    while waiting:
        at = waiting.pop()
        if at in unused:
            unused.remove(at)
            waiting += [made[path] for path in uses[at] if path in made]
    return unused


def _of_c(seen: BuildEvidence, unused: Sequence[Crate]) -> Iterator[Finding]:
    """C that build scripts compile (the crate cc): by the system's compiler, with its own flags.

    Cargo tells build scripts the level, so that follows the variant's.
    """
    outside = {
        digest for crate in unused for archive in crate.call.inputs for _, digest in archive.members
    }
    calls = [
        call
        for call in linked_calls(seen)
        if call.is_compiler and not any(output.sha256 in outside for output in call.outputs)
    ]
    there = {source_of(seen, unit) for unit in seen.proof.binary.units}
    missing = [call for call in calls if _is_missing(call, there)]
    if missing:
        text = (
            "compiled by a build script, but the program takes nothing of it: "
            f"{shown(_sources(missing))}; no Rust code calls it"
        )
        yield seen.finding(ARCHIVE_UNUSED, text)
    calls = [call for call in calls if call not in missing]
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
    """True if debug information, which the call asked for, has no unit of it."""
    if not there or effects(call.ran[1:]).get("g", "off") == "off":
        return False
    folder = f"{call.cwd}/"
    paths = {source if source[:1] == "/" else folder + source for source in call.line.sources}
    return not paths & there and not any(path.endswith((".s", ".S")) for path in paths)


def _sources(calls: Sequence[Call]) -> list[str]:
    return [source for call in calls for source in call.line.sources]


def rust_lines(seen: BuildEvidence) -> Iterator[str]:
    """Sentences on the calls."""
    crates = crates_of(seen)
    if not crates:
        yield "flags of rustc: unknown, because no call of it was recorded"
        return
    levels = sorted({f"opt-level {crate.value('opt-level')}" for crate in crates})
    yield f"{len(crates)} crates compiled by recorded calls of rustc: {', '.join(levels)}"
    for each in crates:
        names = ("lto", "codegen-units", "panic", "target-cpu")
        options = ", ".join(f"{name}={each.value(name)}" for name in names if each.value(name))
        if each.links:
            yield f"linked by rustc: {each.name} ({options or 'by its defaults'})"
    using = sum("profile-use" in crate.options for crate in crates)
    if using:
        yield f"compiled with a profile: {using} of {len(crates)} crates"
    yield (
        "the standard library came compiled: level, target, alignment and profile do not reach it"
    )
