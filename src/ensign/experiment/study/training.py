"""Runs instrumented programs on their training, through the meter."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ensign.builders.training import TrainingRun
from ensign.experiment.confinement import inherited_library_path
from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.variants import ProgramTree, VariantSet, training_request
from ensign.host.topology import allowed_cpus
from ensign.meter.client import Meter
from ensign.meter.records import TrialPlace, trials
from ensign.meter.requests import race_json
from ensign.model.errors import CommandFailed, InputError, Interrupted
from ensign.model.study import Study
from ensign.model.trials import RaceMapping, seen_in_race
from ensign.proof.loaded_bytes import read_dynamic

_VARIANT = "training"


@dataclass(frozen=True, slots=True)
class MeterTrainer:
    """A `Trainer`: one execution per workload, not sliced, on all CPUs that ensign may use.

    Relative paths in commands start at `folder`, as they do when the program is raced.
    """

    meter: Meter
    study: Study
    folder: Path

    def train(self, run: TrainingRun) -> str:
        """See `Trainer.train`."""
        cpus = tuple(sorted(allowed_cpus()))
        variants = VariantSet(
            artifacts=((_VARIANT, str(run.program)),),
            tools={name: str(path) for name, path in run.tools.items()},
            cpus=CpuPlan(cpus, cpus, cpus),
            folder=str(self.folder),
            trees=_trees(run),
            library_path=inherited_library_path(self.study.sandbox, os.environ),
        )
        request = training_request(self.study, variants, run)
        with closing(self.meter.run("race", race_json(request))) as stream:
            records = tuple(stream)
        place = TrialPlace("", 0, request.seed, request.slice_ns, names={_VARIANT: ""})
        try:
            done = tuple(trials(records, place))
        except (CommandFailed, InputError) as error:
            return str(error)
        if not done:
            raise Interrupted("interrupted while training")
        return _killed(records) or _another_library(run, seen_in_race(done, _VARIANT))


def _trees(run: TrainingRun) -> dict[str, ProgramTree]:
    """The tree in which the program lies, as it is."""
    if run.root is None:
        return {}
    program = str(run.program.relative_to(run.root))
    folders = tuple(str(Path(library).relative_to(run.root)) for library in run.libraries)
    return {str(run.program): ProgramTree((str(run.root),), program, folders, in_place=True)}


def _another_library(run: TrainingRun, seen: Sequence[RaceMapping]) -> str:
    """A library was loaded in place of one that was built: that one has no profile."""
    if run.root is None:
        return ""
    root = run.root.resolve()
    paths = [Path(mapping.path) for mapping in seen if not mapping.other_root]
    others = [path for path in paths if not path.is_relative_to(root)]
    loaded = frozenset[str]().union(*(_names(path) for path in paths if path not in others))
    by_name = {name: path for path in others for name in _names(path) - loaded}
    for built in sorted(root.rglob("*.so*")) if by_name else ():
        if built.is_symlink() or not built.is_file() or read_dynamic(built) is None:
            continue
        for name in sorted(_names(built) & by_name.keys()):
            return (
                f"it loaded {by_name[name]}, not {built.relative_to(root)}, which was built, so "
                "its profile stays empty; let 'runtime_files' name it, and the loader find it first"
            )
    return ""


def _names(path: Path) -> frozenset[str]:
    """Names by which a loader may have asked for a library."""
    dynamic = read_dynamic(path)
    return frozenset((path.name, "" if dynamic is None else dynamic.soname)) - {""}


def _killed(records: Sequence[Mapping[str, object]]) -> str:
    """A server that had to be killed wrote no profile, or half of one."""
    for record in records:
        server = record.get("type") == "outcome" and record.get("role") == "server"
        if server and record.get("signal") == signal.SIGKILL:
            return (
                "the server did not end within two seconds of SIGTERM and was killed, "
                "so its profile is lost"
            )
    return ""
