"""Body of `ensign compare` once its options are read; imported late, numpy comes with it."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ensign.cli.experiment import machine_lock, tell
from ensign.cli.options import FailOn, Outputs
from ensign.cli.progress import CompareProgress, StatusLine
from ensign.experiment.compare.commands import command_variants, completed
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.planning import require_readable
from ensign.experiment.compare.run import CompareSteps
from ensign.experiment.compare.workloads import PLACE
from ensign.experiment.ports import Ports
from ensign.experiment.steps import ExperimentOutcome, run_experiment
from ensign.host.files import check_writable
from ensign.model.errors import InputError
from ensign.model.findings import Finding


def run_compare(
    options: Options, outputs: Outputs, fail_on: FailOn, *, redo: str, details: bool
) -> int:
    """Races, prints, exports. Returns the exit status; errors pass."""
    outputs.check()
    if options.revisions is None:
        return tell(raced_commands(options, redo=redo), outputs, fail_on, details=details)
    options, ports = _ready(options)
    from ensign.cli.revisions_run import run_revisions  # noqa: PLC0415  # builders load with it

    return run_revisions(options, ports, outputs, fail_on, redo=redo, details=details)


def raced_commands(options: Options, *, redo: str) -> ExperimentOutcome:
    """The race of commands, and its result; errors pass."""
    options, ports = _ready(options)
    return _race(options, ports, redo=redo)


def _ready(options: Options) -> tuple[Options, Ports]:
    _check(options)
    options = _with_parameters(completed(options))
    if options.bundle is not None:
        check_writable(options.bundle)
    return options, Ports(race_lock=machine_lock(share=options.share_machine))


def _with_parameters(options: Options) -> Options:
    if not options.parameter_list and not options.parameter_scan and not options.parameter_step:
        return options
    from ensign.experiment.compare import parameters  # noqa: PLC0415  # few ask for them

    return parameters.with_parameters(options, parameters.parameters_of(options))


def _check(options: Options) -> None:
    if options.revisions is None:
        if options.build is not None or options.files or options.unconfined:
            raise InputError(
                "--build, --files and --unconfined are for checkouts, which needs --revisions A..B"
            )
        return
    if len(options.commands) > 1:
        quoted = shlex.quote(" ".join(options.commands))
        raise InputError(f"--revisions races one command; if that is one, quote it: {quoted}")
    if options.confirm:
        raise InputError("--confirm chooses among commands; --revisions compares two builds")
    if options.environments is not None:
        raise InputError("--revisions and --environments are two questions; ask one at a time")


def _race(options: Options, ports: Ports, *, redo: str) -> ExperimentOutcome:
    if options.input is not None and Path(options.input).is_dir():
        raise InputError(f"--input {options.input} is a folder; name a file in it")
    if options.expected is not None and PLACE not in options.expected:
        require_readable(options.expected)
    with (
        _entered(options, ports) as (entered, findings),
        StatusLine(sys.stderr) as line,
    ):
        commands = command_variants(entered)
        if options.confine or options.environments is not None:
            from ensign.experiment.confinement import confined_commands  # noqa: PLC0415

            asked = "--confine" if options.environments is None else "--environments"
            ports = confined_commands(ports, asked)
        progress = CompareProgress(line, sys.stderr)
        steps = CompareSteps(
            entered,
            commands,
            ports,
            progress.show,
            progress.expect,
            redo,
            options.bundle,
            shared=findings,
        )
        outcome = run_experiment(steps)
        line.clear()
        return outcome


def _entered(
    options: Options, ports: Ports
) -> AbstractContextManager[tuple[Options, tuple[Finding, ...]]]:
    """The options as they are in the environments; builders come with these."""
    if options.environments is None and options.study is None:
        return nullcontext((options, ()))
    from ensign.experiment.environments import in_environments  # noqa: PLC0415

    return in_environments(options.environments, options.study, options, ports)
