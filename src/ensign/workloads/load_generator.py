"""A server under the command of any load generator. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where, uses
from ensign.model.study_workload import Workload
from ensign.workloads.kind import LoadedServer, Operations, said_operations


class LoadGeneratorKind:
    """A workload with a `load`; generators that are known by name are kinds of their own."""

    def has(self, workload: Workload) -> bool:
        """True if it has the key of this kind."""
        return workload.load is not None

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """False: of an unknown generator only the study knows it."""
        return False

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """It reaches the variant's own server, and what it completes is known."""
        yield from load_problems(study, workload, where)
        says = workload.operations is not None or workload.scored
        asked = uses(workload.load or (), "requests") or workload.requests is not None
        if not asked and not says:
            text = (
                f"'load' of workload '{workload.name}' has no {{requests}} and there is no "
                "'requests', 'operations' or 'score': nothing says how many operations it completes"
            )
            yield Problem((*where, "load"), text)

    def processes(self, workload: Workload, requests: int | None) -> LoadedServer:
        """The generator as the study writes it: it completes what it is told to send."""
        operations = said_operations(workload) or Operations(count=requests or 1)
        return LoadedServer(tuple(workload.load or ()), operations)


def load_problems(study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
    """Problems that every load generator may have."""
    called = f"workload '{workload.name}'"
    load = workload.load or ()
    if study.server is None:
        yield Problem((*where, "load"), f"{called} has a 'load', but there is no [server]")
    elif not uses(load, "port", "tmp"):
        text = f"'load' of {called} has no {{port}}: it would not reach the variant's own server"
        yield Problem((*where, "load"), text)
    for key in ("expected", "expected_sha256", "benchmarks", "folder"):
        if getattr(workload, key) is not None:
            text = f"'{key}' of {called} is for commands only, not for loads"
            yield Problem((*where, key), text)
    if workload.input is not None:
        text = f"'input' of {called} is not named: write {{input}} where 'load' is to get its path"
        yield Problem((*where, "input"), text)
    if workload.output is not None:
        text = f"'output' of {called} is for commands only, not for loads"
        yield Problem((*where, "output"), text)
