"""Holds each trial of a study against the traced executions: who ran something else is out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ensign.lab.raced_files import LookedAt, Otherwise, otherwise, told
from ensign.lab.study.trees import ProgramTree
from ensign.lab.study.variants import RacedVariants
from ensign.lab.traced import Identities
from ensign.model.errors import RaceFailed
from ensign.model.finding_kinds.ran import RAN_SOMETHING_ELSE, RAN_UNSEEN
from ensign.model.findings import Finding
from ensign.model.ran import RanFile, RanOnce
from ensign.model.trials import Trial, VariantFailure, seen_in_race


@dataclass(frozen=True, slots=True)
class RaceCheck:
    """`traces` are of all variants that take part, on each workload on which they were traced.

    The `baseline` is the variant that other variants are made of: its twin, and its relinks.
    """

    traces: Sequence[RanOnce]
    baseline: str
    identities: Identities = field(default_factory=Identities)

    def __call__(self, trial: Trial, variants: RacedVariants) -> Trial:
        """The trial without the variants that ran something else, which have failed in it.

        What ran besides is a finding. RaceFailed where it is the baseline, or its twin.
        """
        failures: list[VariantFailure] = []
        findings: list[Finding] = []
        paths = dict(variants.artifacts)
        for variant in (each.variant for each in trial.variants):
            # The twin and the baseline of a later group have names of their own.
            path = paths.get(variant) or variants.twin or variants.artifacts[0][1]
            found = self._seen(trial, variant, variants.trees.get(path))
            problems = (*found.others, *found.changed)
            if found.unseen and not found.own:
                problems = (*problems, *found.unseen)
            if problems and (variant not in paths or variant == variants.artifacts[0][0]):
                raise RaceFailed(
                    f"{variant} ran other files than when it was looked at, on workload "
                    f"{trial.workload}: {told(problems)}; remove the study's results folder to "
                    "look at it again"
                )
            if problems:
                failures.append(
                    VariantFailure(
                        variant,
                        RAN_SOMETHING_ELSE.code,
                        told(problems),
                        workload=trial.workload,
                        round_index=trial.round_index,
                    )
                )
            elif found.unseen:
                findings.append(RAN_UNSEEN.found(told(found.unseen), variant))
        if not failures and not findings:
            return trial
        left = trial.without({each.variant for each in failures})
        return replace(
            left,
            failures=(*left.failures, *failures),
            findings=(*left.findings, *findings),
        )

    def _seen(self, trial: Trial, variant: str, tree: ProgramTree | None) -> Otherwise:
        looked = self._looked_at(variant, trial.workload, tree)
        if looked is None:
            return Otherwise()
        return otherwise(looked, seen_in_race([trial], variant), self.identities)

    def _looked_at(self, variant: str, workload: str, tree: ProgramTree | None) -> LookedAt | None:
        """What that variant ran there; where it was not traced, its own files on another workload.

        It then runs the machine's files as the baseline does.
        """
        own = [each for each in self.traces if each.variant == variant]
        own = own or [each for each in self.traces if each.variant == self.baseline]
        here = [each for each in own if each.workload == workload]
        chosen: list[RanOnce] = here[:1]
        if not here:
            chosen = own[:1]
            chosen += [
                replace(each, files=tuple(file for file in each.files if not file.built))
                for each in self.traces
                if (each.variant, each.workload) == (self.baseline, workload)
            ][:1]
        files = dict(_placed([file for each in chosen for file in each.files], tree))
        if not files:
            return None
        return LookedAt(
            identities={path: file.sha256 for path, file in files.items()},
            made=frozenset(path for path, file in files.items() if file.made),
            copied=None if tree is None else tree.files,
            whole=all(not each.not_judged for each in chosen),
        )


def _placed(files: Sequence[RanFile], tree: ProgramTree | None) -> Iterator[tuple[str, RanFile]]:
    """Files by the paths that they have in the race, or that they are copied from."""
    for file in files:
        if not file.built:
            yield file.path, file
        elif tree is not None:
            yield f"{tree.folders[0]}/{file.path}", file
