"""One study on several hosts: what is true of each, of each kind of host, and of the fleet."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.comparisons import Comparison
from ensign.model.findings import Finding
from ensign.model.trials import Metric


@dataclass(frozen=True, slots=True)
class FleetHost:
    """A host: `label` is how the user called its results, `rounds` counts whole ones.

    `jobs` raced on it, where a cluster did.
    """

    label: str
    kind: str
    made_at: str
    version: str
    rounds: int
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostKind:
    """Hosts of which those that were measured are a sample, and their share of the fleet."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class KindValue:
    """A variant on one kind of host; `comparison` is None where a single host was measured.

    `between` is the standard deviation of hosts' true log ratios; `next_host` are the bounds of the
    ratio on one more host, None of fewer than five.
    """

    kind: str
    hosts: int
    comparison: Comparison | None
    between: float = 0.0
    next_host: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A variant on one workload, or (`workload` empty) over all: each host, kind, and the fleet.

    `fleet` is None where a kind has a single host.
    """

    variant: str
    workload: str
    hosts: tuple[Comparison, ...]
    kinds: tuple[KindValue, ...]
    fleet: Comparison | None


@dataclass(frozen=True, slots=True)
class KindChoice:
    """A build of its own for a kind, against the fleet's: `comparison` has that as its baseline."""

    kind: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything that `ensign merge` may show.

    `equal_shares`: nobody said how large the kinds are. `suite` and `workloads` have the twin's
    rows, too. `choice` is the variant that is fastest for the fleet, where one is shown to be
    faster than the baseline; `own_builds` are kinds on which another one is shown to be faster
    than that, or than the baseline where there is none. `left_out` are variants and workloads that
    some host lacks.
    """

    name: str
    title: str
    baseline: str
    twin: str
    metric: Metric
    level: float
    margin: float | None
    hosts: tuple[FleetHost, ...]
    kinds: tuple[HostKind, ...]
    equal_shares: bool
    suite: tuple[FleetRow, ...]
    workloads: tuple[FleetRow, ...]
    choice: str
    own_builds: tuple[KindChoice, ...]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]
