"""The source of a study's variants, which may be several commits of one repository."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.builders.request import BuildPorts, BuildRequest
from ensign.host.files import tree_entries
from ensign.model.builds import BuildEvent, OnEvent
from ensign.model.finding_kinds.builds import EMPTY_SUBMODULES, SAME_COMMIT
from ensign.model.findings import Finding
from ensign.model.quoting import shortened
from ensign.model.unit_choices import UnitChoices
from ensign.model.variants import Variant, of_units
from ensign.sources.checkouts import EMPTY_SUBMODULES as EMPTY
from ensign.sources.obtain import Lock, SourcePorts, SourceTree, obtain_revisions

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class SourceTrees:
    """The trees by revision, that of the baseline first; "" is the source as its table says it."""

    by_revision: Mapping[str, SourceTree]

    @property
    def first(self) -> SourceTree:
        """The baseline's."""
        return next(iter(self.by_revision.values()))

    def at(self, revision: str) -> SourceTree:
        """The tree that variants of that revision are built from."""
        return self.by_revision[revision]

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the trees, by revision."""
        return {revision: tree.sha256 for revision, tree in self.by_revision.items()}

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """For people and the report: each commit under the revision that was asked for."""
        if list(self.by_revision) == [""]:
            return self.first.facts
        own = ("commit", "tree_sha256")
        return (
            *(pair for pair in self.first.facts if pair[0] not in own),
            *(
                (f"{name} of {revision}" if revision else name, dict(tree.facts)[name])
                for revision, tree in self.by_revision.items()
                for name in own
            ),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Problems of revisions: what they lack, and which are one and the same."""
        first: dict[str, str] = {}
        findings = []
        empty = [
            dict(source_tree.facts).get(EMPTY, "") for source_tree in self.by_revision.values()
        ]
        if names := shortened(", ".join(dict.fromkeys(filter(None, empty))), _LONGEST):
            findings.append(EMPTY_SUBMODULES.found(f"folders of submodules are empty: {names}"))
        for revision, tree in self.by_revision.items():
            same = first.setdefault(tree.sha256, revision)
            if same == revision:
                continue
            commit = dict(tree.facts)["commit"]
            known = dict(self.by_revision[same].facts)["commit"]
            other = same or "source.commit"
            text = f"{revision} and {other} are the same commit, {commit[:12]}"
            if commit != known:
                text = f"{revision} ({commit[:12]}) has the same files as {other} ({known[:12]})"
            findings.append(SAME_COMMIT.found(text))
        return tuple(findings)


def revisions_of(variants: Iterable[Variant], baseline: str) -> tuple[str, ...]:
    """Revisions that the variants are built from, the baseline's first."""
    ordered = sorted(variants, key=lambda variant: variant.name != baseline)
    every = [*ordered, *filter(None, map(of_units, ordered))]
    return tuple(dict.fromkeys(variant.revision for variant in every))


def pinned_hashes(revisions: Iterable[str], lock: Lock | None) -> dict[str, str]:
    """The hash of each tree, where the lock file has it; else what no tree has."""
    pins = {} if lock is None else lock.pins
    return {
        revision: pins[revision].tree_sha256
        if revision in pins
        else (f"unknown {revision}" if revision else "")
        for revision in revisions
    }


def obtain_sources(request: BuildRequest, ports: BuildPorts, on_event: OnEvent) -> SourceTrees:
    """The pristine source at each revision, told as an event. InputError as `obtain_revisions`."""
    source_ports = SourcePorts(ports.processes, ports.cache, ports.env)
    started_ns = ports.clock.monotonic_ns()
    on_event(BuildEvent("started", "source", 0.0, 0.0))
    trees = obtain_revisions(
        request.study.source,
        revisions_of(request.variants, request.baseline),
        request.path,
        source_ports,
        update_lock=request.update_lock,
    )
    elapsed_s = (ports.clock.monotonic_ns() - started_ns) / 1e9
    on_event(BuildEvent("finished", "source", elapsed_s, 0.0))
    return SourceTrees(trees)


def lay_over(units: UnitChoices, other: Path, tree: Path) -> None:
    """Make the sources of `units` in `tree` what they are in the tree `other`; gone where none.

    Nothing is written through a link that the tree has.
    """
    ours, theirs = (dict(_regular_files(root)) for root in (tree, other))
    inside = tree.resolve()
    for name in sorted(filter(units.has, ours.keys() | theirs.keys())):
        target = tree / name
        if name not in theirs:
            target.unlink()
            continue
        if target.parent.resolve().is_relative_to(inside):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copy(theirs[name], target)


def _regular_files(root: Path) -> Iterator[tuple[str, Path]]:
    for name, path in tree_entries(root, (".git",)):
        if path.is_file() and not path.is_symlink():
            yield name, path
