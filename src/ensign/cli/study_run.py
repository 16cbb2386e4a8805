"""Bodies of `plan`, `run`, `report` and `clean`; imported late, numpy comes with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ensign.cli.experiment import machine_lock, tell
from ensign.cli.options import FailOn, Outputs
from ensign.cli.output import say, write
from ensign.cli.progress import BuildProgress, RoundsProgress, StatusLine, screen_of
from ensign.experiment.confinement import confined_ports
from ensign.experiment.ports import Ports
from ensign.experiment.steps import ExperimentOutcome, run_experiment
from ensign.experiment.study.forecast import expectation
from ensign.experiment.study.networks import without_networks
from ensign.experiment.study.opened import open_cache, open_study
from ensign.experiment.study.phase import ProgressCallbacks, StudyContext
from ensign.experiment.study.run import StudySteps
from ensign.experiment.study.stored import folder_of, keep_figures
from ensign.experiment.study_file import RunOptions, StudyFile, read_cluster
from ensign.host.files import write_atomically
from ensign.model.results import Result
from ensign.model.units import parse_duration_ns
from ensign.report import as_plan


def plan(path: Path, workloads: Sequence[str], on: Path | None = None) -> None:
    """See `ensign.cli.study.plan`."""
    ports = Ports()
    cluster = None if on is None else read_cluster(on)
    file = open_study(path, ports).with_workloads(workloads)
    with open_cache(ports) as cache:
        expected = expectation(file, cache, ports, only_look=True)
    width = screen_of(sys.stdout).width
    say(as_plan.plan(expected, width))
    if cluster is not None:
        budget_ns = parse_duration_ns(file.study.race.budget)
        say(as_plan.on_cluster(cluster, expected, budget_ns, width))


def run(  # noqa: PLR0913  # what the command line says
    path: Path,
    options: RunOptions,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
    share_machine: bool,
    update_lock: bool,
    install_dependencies: bool = False,
) -> int:
    """See `ensign.cli.study.run`. Returns the exit status; errors pass."""
    outputs.check()
    ports = Ports(race_lock=machine_lock(share=share_machine))
    file = open_study(path, ports).with_options(options)
    outcome = raced_study(
        file, ports, update_lock=update_lock, install_dependencies=install_dependencies
    )
    return tell_study(outcome, file, outputs, fail_on, details=details)


def raced_study(
    file: StudyFile,
    ports: Ports,
    *,
    update_lock: bool = False,
    install_dependencies: bool = False,
    told: Callable[[Result], Result] | None = None,
) -> ExperimentOutcome:
    """Builds and races a study; its outcome. Errors pass."""
    folder = folder_of(file)
    file, refused = without_networks(file, ports)
    with StatusLine(sys.stderr) as line, open_cache(ports) as cache:
        write(sys.stderr, as_plan.before_run(expectation(file, cache, ports)) + "\n")
        context = StudyContext(cache, confined_ports(file, ports), folder, study_progress(line))
        steps = StudySteps(file, context, update_lock, install_dependencies, refused, told=told)
        outcome = run_experiment(steps)
        line.clear()
        return outcome


def tell_study(
    outcome: ExperimentOutcome,
    file: StudyFile,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
) -> int:
    """Writes and prints a study's result; the exit status."""
    folder = folder_of(file)

    def keep(result: Result) -> str:
        keep_figures(folder, result)
        page = folder.root / "report.html"
        _keep_page(page, result)
        return f"Report: {page}\n"

    return tell(outcome, outputs, fail_on, details=details, keep=keep)


def study_progress(line: StatusLine) -> ProgressCallbacks:
    """A study's progress in the terminal."""
    rounds = RoundsProgress(line, sys.stderr)
    return ProgressCallbacks(
        build=BuildProgress(line, sys.stderr).show,
        pilot=lambda workload: line.show(f"pilot: {workload}"),
        plan=rounds.expect,
        trial=rounds.show,
        finding=rounds.tell,
    )


def _keep_page(page: Path, result: Result) -> None:
    """Writes the page, unless it is there: drawing takes longest of a finished study."""
    from ensign.report import as_html  # noqa: PLC0415  # charts load with it

    with suppress(OSError):
        if as_html.shows(page.read_text(encoding="utf-8", errors="replace"), result):
            return
    write_atomically(page, as_html.render(result).encode())
