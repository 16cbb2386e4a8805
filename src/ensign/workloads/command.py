"""The program's own run: a command that ends by itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.placeholders import PROGRAM
from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where, uses
from ensign.model.study_workload import Workload
from ensign.workloads.kind import Operations, OwnRun, said_operations


class CommandKind:
    """A workload with a `command`."""

    def has(self, workload: Workload) -> bool:
        """True if it has the key of this kind."""
        return workload.command is not None

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Only the study knows what a program completes."""
        return False

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:  # noqa: ARG002
        """It runs the variant, and nothing is sent to it."""
        called = f"workload '{workload.name}'"
        if workload.output == "inherit":
            text = f"'output' of {called}: a study's programs write into a pipe, null or a file"
            yield Problem((*where, "output"), text)
        if not uses((*(workload.command or ()), workload.folder or ""), *PROGRAM, "files"):
            text = (
                f"'command' of {called} has no {{artifact}}: "
                "every variant would run the same program"
            )
            yield Problem((*where, "command"), text)
        yield from _expectation_problems(workload, where)
        for key in ("preload", "requests", "rounding", "server_args"):
            if key in workload.model_fields_set:
                text = f"'{key}' of {called} is for loads only, not for commands"
                yield Problem((*where, key), text)

    def processes(self, workload: Workload, requests: int | None) -> OwnRun:  # noqa: ARG002
        """The command alone."""
        return OwnRun(tuple(workload.command or ()), said_operations(workload) or Operations())


def _expectation_problems(workload: Workload, where: Where) -> Iterator[Problem]:
    """Problems of an expected output: it is one, and that of a run that a check can make."""
    called = f"workload '{workload.name}'"
    for key in ("expected", "expected_sha256"):
        value = getattr(workload, key)
        if isinstance(value, list):
            text = f"'{key}' of {called} is a list, and 'input' is none: give one"
            yield Problem((*where, key), text)
        elif value is not None and (reason := workload.race_only):
            text = f"'{key}' of {called}: it {reason}, which a check lacks"
            yield Problem((*where, key), text)
