"""Several programs that work together are one command, which the meter's `ends` starts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.placeholders import METER, PLACES, PROGRAM, fill_some
from ensign.model.study import Study
from ensign.model.study_ends import End
from ensign.model.study_problems import Problem, Where, unknown, uses
from ensign.model.study_workload import Workload
from ensign.workloads.kind import Operations, OwnRun, said_operations

_ADDRESS = "address"
_APART, _TOGETHER = "10.77.0.1", "127.0.0.1"  # the meter's, and everybody's
_ENDS_OF_NETWORK = 2
_NOT_FOR_ENDS = (
    *("server_args", "preload", "requests", "rounding", "input", "expected", "expected_sha256"),
    "benchmarks",
)


class EndsKind:
    """A workload with `ends`."""

    def has(self, workload: Workload) -> bool:
        """True if it has the key of this kind."""
        return bool(workload.ends)

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Only the study knows what they complete."""
        return False

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """They run the variant, find each other, and end."""
        called = f"workload '{workload.name}'"
        words = [word for end in workload.ends for word in end.command]
        if not uses(words, *PROGRAM, "files"):
            text = f"no end of {called} has {{artifact}}: every variant would run the same programs"
            yield Problem((*where, "ends"), text)
        if all(end.serves for end in workload.ends):
            text = f"all ends of {called} serve: nothing would end them"
            yield Problem((*where, "ends"), text)
        if workload.network is not None and len(workload.ends) != _ENDS_OF_NETWORK:
            text = f"'network' of {called} is between two ends, and there are {len(workload.ends)}"
            yield Problem((*where, "network"), text)
        allowed = (*PROGRAM, *PLACES, *study.build.tools, _ADDRESS)
        for index, end in enumerate(workload.ends):
            yield from _of_end(workload, end, (*where, "ends", index), allowed)
        for key in _NOT_FOR_ENDS:
            if key in workload.model_fields_set:
                yield Problem((*where, key), f"'{key}' of {called} is not for ends")

    def processes(self, workload: Workload, requests: int | None) -> OwnRun:  # noqa: ARG002
        """The command that they became when the study was read."""
        return OwnRun(tuple(workload.command or ()), said_operations(workload) or Operations())


def _of_end(
    workload: Workload, end: End, where: Where, allowed: tuple[str, ...]
) -> Iterator[Problem]:
    yield from unknown(end.command, (*where, "command"), allowed)
    listens = end.listens
    if listens is None or (listens.isdecimal() and workload.network is not None):
        return
    if listens != "{port}":
        text = (
            f"'listens' of workload '{workload.name}': write {{port}}, which is each variant's own"
            if listens.isdecimal()
            else f"'listens': '{listens}' is neither a port nor {{port}}"
        )
        yield Problem((*where, "listens"), text)


def as_commands(study: Study) -> Study:
    """The study with a command in place of the ends of each workload, which are kept."""
    changes: dict[str, object] = {"workloads": [*map(_as_command, study.workloads)]}
    if study.training is not None:
        trained_on = [*map(_as_command, study.training.workloads)]
        changes["training"] = study.training.model_copy(update={"workloads": trained_on})
    return study.model_copy(update=changes)


def _as_command(workload: Workload) -> Workload:
    if not workload.ends:
        return workload
    network = workload.network
    address = {_ADDRESS: _TOGETHER if network is None else _APART}
    options = [
        option
        for end in workload.ends
        for option in (
            f"--words={len(end.command)}",
            f"--cpus={','.join(map(str, end.cpus or ()))}",
            f"--port={end.listens or 0}",
            f"--serves={str(end.serves).lower()}",
        )
    ]
    if network is not None:
        options += [f"--rate={network.rate_bits}", f"--mtu={network.mtu}"]
    words = [fill_some(word, address) for end in workload.ends for word in end.command]
    return workload.model_copy(update={"command": [f"{{{METER}}}", "ends", *options, "--", *words]})
