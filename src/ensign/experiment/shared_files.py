"""Files that several variants write: they cannot be alive at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ensign.model.finding_kinds.ran import SHARED_FILES
from ensign.model.findings import Finding
from ensign.model.traced_execution import TracedExecution, Way

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file (or port, or key of System V) that these variants write, in their order."""

    path: str
    variants: tuple[str, ...]
    ways: frozenset[Way]


def shared_files(
    traces: Mapping[str, TracedExecution], outputs: Mapping[str, str] | None = None
) -> tuple[SharedFile, ...]:
    """What more than one variant writes, by what was seen of one execution of each.

    `outputs` are the files that variants have as standard output, which they do not open
    themselves.
    """
    writers: dict[str, dict[str, frozenset[Way]]] = {}
    for variant, trace in traces.items():
        for file in trace.ways:
            writers.setdefault(file.path, {})[variant] = file.ways
    for variant, path in (outputs or {}).items():
        writers.setdefault(path, {})[variant] = frozenset({Way.OPENED})
    return tuple(
        SharedFile(path, tuple(variants), frozenset().union(*variants.values()))
        for path, variants in sorted(writers.items())
        if len(variants) > 1
    )


def shared_finding(
    shared: Iterable[SharedFile], names: Mapping[str, str], *, apart: bool, subject: str = ""
) -> tuple[Finding, ...]:
    """`shared-files`, once: what is shared, by whom, and the way out.

    `apart` says whether the variants run by turns because of it; else they were asked to be alive
    at once.
    """
    shared = tuple(shared)
    if not shared:
        return ()
    variants = dict.fromkeys(variant for file in shared for variant in file.variants)
    who = [names.get(variant, variant) for variant in variants]
    paths = ", ".join(_said(file) for file in shared[:_SHOWN])
    more = f" and {len(shared) - _SHOWN} more" if len(shared) > _SHOWN else ""
    effect = (
        "so they are never alive at once: whole executions take turns"
        if apart
        else "and are alive at once, as asked: each may find what another has half done"
    )
    text = (
        f"{listed(who)} write the same {_what(shared)} ({paths}{more}), {effect}; "
        "{variant} or {tmp} in a command gives each its own"
    )
    return (SHARED_FILES.found(text, subject),)


def _said(file: SharedFile) -> str:
    return f"{file.path}, locked" if Way.LOCKED in file.ways else file.path


def _what(shared: tuple[SharedFile, ...]) -> str:
    return "file" if len(shared) == 1 else "files"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
