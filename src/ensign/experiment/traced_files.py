"""Files of traced executions: those that variants share, and whether a race ran the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.experiment.exclusions import listed
from ensign.experiment.tracing import Identities, in_own_scratch, original_of
from ensign.host.root_directory import lies_in
from ensign.meter.requests import VariantFiles
from ensign.model.finding_kinds.ran import SHARED_FILES
from ensign.model.findings import Finding
from ensign.model.traced_execution import TracedExecution, Way
from ensign.model.trials import RaceMapping
from ensign.proof.loaded_bytes import read_dynamic

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
    """Files that more than one variant writes, by one traced execution of each.

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


@dataclass(frozen=True, slots=True)
class ExpectedFiles:
    """Files that a traced execution ran, to hold a race against.

    `identities` by path; files of a copy by the path that they were copied from. `exact` has
    device and inode of what was mapped. What the execution made itself (`made`) may be another file
    each time. `copied` are the files of which the variant has its own copy; those that lie over the
    first folder are relinks, which are not looked at. `whole`: nothing was missed. It ran in the
    directory `root`, if there is one.
    """

    identities: Mapping[str, str]
    exact: frozenset[tuple[str, str, int]] = frozenset()
    made: frozenset[str] = frozenset()
    copied: VariantFiles | None = None
    whole: bool = True
    root: str = ""

    @property
    def own_folders(self) -> tuple[str, ...]:
        """Folders of the variant's own files."""
        return () if self.copied is None else self.copied.folders


@dataclass(frozen=True, slots=True)
class FileMismatch:
    """Files that were not as they were looked at, as texts.

    `others` and `changed` are other files than those that were looked at. `unseen` ran besides.
    `own` says whether any of the variant's own files was still seen when what is unseen was: a
    program that becomes another one was its own at first.
    """

    others: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    own: bool = False


def compare_files(
    looked: ExpectedFiles, seen: Sequence[RaceMapping], identities: Identities
) -> FileMismatch:
    """Holds what was seen in a race against what was looked at. Of what is gone, nothing is said.

    Reads files anew: what changed meanwhile is another program.
    """
    others: list[str] = []
    unseen: list[str] = []
    own_look = unseen_look = 0
    for file in seen:
        path = _place(file, looked)
        if any(path.startswith(f"{folder}/") for folder in looked.own_folders):
            own_look = max(own_look, file.last_look)
        if not path or _is_known(file, path, looked, identities):
            continue
        instead = _instead(path, looked)
        if instead:
            others.append(f"the race ran {path}, {instead}")
        elif looked.whole:
            unseen.append(f"the race ran {path}, which was not run when looked at")
            unseen_look = max(unseen_look, file.last_look)
    own = own_look > 0 and own_look >= unseen_look
    return FileMismatch(tuple(others), tuple(unseen), tuple(_changed(looked, identities)), own)


def summarize(problems: Sequence[str]) -> str:
    """The first of these, and how many more there are."""
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return "; ".join(problems[:_SHOWN]) + more


def _place(file: RaceMapping, looked: ExpectedFiles) -> str:
    """Path at which the file can be read; empty where there is none any more."""
    if file.deleted or file.other_root:
        return ""
    if in_own_scratch(file.path):
        return original_of(file.path, looked.copied) or ""
    inside = file.path.removeprefix(looked.root)
    if looked.root and inside.startswith("/") and not lies_in(Path(looked.root), inside):
        return inside
    return file.path


def _is_known(file: RaceMapping, path: str, looked: ExpectedFiles, identities: Identities) -> bool:
    if path in looked.made or (file.path, file.device, file.inode) in looked.exact:
        return True
    if any(path.startswith(f"{folder}/") for folder in looked.own_folders[1:]):
        return True
    sha256 = identities.of(path, file.inode if path == file.path else None)
    return not sha256 or sha256 in looked.identities.values()


def _instead(path: str, looked: ExpectedFiles) -> str:
    if path in looked.identities:
        return "which was another file when it was looked at"
    asked = _names(path)
    same = [identity for identity in looked.identities if asked & _names(identity)]
    return f"and {same[0]} when it was looked at" if same else ""


def _names(path: str) -> frozenset[str]:
    """Names by which a loader may have asked for a file: its own, and its soname."""
    dynamic = read_dynamic(Path(path))
    soname = "" if dynamic is None else dynamic.soname
    return frozenset((Path(path).name, soname)) - {""}


def _changed(looked: ExpectedFiles, identities: Identities) -> Iterator[str]:
    for path, sha256 in looked.identities.items():
        now = "" if path in looked.made else identities.of(path)
        if now and sha256 and now != sha256:
            yield f"{path} changed while it was raced"
