"""`ensign explain`: race two commands, and say which functions make the difference."""

from __future__ import annotations

import shlex
from dataclasses import replace

import typer

from ensign.cli.options import (
    Details,
    FailOn,
    FailOnOption,
    Outputs,
    compare_options,
    expanded,
    output_options,
)
from ensign.experiment.compare.options import DEFAULT_BUDGET_NS, Options
from ensign.model.errors import InputError
from ensign.model.trials import Mode


@expanded(options=compare_options(), outputs=output_options())
def explain(
    context: typer.Context,
    *,
    options: Options,
    outputs: Outputs,
    details: Details = False,
    fail_on: FailOnOption = None,
) -> None:
    """Race commands as 'compare' does, and say which functions the difference lies in.

    Where each program stands is looked at whenever it is stopped: that costs nothing, and needs
    neither perf nor privileges. The whole budget is used, since more samples tell more.

    Exit status: as of 'compare'; no difference is 0, too.
    """
    from ensign.cli.compare_run import run_compare  # noqa: PLC0415  # numpy loads with it

    if options.revisions is not None or options.confirm:
        raise InputError("explain races commands once: leave out --revisions and --confirm")
    if options.mode is Mode.ALTERNATING:
        raise InputError("explain looks at programs between slices: leave out --mode alternating")
    if options.serves:
        raise InputError(
            "explain looks at programs between slices, where servers wait: it cannot tell yet"
        )
    budget_ns = options.budget_ns or (None if options.least_runs else DEFAULT_BUDGET_NS)
    asked = replace(options, sampled=True, budget_ns=budget_ns)
    redo = shlex.join(["ensign", *(context.obj or ())])
    status = run_compare(asked, outputs, FailOn(tuple(fail_on or ())), redo=redo, details=details)
    if status:
        raise typer.Exit(status)
