"""What visibly differs in the files that two commands ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.lab.raced_files import loader_name
from ensign.model.finding_kinds.proof import FAST_MATH_START
from ensign.model.finding_kinds.ran import VISIBLE_DIFFERENCES
from ensign.model.findings import Finding
from ensign.model.traced import MappedFile, TracedExecution

_MOST_FILES, _MOST_BYTES = 4, 64 << 20
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class _Pair:
    """A file that one command ran, and what the other had in its place."""

    first: MappedFile
    other: MappedFile

    @property
    def name(self) -> str:
        """As a loader asks for it."""
        return loader_name(self.other.path)


def visible_findings(
    seen: Mapping[str, TracedExecution], names: Mapping[str, str], baseline: str
) -> Iterator[Finding]:
    """Of each command against the baseline, of files that differ alone."""
    first = seen.get(baseline)
    for variant, name in names.items():
        other = seen.get(variant)
        if variant == baseline or first is None or other is None:
            continue
        if first.identities != other.identities and first.followed and other.followed:
            yield from _between(first, other, names[baseline], name)


def _between(
    first: TracedExecution, other: TracedExecution, before: str, name: str
) -> Iterator[Finding]:
    # Not at the start of the program: a comparison begins without it.
    from ensign.proof.fast_math import links_fast_math  # noqa: PLC0415
    from ensign.proof.rules_bytes import FLUSHED  # noqa: PLC0415
    from ensign.proof.visible import differences, read_visible  # noqa: PLC0415

    own = _others(first, other), _others(other, first)
    parts = []
    for pair in _pairs(first, other, own):
        looks = read_visible(Path(pair.first.path)), read_visible(Path(pair.other.path))
        if looks[0] is not None and looks[1] is not None:
            found = ", ".join(differences(looks[0], looks[1]))
            parts += [f"{pair.name} ({found})"] if found else []
    parts += _libraries(first, other)
    if parts:
        text = f"what visibly differs from {before}: {'; '.join(parts)}"
        yield VISIBLE_DIFFERENCES.found(text, name)
    flushing = [
        [loader_name(each.path) for each in files if links_fast_math(Path(each.path))]
        for files in own
    ]
    if bool(flushing[0]) != bool(flushing[1]):
        who, whose = (before, flushing[0]) if flushing[0] else (name, flushing[1])
        two = name if flushing[0] else before
        files = ", ".join(whose[:_SHOWN])
        yield FAST_MATH_START.found(
            f"it runs fast-math start-up code ({files}), {two} does not: {FLUSHED}; time and "
            "output may differ for that alone",
            who,
        )


def _others(one: TracedExecution, two: TracedExecution) -> list[MappedFile]:
    """Files of the one that the other did not run, as far as they can still be read."""
    known = {each.sha256 for each in two.mapped}
    found = [each for each in one.mapped if each.sha256 and each.sha256 not in known]
    return [each for each in found if _is_small(Path(each.path))]


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size <= _MOST_BYTES
    except OSError:
        return False


def _pairs(
    first: TracedExecution,
    other: TracedExecution,
    own: tuple[list[MappedFile], list[MappedFile]],
) -> list[_Pair]:
    """By their names; programs that have none in common, by being the programs."""
    before, after = ({loader_name(each.path): each for each in files} for files in own)
    found = [_Pair(before[name], after[name]) for name in after if name in before]
    mains = _program(first, before), _program(other, after)
    if mains[0] is not None and mains[1] is not None and mains[0].path != mains[1].path:
        main = _Pair(mains[0], mains[1])
        found = [main, *(each for each in found if each != main)]
    return found[:_MOST_FILES]


def _program(trace: TracedExecution, files: Mapping[str, MappedFile]) -> MappedFile | None:
    """What was executed, where it is one file of those that differ."""
    started = {str(Path(path).resolve()) for path in trace.programs}
    found = [each for each in files.values() if str(Path(each.path).resolve()) in started]
    return found[0] if len(found) == 1 else None


def _libraries(first: TracedExecution, other: TracedExecution) -> Iterator[str]:
    """Those that one of them loads; an allocator is named as such."""
    from ensign.proof.needed_libraries import ALLOCATORS  # noqa: PLC0415
    from ensign.proof.visible import with_and_without  # noqa: PLC0415

    before, after = (
        frozenset(
            name for name in (loader_name(each.path) for each in trace.mapped) if ".so" in name
        )
        for trace in (first, other)
    )
    if before != after:
        yield f"libraries {with_and_without(after - before, before - after)}"
    kinds = [
        next((kind for kind in ALLOCATORS for name in names if kind in name), "the C library's")
        for names in (before, after)
    ]
    if kinds[0] != kinds[1]:
        yield f"allocator {kinds[1]} against {kinds[0]}"
