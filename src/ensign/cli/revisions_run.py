"""Body of `ensign compare --revisions` once its options are read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from ensign.cli.experiment import carry_out, tell
from ensign.cli.options import FailOn, Outputs
from ensign.cli.progress import StatusLine
from ensign.cli.study_run import study_progress
from ensign.experiment.compare.options import Options
from ensign.experiment.confinement import confined_ports
from ensign.experiment.ports import Ports
from ensign.experiment.revisions import duration_text, revision_study
from ensign.experiment.steps import ExperimentOutcome
from ensign.experiment.study.opened import open_cache
from ensign.experiment.study.phase import StudyContext
from ensign.experiment.study.record import read_record
from ensign.experiment.study.run import StudySteps
from ensign.experiment.study.stored import folder_of, stored_result
from ensign.experiment.study_file import RunOptions
from ensign.model.errors import BudgetTooShort, InputError, Interrupted
from ensign.model.results import Result, Stopped
from ensign.tools import bundles

# Without --budget a race takes longer than usual where its program does, up to this.
_LONGEST_NS = 3600 * 10**9
_SPARE = 1.1


def run_revisions(
    options: Options,
    ports: Ports,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    redo: str,
    details: bool,
) -> int:
    """Builds, races, prints, exports. Returns the exit status; errors pass."""
    bundle = options.bundle
    with (
        revision_study(options, ports) as made,
        StatusLine(sys.stderr) as line,
        open_cache(ports) as cache,
    ):
        file, folder = made.file, folder_of(made.file)
        context = StudyContext(cache, confined_ports(file, ports), folder, study_progress(line))

        def told(result: Result) -> Result:
            record = read_record(folder)
            return replace(
                result,
                extra={"redo": redo},
                time_unit=options.time_unit,
                trials=() if record is None else folder.trials(record.key),
            )

        def keep(result: Result) -> str:
            line.clear()
            if bundle is None or result.withheld:
                return ""
            return f"Bundle: {bundles.bundle(file.path, bundle).path}\n"

        steps = StudySteps(
            file, context, known=made.findings, race_same=options.race_same, told=told
        )
        while True:
            try:
                return carry_out(steps, outputs, fail_on, details=details, keep=keep)
            except BudgetTooShort as short:
                if options.budget_ns is not None or short.needed_ns > _LONGEST_NS:
                    raise
                longer = RunOptions(budget=duration_text(short.needed_ns * _SPARE))
                steps = replace(steps, file=steps.file.with_options(longer))
            except Interrupted:
                so_far = _so_far(steps, told)
                return tell(so_far, outputs, fail_on, details=details, keep=keep)


def _so_far(steps: StudySteps, told: Callable[[Result], Result]) -> ExperimentOutcome:
    """Result of what was measured before an interruption. Interrupted where no round is whole."""
    try:
        result = told(stored_result(steps.file))
    except InputError:
        raise Interrupted("interrupted; what was built is kept for the next time") from None
    done = result.rounds_done
    return ExperimentOutcome(replace(result, rounds_planned=done, stopped=Stopped.INTERRUPTED))
