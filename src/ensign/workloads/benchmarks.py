"""A program made with a benchmark framework: each of its benchmarks is a test. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import Workload
from ensign.model.trials import Better, Score
from ensign.workloads import framework_text, google_benchmark, pyperf
from ensign.workloads.command import CommandKind
from ensign.workloads.kind import OwnRun, PrintedReport, ReportText


@dataclass(frozen=True, slots=True)
class Framework:
    """Request for a framework's figures, and their reader.

    `options` come after the command, `env` goes into its environment. They are read by the `report`
    or by the `pattern` in what it prints.
    """

    options: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    report: ReportText | PrintedReport | None = None
    pattern: Score | None = None


# "fib 20      time:   [26.029 µs 26.251 µs 26.505 µs]": the middle is its estimate. A long name has
# a line of its own. It writes the same in whole nanoseconds, which is too coarse.
_CRITERION = (
    r"(?m)^(?P<name>[^\s][^\n]*?)\s+time: +\[[0-9.]+ [^ ]+ "
    r"(?P<value>[0-9.]+ (?:ps|ns|us|µs|ms|s)) "
)

FRAMEWORKS = {
    "google-benchmark": Framework(
        google_benchmark.OPTIONS,
        report=ReportText(google_benchmark.FILE, google_benchmark.scores),
    ),
    "pyperf": Framework(pyperf.OPTIONS, report=ReportText(pyperf.FILE, pyperf.scores)),
    "criterion": Framework(
        ("--bench", "--noplot"),
        # Else all variants write into one folder what each compares itself with.
        env=(("CRITERION_HOME", "{tmp}/criterion"),),
        pattern=Score(_CRITERION, "ns", Better.LOWER),
    ),
    "libtest": Framework(("--bench",), report=PrintedReport(framework_text.scores)),
}


class BenchmarksKind:
    """A `command` that `benchmarks` says the framework of."""

    def has(self, workload: Workload) -> bool:
        """True if it has the key of this kind."""
        return workload.benchmarks is not None

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Each benchmark has its time per iteration."""
        return True

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """Problems that every command may have, and other sources of what it achieves."""
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
            env=framework.env,
            scores=() if framework.pattern is None else (("", framework.pattern),),
            report=framework.report,
        )
