"""What the result of a comparison follows from, in memory or as one bundle."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ensign import __version__
from ensign.experiment.failures import failure_findings
from ensign.experiment.figures import FIGURES, figures_of
from ensign.experiment.judge import judge, result_of_record
from ensign.experiment.record import Record
from ensign.host.files import write_atomically
from ensign.host.json_text import read_json
from ensign.model.errors import InputError
from ensign.model.experiment import Experiment
from ensign.model.finding_kinds.builds import SAME_BYTES
from ensign.model.finding_kinds.race import LONGER_WOULD_TELL
from ensign.model.findings import Finding
from ensign.model.results import Result
from ensign.model.trials import Trial
from ensign.model.units import duration_option
from ensign.stats.longer import longer_race
from ensign.store.bundle import pack
from ensign.store.trial_file import require_plausible

FILE = "comparison.json"


@dataclass(frozen=True, slots=True)
class CompareEvidence:
    """A race of commands that ended: its rule, what it rests on, and its trials."""

    experiment: Experiment
    record: Record
    trials: tuple[Trial, ...]
    redo: str = ""

    def result(self) -> Result:
        """Everything that reports and the exit status need. Pure."""
        record, extra = self.record, {"redo": self.redo}
        if record.withheld or not self.trials:
            known = result_of_record(self.experiment, record)
            failed = failure_findings(record.early, record.raced)
            return replace(known, findings=(*failed, *known.findings), extra=extra)
        result = judge(self.experiment, record, self.trials).result
        longer = () if record.doubt else self._longer(result)
        findings = (*result.findings, *longer)
        return replace(result, findings=findings, trials=self.trials, extra=extra)

    def write_bundle(self, path: Path) -> None:
        """One file that `read_bundled` reads; slices are left out. StorageFailed."""
        bare = replace(self, trials=tuple(replace(each, slices=()) for each in self.trials))
        text = json.dumps(_EVIDENCE.dump_python(bare, mode="json"), indent=1, sort_keys=True)
        figures = json.dumps(figures_of(bare.result()), indent=1, sort_keys=True)
        members = {FILE: text.encode(), f"{FIGURES}.json": figures.encode()}
        write_atomically(path.absolute(), pack(FILE, __version__, members))

    def _longer(self, result: Result) -> tuple[Finding, ...]:
        """What it would take to decide what is open, where nothing else is wrong with it."""
        same = {each.subject for each in self.record.findings if each.is_a(SAME_BYTES)}
        each = (one for one in result.comparisons if one.variant not in same)
        longer = longer_race(each, result.margin)
        if longer is None or self.record.used_s is None:
            return ()
        racing_ns = sum(trial.wall_ns for trial in self.trials)
        whole_ns = self.record.used_s * 1e9 - racing_ns + longer.times * racing_ns
        text = (
            f"to find a difference of {longer.difference * 100:g} % here in 4 of 5 races "
            f"takes about --budget {duration_option(whole_ns)}"
        )
        return (LONGER_WOULD_TELL.found(text),)


_EVIDENCE = TypeAdapter(CompareEvidence)


def read_bundled(folder: Path) -> CompareEvidence:
    """What was packed. InputError where it is damaged, or of another version."""
    path = folder / FILE
    try:
        evidence = _EVIDENCE.validate_python(read_json(path.read_bytes()))
    except (ValidationError, ValueError):
        raise InputError(f"{FILE} in the bundle is of another version of ensign") from None
    try:
        for trial in evidence.trials:
            require_plausible(trial)
    except ValueError as error:
        raise InputError(f"{FILE} in the bundle is no comparison: {error}") from None
    return evidence
