"""Crates and C code that were compiled for a Rust program, and are not in it. Pure.

rustc leaves out a crate that no source names, and links archives of C as any linker does: what
nobody calls stays outside. rustc tells the first (`unused_crate_dependencies`, for which Cargo is
asked), units of debug information the second.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ensign.model.calls import Call
from ensign.model.finding_kinds.proof import ARCHIVE_UNUSED, CODE_OF_C, CRATE_UNUSED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, linked_calls, shown, source_of
from ensign.proof.flags import effects
from ensign.proof.rust_calls import Crate, crates_of, externs

_UNUSED = re.compile(r"extern crate `(\w+)` is unused in crate `(\w+)`")


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
