"""`ensign repair`: small changes to a build until it loses nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.options import Details, FailOn, FailOnOption, Outputs, expanded, output_options
from ensign.cli.study import ShareMachine, StudyPath


@expanded(outputs=output_options())
def repair(  # noqa: PLR0913  # what the command line says
    study: StudyPath,
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="The variant that loses.")],
    *,
    budget: Annotated[
        str | None,
        typer.Option(help="Racing time of the repairs, such as 2h, instead of the study's."),
    ] = None,
    study_file: Annotated[
        Path | None,
        typer.Option("--study-file", metavar="FILE", help="Write the study of the repairs there."),
    ] = None,
    outputs: Outputs,
    details: Details = False,
    fail_on: FailOnOption = None,
    share_machine: ShareMachine = False,
) -> None:
    """Try the smallest changes that may take a variant's losses away, and confirm the best.

    The study must have been raced. On workloads where the variant may lose, its functions are
    looked into; then it races beside builds that are nearly the same: what compilers offer, the
    guilty sources compiled as in the baseline, aligned code, one choice less. The best are
    confirmed on fresh relinks, over all workloads.
    """
    from ensign.cli import explain_run  # noqa: PLC0415  # numpy loads with it

    asked = explain_run.Repair(study, variant, budget, study_file)
    status = explain_run.repair(
        asked,
        outputs,
        FailOn(tuple(fail_on or ())),
        details=details,
        share_machine=share_machine,
    )
    if status:
        raise typer.Exit(status)
