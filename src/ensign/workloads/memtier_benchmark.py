"""A server under memtier_benchmark, which writes down how many requests it sent. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import Workload
from ensign.workloads.kind import LoadedServer, Operations, said_operations
from ensign.workloads.load_generator import load_problems

_PROGRAM = "memtier_benchmark"
# Where it writes what it did, and where that says how many requests there were.
_JSON, _COUNT = "{tmp}/memtier.json", "/ALL STATS/Totals/Count"


class MemtierKind:
    """A workload whose `load` is memtier_benchmark."""

    def has(self, workload: Workload) -> bool:
        """By the program's name."""
        return bool(workload.load) and PurePosixPath((workload.load or [""])[0]).name == _PROGRAM

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """What every load generator needs, and no more."""
        yield from load_problems(study, workload, where)

    def processes(self, workload: Workload, requests: int | None) -> LoadedServer:  # noqa: ARG002
        """It counts, unless the study says what counts."""
        argv, said = tuple(workload.load or ()), said_operations(workload)
        if said is not None:
            return LoadedServer(argv, said)
        return LoadedServer((*argv, f"--json-out-file={_JSON}"), Operations(json=(_JSON, _COUNT)))
