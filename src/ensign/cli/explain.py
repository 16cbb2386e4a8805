"""`ensign explain`: which functions make the difference between two commands or variants."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

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
from ensign.model.trials import SAMPLED_SLICE, Mode
from ensign.model.units import duration_option, parse_duration_ns

_OF_STUDIES = ("commands", "workloads", "budget_ns", "share_machine")
_STUDY_WORDS = 3
_PROOF_TIMES = 15  # the first look: 5 minutes by default

Proof = Annotated[
    str,
    typer.Option(
        "--proof",
        metavar="DURATION",
        help="Racing time to prove causes, of variants alone; 0s looks where they differ only.",
    ),
]


@expanded(options=compare_options(), outputs=output_options())
def explain(
    context: typer.Context,
    *,
    options: Options,
    outputs: Outputs,
    details: Details = False,
    fail_on: FailOnOption = None,
    proof: Proof = "",
) -> None:
    """Say where and why two commands differ, or two variants of a study: STUDY A B.

    They race as by 'compare', or as by 'run'. Where each program stands is looked at whenever it is
    stopped: that costs nothing, and needs neither perf nor privileges. The whole budget is used,
    since more samples tell more. Of variants, what differs is then toggled: builds between both
    race, and each choice and source file gets its proven share of the difference.

    Exit status: as of 'compare'; no difference is 0, too.
    """
    failing = FailOn(tuple(fail_on or ()))
    given = {
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }
    if options.commands and options.commands[0].endswith(".toml"):
        status = _of_study(options, outputs, failing, given, proof, details=details)
    else:
        if proof:
            raise InputError("--proof is for variants of a study, which can be built in between")
        redo = shlex.join(["ensign", *(context.obj or ())])
        status = _of_commands(options, outputs, failing, given, redo=redo, details=details)
    if status:
        raise typer.Exit(status)


def _of_commands(
    options: Options,
    outputs: Outputs,
    failing: FailOn,
    given: set[str],
    *,
    redo: str,
    details: bool,
) -> int:
    from ensign.cli.compare_run import run_compare  # noqa: PLC0415  # numpy loads with it

    if options.revisions is not None or options.confirm:
        raise InputError("explain races commands once: leave out --revisions and --confirm")
    if options.mode is Mode.ALTERNATING:
        raise InputError("explain looks at programs between slices: leave out --mode alternating")
    budget_ns = options.budget_ns or (None if options.least_runs else DEFAULT_BUDGET_NS)
    shorter = options.drive is None and "slice_ns" not in given
    slice_ns = parse_duration_ns(SAMPLED_SLICE) if shorter else options.slice_ns
    asked = replace(options, sampled=True, budget_ns=budget_ns, slice_ns=slice_ns)
    return run_compare(asked, outputs, failing, redo=redo, details=details)


def _of_study(
    options: Options,
    outputs: Outputs,
    failing: FailOn,
    given: set[str],
    proof: str,
    *,
    details: bool,
) -> int:
    from ensign.cli import study_run  # noqa: PLC0415  # numpy loads with it

    path, *variants = options.commands
    if len(options.commands) != _STUDY_WORDS:
        raise InputError(f"of a study two variants are explained: ensign explain {path} A B")
    others = sorted({field.name for field in fields(Options)} & given - {*_OF_STUDIES})
    if others:
        named = "--" + others[0].removesuffix("_ns").replace("_", "-")
        raise InputError(
            f"{named} is for commands; of a study's variants there are --workload, --budget and "
            "--proof"
        )
    workloads = options.workloads
    budget_ns = options.budget_ns or DEFAULT_BUDGET_NS * max(1, len(workloads))
    proof_ns = _proof_ns(proof) if proof else _PROOF_TIMES * budget_ns
    pair, look = (variants[0], variants[1]), duration_option(budget_ns)
    chosen = [word for name in workloads for word in ("--workload", name)]
    limits = ["--budget", look, "--proof", duration_option(proof_ns)]
    redo = ["ensign", "explain", Path(path).name, *pair, *chosen, *limits]
    asked = study_run.Explanation(Path(path), pair, workloads, look, proof_ns, redo)
    return study_run.explain(
        asked, outputs, failing, details=details, share_machine=options.share_machine
    )


def _proof_ns(text: str) -> int:
    try:
        return parse_duration_ns(text)
    except InputError as error:
        raise InputError(f"--proof: {error}") from None
