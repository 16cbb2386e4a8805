"""What `ensign compare` does once its options are read; imported late, numpy comes with it."""

from __future__ import annotations

import sys
from pathlib import Path

from ensign.cli.experiment import carry_out
from ensign.cli.machine_lock import machine_lock
from ensign.cli.outputs import FailOn, Outputs
from ensign.cli.progress import CompareProgress, StatusLine
from ensign.experiment.compare.options import Options, command_variants
from ensign.experiment.compare.pilot import require_readable
from ensign.experiment.compare.run import CompareSteps
from ensign.experiment.compare.workloads import PLACE
from ensign.experiment.confinement import confined_commands
from ensign.experiment.environments import OPTION, in_environments
from ensign.experiment.ports import Ports
from ensign.host.files import check_writable
from ensign.model.errors import InputError


def run_compare(  # noqa: PLR0913  # what the command line says
    options: Options,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    redo: str = "",
    bundle: Path | None = None,
    details: bool = False,
    share_machine: bool = False,
    confine: bool = False,
    environments: str | None = None,
    study: Path | None = None,
) -> int:
    """Races, prints, exports. Returns the exit status; errors pass."""
    outputs.check()
    if bundle is not None:
        check_writable(bundle)
    if options.input is not None and Path(options.input).is_dir():
        raise InputError(f"--input {options.input} is a folder; name a file in it")
    ports = Ports(race_lock=machine_lock(share=share_machine))
    if options.expected is not None and PLACE not in options.expected:
        require_readable(options.expected)
    with (
        in_environments(environments, study, options, ports) as entered,
        StatusLine(sys.stderr) as line,
    ):
        commands = command_variants(entered.options)
        if confine or environments is not None:
            asked = OPTION if environments is not None else "--confine"
            ports = confined_commands(ports, asked)
        progress = CompareProgress(line, sys.stderr)
        steps = CompareSteps(
            entered.options,
            commands,
            ports,
            progress.show,
            progress.expect,
            redo,
            bundle,
            shared=entered.findings,
        )
        return carry_out(steps, outputs, fail_on, details=details, keep=line.clear_first)
