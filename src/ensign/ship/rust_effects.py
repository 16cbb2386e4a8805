"""Whether crates that a project builds by itself have the code of those that were measured. Pure.

rustc records nothing in what it makes, so its calls are compared, crate by crate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from ensign.proof.evidence import BuildEvidence, shown
from ensign.proof.rust_calls import Crate, crates_of

# What decides code; `lto` where something is linked, since others follow the link's.
_OPTIONS = (
    *("opt-level", "codegen-units", "panic", "target-cpu", "target-feature"),
    *("llvm-args", "profile-use"),
)
_OF_LINK = ("lto", "link-arg", "linker")


def rust_problems(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    """What of the measured build the shipped one has not."""
    ours, theirs = _by_name(measured), _by_name(shipped)
    if not ours or not theirs:
        yield "no call of rustc was recorded, so its options cannot be compared"
        return
    for names, text in (
        (sorted(ours.keys() - theirs.keys()), "crates are not in it"),
        (sorted(theirs.keys() - ours.keys()), "crates are in it that were not measured"),
    ):
        if names:
            yield f"{len(names)} {text}: {shown(names)}"
    differing: dict[str, list[str]] = {}
    for name in sorted(ours.keys() & theirs.keys()):
        for text in _differences(ours[name], theirs[name]):
            differing.setdefault(text, []).append(name)
    for text, names in differing.items():
        yield f"{text} in {len(names)} of {len(ours)} crates ({shown(names)})"


def rust_notes(measured: BuildEvidence) -> tuple[str, ...]:
    """What a comparison without problems says."""
    count = len(_by_name(measured))
    return (f"each of {count} crates has the options of rustc that decide code as measured",)


def _by_name(seen: BuildEvidence) -> Mapping[str, Crate]:
    return {each.name: each for each in crates_of(seen)}


def _differences(ours: Crate, theirs: Crate) -> Iterator[str]:
    for option in chain(_OPTIONS, _OF_LINK if ours.links else ()):
        was, now = _value(ours, option), _value(theirs, option)
        if was != now:
            yield (
                f"-C {option}={was or 'its default'} was measured, {now or 'its default'} is there"
            )
    if ours.call.program != theirs.call.program:
        yield f"{ours.call.program} compiled what was measured, {theirs.call.program} compiles this"


def _value(crate: Crate, option: str) -> str:
    """Cargo leaves out what is the default; its own without LTO is `thin` within a crate."""
    return "on" if option == "profile-use" and crate.value(option) else crate.value(option)
