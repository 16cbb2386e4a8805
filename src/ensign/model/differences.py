"""What two studies of the same builds say together: two hosts, or two dates."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.comparisons import Comparison
from ensign.model.findings import Finding
from ensign.model.results import SignificantWorkloads


@dataclass(frozen=True, slots=True)
class StudySide:
    """One of the two: `label` is how the user called it, `rounds` counts whole ones."""

    label: str
    name: str
    made_at: str
    version: str
    rounds: int


@dataclass(frozen=True, slots=True)
class Differing:
    """A fact of the machine or a setting that is not the same; empty where a side has none."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class BuildPair:
    """Hashes of the loadable bytes of one variant on both sides."""

    variant: str
    a: str
    b: str

    @property
    def same(self) -> bool:
        """Whether both are known and equal."""
        return bool(self.a) and self.a == self.b


@dataclass(frozen=True, slots=True)
class RatioChange:
    """How a variant's cost ratio changed from A to B; `workload` is empty for all of them.

    `comparison` is about the ratio of ratios: above 1 the variant is relatively slower in B.
    """

    workload: str
    comparison: Comparison
    ratio_a: float
    ratio_b: float


@dataclass(frozen=True, slots=True)
class StudyDifference:
    """Everything that `ensign diff-studies` may show; what is of one side alone is named.

    `machine` and `settings` have what differs. `suite` and `workloads` have the twin's rows, too,
    whose truth is no change. `significant` lists workloads that moved, one error rate for each
    variant.
    """

    a: StudySide
    b: StudySide
    baseline: str
    twin: str
    level: float
    margin: float | None
    builds: tuple[BuildPair, ...]
    machine: tuple[Differing, ...]
    settings: tuple[Differing, ...]
    suite: tuple[RatioChange, ...]
    workloads: tuple[RatioChange, ...]
    significant: tuple[SignificantWorkloads, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    findings: tuple[Finding, ...]
