"""Workloads of which no two variants may be alive at once: they write the same files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from ensign.experiment.shared_files import SharedFile, shared_files, shared_finding
from ensign.experiment.study.single_trials import first_requests
from ensign.experiment.study.tracing import laid_out, traced_once
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.experiment.tracing import Tracer
from ensign.host.clock import Clock
from ensign.model.errors import InputError
from ensign.model.executed_files import RanOnce
from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.traced_execution import TracedExecution, nothing_seen
from ensign.model.trials import TWIN
from ensign.model.units import parse_duration_ns
from ensign.store.folder import StudyFolder

# What looking may take, beside the study's budget, which is for racing: a share of it, or this.
_SHARE_OF_BUDGET = 0.1
_AT_LEAST_NS = 10 * 10**9
NO_TIME = "looking had taken a tenth of the study's budget already"


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the baseline and its twin wrote, by workload; the twin is there where it says more.

    Variants run the same commands: what baseline and twin share, all share. Workloads of one server
    with equal arguments have what was seen of the first of them. `ran` is what the baseline ran,
    where all of it was seen.
    """

    by_workload: Mapping[str, Mapping[str, TracedExecution]]
    baseline: str
    ran: tuple[RanOnce, ...]

    @property
    def shared(self) -> dict[str, tuple[SharedFile, ...]]:
        """The files that both write, by workload; those alone that have some."""
        found = {name: shared_files(seen) for name, seen in self.by_workload.items()}
        return {name: files for name, files in found.items() if files}

    @property
    def of_baseline(self) -> dict[str, TracedExecution]:
        """What was seen of the baseline, by workload."""
        return {name: seen[self.baseline] for name, seen in self.by_workload.items()}

    @property
    def apart(self) -> frozenset[str]:
        """The workloads whose variants cannot be alive at once."""
        return frozenset(self.shared)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """`shared-files` by workload, and `not-judged`, once for each reason."""
        names = {TWIN: f"{self.baseline} (twin)"}
        found: list[Finding] = []
        for workload, files in self.shared.items():
            found += shared_finding(files, names, apart=True, subject=workload)
        reasons: dict[str, list[str]] = {}
        for workload, seen in self.by_workload.items():
            for reason in {each.not_judged for each in seen.values() if not each.followed}:
                reasons.setdefault(reason, []).append(workload)
        for reason, workloads in reasons.items():
            text = f"not judged: whether variants write the same files: {reason}"
            found.append(NOT_JUDGED.found(text, ", ".join(workloads)))
        return tuple(found)


_SHARING = TypeAdapter(Sharing)


@dataclass(frozen=True, slots=True)
class SharingContext:
    """Who looks, where what was seen is kept, and whom to tell of each workload."""

    tracer: Tracer
    clock: Clock
    folder: StudyFolder
    on_trace: Callable[[str], None]

    def sharing(self, study: Study, variants: VariantSet, key: str) -> Sharing:
        """What was seen, now or by an earlier call under that key."""
        name = f"shared/{key}"
        stored = self.folder.read_json(name)
        if stored is not None:
            try:
                return _SHARING.validate_json(json.dumps(stored))
            except ValidationError:
                path = self.folder.json_file(name)
                raise InputError(f"{path} is damaged; delete it and run again") from None
        found = self._look(study, variants)
        self.folder.write_json(name, json.loads(_SHARING.dump_json(found)))
        return found

    def _look(self, study: Study, variants: VariantSet) -> Sharing:
        share_ns = round(parse_duration_ns(study.race.budget) * _SHARE_OF_BUDGET)
        end_ns = self.clock.monotonic_ns() + max(share_ns, _AT_LEAST_NS)
        name = variants.artifacts[0][0]
        found: dict[str, dict[str, TracedExecution]] = {}
        ran: list[RanOnce] = []
        alike: dict[object, str] = {}
        for workload in study.workloads:
            key = _program(study, variants, workload)
            earlier = alike.setdefault(key, workload.name)
            if earlier != workload.name:
                found[workload.name] = found[earlier]
                continue
            self.on_trace(workload.name)
            first, files = self._trace(study, variants, workload, end_ns)
            ran += (each for each in files if not each.not_judged)
            seen = {name: first}
            if first.written:
                seen[TWIN], _ = self._trace(study, variants, workload, end_ns, TWIN)
            found[workload.name] = seen
        return Sharing(found, name, tuple(ran))

    def _trace(
        self,
        study: Study,
        variants: VariantSet,
        workload: Workload,
        end_ns: int,
        variant: str = "",
    ) -> tuple[TracedExecution, tuple[RanOnce, ...]]:
        """The baseline, or its twin: each in its own copy of the files."""
        left_ns = end_ns - self.clock.monotonic_ns()
        if left_ns <= 0:
            return nothing_seen(NO_TIME), ()
        with laid_out(variants, variants.artifacts[0][0], variant) as place:
            seen, ran = traced_once(study, place, workload, self.tracer, left_ns)
        return seen, (ran,)


def _program(study: Study, variants: VariantSet, workload: Workload) -> object:
    """What is the same for workloads of one server with equal arguments."""
    requests = first_requests(workload)
    alone = variants.only_baseline()
    baseline = race_request(study, alone, workload, requests, seed=study.race.seed).variants[0]
    return workload.name if baseline.load is None else baseline.program
