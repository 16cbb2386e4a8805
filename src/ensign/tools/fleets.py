"""One study from several hosts, as study files or bundles: one answer for each kind and for all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ensign.experiment.cluster.task_files import TaskFiles
from ensign.experiment.cluster.tasks import read_hosts
from ensign.experiment.study.stored import folder_of, stored_rounds
from ensign.experiment.study_file import StudyFile
from ensign.model.cluster import HostSlot
from ensign.model.comparisons import Comparison, Direction
from ensign.model.errors import InputError
from ensign.model.finding_kinds.fleet import (
    HOST_DIFFERS,
    HOST_JOBS,
    HOST_MISSING,
    HOST_NOISY,
    HOST_UNFINISHED,
    ONE_HOST,
    OTHER_BUILDS,
    SAME_HOST,
    TWIN_OF_FLEET,
)
from ensign.model.findings import Finding
from ensign.model.fleet import Fleet, FleetHost, FleetRow, HostKind, KindChoice, KindValue
from ensign.model.quoting import shortened
from ensign.model.trials import TWIN
from ensign.model.units import pluralize
from ensign.stats.fleet import (
    Estimate,
    Floats,
    fleet_mean,
    host_mean,
    kind_mean,
    next_host,
    noisy_hosts,
)
from ensign.stats.pair import LogInterval, PairNames, compared_by, exp
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import round_geomeans
from ensign.tools.measured_studies import (
    MeasuredStudy,
    common_variants,
    common_workloads,
    measured,
    require_comparable,
    strictest,
)

# What hosts of a kind should have in common.
_ALIKE = (
    "CPU", "SMT", "caches", "microcode", "governor", "turbo", "virtual machine", "kernel",
    "mitigations", "transparent huge pages",
)  # fmt: skip
_CPU = "CPU"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class HostResults:
    """Results of a host, and the kind that the user says it is of; empty: its processor's."""

    path: Path
    kind: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredHost(MeasuredStudy):
    """What was measured on one host of a kind; in a cluster by which `jobs`, as which slot."""

    kind: str
    jobs: tuple[str, ...] = ()
    slot: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the machine."""
        return dict(self.record.machine.facts)


def parse_host(text: str) -> HostResults:
    """`FILE`, or `KIND=FILE`. A file that is there is one, whatever is in its name."""
    kind, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return HostResults(Path(text))
    if not kind or not path:
        raise InputError(f"'{text}' is no FILE or KIND=FILE")
    return HostResults(Path(path), kind)


def parse_shares(texts: Sequence[str]) -> dict[str, float]:
    """`KIND=SHARE` each; shares count relative to each other. InputError."""
    shares: dict[str, float] = {}
    for text in texts:
        kind, _, number = text.rpartition("=")
        try:
            share = float(number.removesuffix("%"))
        except ValueError:
            share = math.nan
        if not kind or not math.isfinite(share) or share <= 0:
            raise InputError(f"--share '{text}': give KIND=SHARE, such as milan=0.6")
        if kind in shares:
            raise InputError(f"--share of '{kind}' is given twice")
        shares[kind] = share
    return shares


def fleet_of(hosts: Sequence[HostResults], shares: Mapping[str, float]) -> Fleet:
    """The answer for a fleet, of which each kind has such a share (all equal where none is given).

    InputError where results cannot be merged, or shares do not fit the kinds.
    """
    return merged([_read(host) for host in hosts], shares)


def _read(host: HostResults) -> MeasuredHost:
    one = measured(host.path)
    kind = host.kind or dict(one.record.machine.facts).get(_CPU, "unknown")
    return MeasuredHost(one.label, one.study, one.record, one.trials, kind)


def fleet_of_study(file: StudyFile) -> Fleet:
    """The answer for the hosts of a cluster that a study was given to, as far as they are.

    InputError where it was given to none, or fewer than two have two complete rounds.
    """
    folder = folder_of(file)
    known = read_hosts(folder)
    if known is None:
        raise InputError(f"{file.path} was not raced on a cluster: 'ensign run STUDY --on FILE'")
    files = TaskFiles(folder)
    hosts, early = [], []
    for slot in known.hosts:
        try:
            host = _host_of_study(file, slot, files)
        except InputError as error:
            early.append(HOST_MISSING.found(f"{error}{_doing(slot, files)}", slot.name))
            continue
        hosts.append(host)
        if not host.record.complete:
            text = f"it has not raced all of its rounds yet{_doing(slot, files)}"
            early.append(HOST_UNFINISHED.found(text, host.label))
    if len(hosts) < 2:  # noqa: PLR2004 - one is no fleet
        one = f"; 'ensign report {file.path} --host {hosts[0].slot}' shows one" if hosts else ""
        raise InputError(
            f"{len(hosts)} of {len(known.hosts)} hosts have two complete rounds yet, and a fleet "
            f"needs two hosts{one}"
        )
    fleet = merged(hosts, known.shares, tuple(dict.fromkeys(slot.kind for slot in known.hosts)))
    more = (*early, *(finding for slot in known.hosts for finding in _job_findings(slot, files)))
    return replace(fleet, findings=(*fleet.findings, *more))


def _host_of_study(file: StudyFile, slot: HostSlot, files: TaskFiles) -> MeasuredHost:
    study, record, trials = stored_rounds(replace(file, host=slot.name))
    lines = [line for line in files.lines(slot.name) if line.node]
    node = f" ({lines[-1].node})" if lines and lines[-1].node != slot.name else ""
    jobs = tuple(dict.fromkeys(line.job for line in lines))
    host = MeasuredHost(f"{slot.name}{node}", study, record, trials, slot.kind, jobs, slot.name)
    _require_rounds(host, host.costs([workload.name for workload in study.workloads]))
    return host


def _doing(slot: HostSlot, files: TaskFiles) -> str:
    """What its job last said that it is doing."""
    progress = files.progress(slot.name)
    if progress is None:
        return ""
    done = f" ({progress.done} of {progress.total} executions)" if progress.done else ""
    text = f", {progress.text}" if progress.text else ""
    return f"; job {progress.job}: {progress.phase}{text}{done}"


def _job_findings(slot: HostSlot, files: TaskFiles) -> Iterator[Finding]:
    notes = [f"job {line.job}: {line.said}" for line in files.lines(slot.name) if line.said]
    if notes:
        yield HOST_JOBS.found("; ".join(notes), slot.name)


def _require_rounds(host: MeasuredHost, costs: RoundCosts) -> None:
    if len(costs.rounds) < 2:  # noqa: PLR2004 - one value has no spread
        raise InputError(
            f"{host.label} has fewer than two complete rounds of the workloads that all have"
        )


def merged(
    hosts: Sequence[MeasuredHost], shares: Mapping[str, float], kinds: Sequence[str] = ()
) -> Fleet:
    """The same, of results that are read; `kinds` are in the fleet, measured or not. Pure."""
    first = hosts[0]
    workloads, variants = common_workloads(hosts), common_variants(hosts)
    if len(hosts) < 2:  # noqa: PLR2004 - one is no fleet
        raise InputError("a fleet needs the results of two hosts or more")
    require_comparable(hosts, workloads)
    if not variants:
        raise InputError("no variant but the baseline is in the results of all hosts")
    costs = [host.costs(workloads) for host in hosts]
    for host, round_costs in zip(hosts, costs, strict=True):
        _require_rounds(host, round_costs)
    if any(cost.workloads != costs[0].workloads for cost in costs):
        raise InputError("benchmarks differ from host to host: leave out what some host lacks")
    twins = (TWIN,) if all(host.record.has_twin for host in hosts) else ()
    level, margin = strictest(hosts)
    merging = _Merging(
        costs=tuple(costs),
        of_kind=tuple(host.kind for host in hosts),
        kinds=_kinds((*kinds, *(host.kind for host in hosts)), shares),
        baseline=first.record.raced[0],
        level=level,
        margin=margin,
    )
    rows = [merging.rows(name) for name in (*variants, *twins)]
    suite = tuple(over_all for over_all, _ in rows)
    choice = _choice(suite)
    return Fleet(
        name=first.study.name,
        title=first.study.title,
        baseline=merging.baseline,
        twin=TWIN,
        metric=costs[0].metric,
        level=merging.level,
        margin=merging.margin,
        hosts=tuple(
            _fleet_host(host, len(host_costs.rounds))
            for host, host_costs in zip(hosts, costs, strict=True)
        ),
        kinds=merging.kinds,
        equal_shares=not shares,
        suite=suite,
        workloads=tuple(row for _, those in rows for row in those),
        choice=choice,
        own_builds=tuple(merging.own_builds(choice or merging.baseline, variants)),
        left_out=tuple(_left_out(hosts, workloads, variants)),
        findings=(*_findings(hosts, merging, variants), *_of_twin(suite)),
    )


def _fleet_host(host: MeasuredHost, rounds: int) -> FleetHost:
    record = host.record
    return FleetHost(host.label, host.kind, record.made_at, record.version, rounds, host.jobs)


@dataclass(frozen=True, slots=True)
class _Merging:
    """Costs of each host, the same variants and workloads in all of them."""

    costs: tuple[RoundCosts, ...]
    of_kind: tuple[str, ...]
    kinds: tuple[HostKind, ...]
    baseline: str
    level: float
    margin: float | None

    def rows(self, variant: str) -> tuple[FleetRow, list[FleetRow]]:
        """A variant against the baseline: over all workloads, and on each."""
        ratios = [costs.log_ratios(variant, self.baseline) for costs in self.costs]
        of_workload = [
            self._row(variant, name, _means(host[index] for host in ratios))
            for index, name in enumerate(self.costs[0].workloads)
        ]
        return self._row(variant, "", _means(map(round_geomeans, ratios))), of_workload

    def _row(self, variant: str, workload: str, hosts: Sequence[Estimate]) -> FleetRow:
        names = PairNames(variant, self.baseline, self.costs[0].metric)
        of_kind = [(kind, self._of(kind.name, hosts)) for kind in self.kinds]
        means = [kind_mean(those) for _, those in of_kind]
        known = [(kind.share, mean) for kind, mean in zip(self.kinds, means, strict=True) if mean]
        fleet = fleet_mean(known) if len(known) == len(self.kinds) else None
        return FleetRow(
            variant=variant,
            workload=workload,
            hosts=tuple(
                self._comparison(names, host, len(costs.rounds))
                for host, costs in zip(hosts, self.costs, strict=True)
            ),
            kinds=tuple(
                self._value(kind.name, those, mean, names)
                for (kind, those), mean in zip(of_kind, means, strict=True)
            ),
            fleet=None if fleet is None else self._comparison(names, fleet, len(hosts)),
        )

    def own_builds(self, choice: str, variants: Sequence[str]) -> Iterator[KindChoice]:
        """Kinds on which another variant is shown to be faster than the fleet's (or the baseline).

        The level holds for all pairs together (Bonferroni).
        """
        others = [name for name in (self.baseline, *variants) if name != choice]
        level = 1 - (1 - self.level) / max(1, len(others) * len(self.kinds))
        for kind in self.kinds:
            means = []
            for other in others:
                mean = kind_mean(self._of(kind.name, self._over_all(other, choice)))
                if mean is not None and mean.interval(level).high < 0:
                    means.append((mean, other))
            if means:
                mean, other = min(means, key=lambda each: each[0].mean)
                names = PairNames(other, choice, self.costs[0].metric)
                hosts = self.of_kind.count(kind.name)
                interval = mean.interval(level)
                yield KindChoice(kind.name, self._comparison(names, mean, hosts, interval))

    def spreads(self, variants: Sequence[str]) -> list[tuple[float, int]]:
        """How the rounds of each host differ: of all variants, over all workloads."""
        of_hosts = []
        for costs in self.costs:
            rounds = [round_geomeans(costs.log_ratios(name, self.baseline)) for name in variants]
            variance = float(np.mean([ratios.var(ddof=1) for ratios in rounds]))
            of_hosts.append((variance**0.5, len(costs.rounds) - 1))
        return of_hosts

    def _over_all(self, variant: str, baseline: str) -> list[Estimate]:
        """Of each host, over all workloads."""
        ratios = (costs.log_ratios(variant, baseline) for costs in self.costs)
        return _means(map(round_geomeans, ratios))

    def _of(self, kind: str, hosts: Sequence[Estimate]) -> list[Estimate]:
        return [host for host, of in zip(hosts, self.of_kind, strict=True) if of == kind]

    def _value(
        self, kind: str, hosts: Sequence[Estimate], mean: Estimate | None, names: PairNames
    ) -> KindValue:
        if mean is None:
            return KindValue(kind, len(hosts), None)
        ahead = next_host(hosts, self.level)
        return KindValue(
            kind,
            len(hosts),
            self._comparison(names, mean, len(hosts)),
            mean.between,
            None if ahead is None else (exp(ahead.low), exp(ahead.high)),
        )

    def _comparison(
        self, names: PairNames, mean: Estimate, count: int, interval: LogInterval | None = None
    ) -> Comparison:
        interval = interval or mean.interval(self.level)
        return compared_by(names, interval, (self.level, self.margin), count, "fleet")


def _means(of_hosts: Iterable[Floats]) -> list[Estimate]:
    return [mean for host in of_hosts if (mean := host_mean(host)) is not None]


def _kinds(of_hosts: Iterable[str], shares: Mapping[str, float]) -> tuple[HostKind, ...]:
    names = tuple(dict.fromkeys(of_hosts))
    unknown = [name for name in shares if name not in names]
    if unknown:
        raise InputError(f"--share {unknown[0]}: no such kind; there are {', '.join(names)}")
    missing = [name for name in names if shares and name not in shares]
    if missing:
        raise InputError(f"--share of '{missing[0]}' is missing: give one for each kind")
    total = sum(shares.values())
    return tuple(
        HostKind(name, shares[name] / total if shares else 1 / len(names)) for name in names
    )


def _choice(suite: Sequence[FleetRow]) -> str:
    """The fastest for the fleet, where any is shown to be faster than the baseline."""
    faster = [
        (row.fleet.ratio, row.variant)
        for row in suite
        if row.variant != TWIN and row.fleet and row.fleet.direction is Direction.FASTER
    ]
    return min(faster)[1] if faster else ""


def _left_out(
    hosts: Sequence[MeasuredHost], workloads: Sequence[str], variants: Sequence[str]
) -> Iterator[str]:
    baseline = hosts[0].record.raced[0]
    for host in hosts:
        for name in host.record.raced:
            if name not in (baseline, *variants):
                yield f"variant {name} ({host.label})"
        for workload in host.study.workloads:
            if workload.name not in workloads:
                yield f"workload {workload.name} ({host.label})"


def _findings(
    hosts: Sequence[MeasuredHost], merging: _Merging, variants: Sequence[str]
) -> Iterator[Finding]:
    for kind in merging.kinds:
        of_kind = [host for host in hosts if host.kind == kind.name]
        if len(of_kind) < 2:  # noqa: PLR2004 - one says nothing of the others
            has = pluralize(len(of_kind), "host") if of_kind else "no host that was measured"
            text = f"{kind.name} has {has}, so nothing is claimed of the kind, nor of the fleet"
            yield ONE_HOST.found(text, of_kind[0].label if of_kind else kind.name)
        else:
            yield from _differing(of_kind)
    spreads = merging.spreads(variants)
    for index in noisy_hosts(spreads):
        others = [spread for other, (spread, _) in enumerate(spreads) if other != index]
        text = (
            f"its rounds differ by {spreads[index][0] * 100:.2g} % (standard deviation), those of "
            f"the other hosts by {max(others) * 100:.2g} % at most"
        )
        yield HOST_NOISY.found(text, hosts[index].label)
    yield from _counted_twice(hosts)
    yield from _other_builds(hosts, (merging.baseline, *variants))


def _counted_twice(hosts: Sequence[MeasuredHost]) -> Iterator[Finding]:
    labels: dict[str, list[str]] = {}
    for host in hosts:
        labels.setdefault(host.facts.get("host", "unknown"), []).append(host.label)
    for identity, those in labels.items():
        if identity != "unknown" and len(those) > 1:
            text = f"{', '.join(those)} are one host, which counts {len(those)} times here"
            yield SAME_HOST.found(text)


def _differing(hosts: Sequence[MeasuredHost]) -> Iterator[Finding]:
    """Hosts of one kind that are not as most of them are, or as the first."""
    facts = [host.facts for host in hosts]
    usual = {
        name: Counter(fact.get(name, "unknown") for fact in facts).most_common(1)[0][0]
        for name in _ALIKE
    }
    for host, own in zip(hosts, facts, strict=True):
        texts = [
            f"{name} '{shortened(own.get(name, 'unknown'), _SHOWN)}' instead of "
            f"'{shortened(value, _SHOWN)}'"
            for name, value in usual.items()
            if own.get(name, "unknown") != value
        ]
        if texts:
            text = f"unlike other hosts of {host.kind}: {'; '.join(texts)}"
            yield HOST_DIFFERS.found(text, host.label)


def _other_builds(hosts: Sequence[MeasuredHost], names: Sequence[str]) -> Iterator[Finding]:
    differing = []
    for name in names:
        hashes = {
            build.identity
            for host in hosts
            for build in host.record.builds
            if build.variant == name
        }
        if len(hashes) > 1:
            differing.append(name)
    if differing:
        text = f"not the same bytes on all hosts: {', '.join(differing)}"
        yield OTHER_BUILDS.found(text)


def _of_twin(suite: Sequence[FleetRow]) -> Iterator[Finding]:
    for row in suite:
        fleet = row.fleet
        if row.variant == TWIN and fleet and fleet.direction is not Direction.UNCLEAR:
            text = (
                "the identical copy of the baseline differs from it over all hosts: differences of "
                "that size mean nothing here"
            )
            yield TWIN_OF_FLEET.found(text, TWIN)
