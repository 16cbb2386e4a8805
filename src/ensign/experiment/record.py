"""What a result rests on besides its trials, as one JSON file in the store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from ensign.experiment.measurements import SeenRunning
from ensign.model.builds import BuildFacts
from ensign.model.errors import InputError
from ensign.model.executed_files import WhatRan
from ensign.model.findings import Finding
from ensign.model.precision import Precision
from ensign.model.results import MachineFacts, Stopped, VariantFacts
from ensign.model.trials import Mode, VariantFailure
from ensign.store.folder import StudyFolder
from ensign.store.trial_file import MOST_ROUNDS

STUDY = "study"


@dataclass(frozen=True, slots=True)
class Record:
    """`key` names the trials; `raced` are the variants that take part, the baseline first.

    `commands` has what ran per workload, `made_at` when it was written (ISO 8601); `complete` says
    whether everything that was planned is measured. `workloads` are those that were raced; empty
    means all of the study. `relinks` is how many of each variant the rounds used in turn,
    `spread_key` names the trials of the baseline's relinks; 0 and empty where there were none.
    `plan_sha256` is that of the plan by which a confirmation was raced. `expected` is the precision
    told after the first few rounds, where it was. `budget` and `precision` are those that it was
    raced with, which the command line may have set; empty in older records. The spread of the
    `first` rounds decided how many there were (`PairRule.first`). `metric` is the cost that was
    compared; empty where it is what the study says. `confinement` says what confined the programs.

    Of commands that were compared: `mode` is how they were to take turns, `early` has what failed
    before the race, `seen` what each ran in a traced execution, `measured` what is known where
    nothing was raced. `doubt` says why nothing is claimed whatever the numbers are, `withheld` why
    nothing is compared, `stopped` why there are no more rounds; `used_s` is the time of all.
    """

    key: str
    raced: tuple[str, ...]
    rounds_planned: int
    builds: tuple[BuildFacts, ...]
    machine: MachineFacts
    findings: tuple[Finding, ...]
    commands: tuple[tuple[str, str], ...]
    toolchains: tuple[tuple[str, str], ...]
    source: tuple[tuple[str, str], ...]
    version: str
    made_at: str
    complete: bool
    workloads: tuple[str, ...] = ()
    relinks: int = 0
    spread_key: str = ""
    plan_sha256: str = ""
    expected: Precision | None = None
    budget: str = ""
    precision: str = ""
    ran: tuple[WhatRan, ...] = ()
    first: int = 0
    metric: str = ""
    has_twin: bool = True
    mode: Mode = Mode.INTERLEAVED
    early: tuple[VariantFailure, ...] = ()
    seen: Mapping[str, SeenRunning] = field(default_factory=dict)
    measured: tuple[VariantFacts, ...] = ()
    doubt: str = ""
    withheld: str = ""
    stopped: Stopped | None = None
    used_s: float | None = None
    confinement: str = ""

    @property
    def twin_apart(self) -> bool:
        """Whether the twin was raced with relinks of its own: there were enough that differ."""
        baseline = next((each for each in self.builds if each.variant == self.raced[0]), None)
        return baseline is None or len(baseline.layouts) >= 2 * self.relinks


_RECORD = TypeAdapter(Record)


def write_record(folder: StudyFolder, record: Record, name: str = STUDY) -> None:
    """Replaces the record of the study, or of its confirmation, in one step."""
    folder.write_json(name, json.loads(_RECORD.dump_json(record)))


def usable_record(folder: StudyFolder, name: str = STUDY) -> Record | None:
    """The record; None also where it is damaged or of another version: a run writes it anew."""
    try:
        return read_record(folder, name)
    except InputError:
        return None


def read_record(folder: StudyFolder, name: str = STUDY) -> Record | None:
    """The record, or None before the first run. InputError if it is damaged."""
    stored = folder.read_json(name)
    if stored is None:
        return None
    record: Record | None = None
    with suppress(ValueError):
        record = _RECORD.validate_json(json.dumps(stored))
    if record is None or not 0 <= record.rounds_planned <= MOST_ROUNDS:
        raise InputError(f"{folder.json_file(name)} is damaged; run the study again")
    return record
