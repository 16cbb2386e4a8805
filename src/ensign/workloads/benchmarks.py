"""A program made with a benchmark framework: each of its benchmarks is a test. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import Workload
from ensign.model.trials import Better, NamedScore, Score
from ensign.workloads import google_benchmark, pyperf
from ensign.workloads.command import CommandKind
from ensign.workloads.kind import OwnRun, ReportText


@dataclass(frozen=True, slots=True)
class Framework:
    """How a framework is asked for its figures, and how these are read.

    `options` come after the command. They are read in its `file` by `scores`, which gets a JSON
    document, or by the `pattern` in what it prints.
    """

    options: tuple[str, ...]
    file: str = ""
    scores: Callable[[object], tuple[NamedScore, ...]] | None = None
    pattern: Score | None = None


# Criterion, libtest and what else writes as they do: "test sort ... bench: 1,234 ns/iter (+/- 5)".
_BENCHER = r"(?m)^test (?P<name>.+?) +\.\.\. bench: +(?P<value>[0-9.,]+) ns/iter"

FRAMEWORKS = {
    "google-benchmark": Framework(
        google_benchmark.OPTIONS, google_benchmark.FILE, google_benchmark.scores
    ),
    "pyperf": Framework(pyperf.OPTIONS, pyperf.FILE, pyperf.scores),
    "criterion": Framework(
        ("--bench", "--output-format=bencher"), pattern=Score(_BENCHER, "ns", Better.LOWER)
    ),
    "libtest": Framework(("--bench",), pattern=Score(_BENCHER, "ns", Better.LOWER)),
}


class BenchmarksKind:
    """A `command` that `benchmarks` says the framework of."""

    def has(self, workload: Workload) -> bool:
        """By its key."""
        return workload.benchmarks is not None

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Each benchmark has its time per iteration."""
        return True

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """What every command needs, and nothing else that says what it achieves."""
        if workload.command is None:
            text = f"'benchmarks' of workload '{workload.name}' needs a 'command'"
            yield Problem((*where, "benchmarks"), text)
            return
        yield from CommandKind().problems(study, workload, where)
        for key in ("score", "scores", "operations"):
            if key in workload.model_fields_set:
                text = (
                    f"'{key}' of workload '{workload.name}': its 'benchmarks' say already what it "
                    "achieves; leave one of them out"
                )
                yield Problem((*where, key), text)

    def processes(self, workload: Workload, requests: int | None) -> OwnRun:
        """The command, told to write its figures."""
        framework = FRAMEWORKS[workload.benchmarks or ""]
        run = CommandKind().processes(workload, requests)
        return replace(
            run,
            argv=(*run.argv, *framework.options),
            scores=() if framework.pattern is None else (("", framework.pattern),),
            report=None
            if framework.scores is None
            else ReportText(framework.file, framework.scores),
        )
