"""`ensign explain`: which functions make the difference between two commands or variants."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
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
_STUDY_WORDS, _ENDS = 3, 2
_PROOF_TIMES = 15  # the first look: 5 minutes by default

Proof = Annotated[
    str,
    typer.Option(
        "--proof",
        metavar="DURATION",
        help="Racing time to prove causes (default 15 times the budget); 0s only looks where.",
    ),
]


StudyText = Annotated[
    Path | None,
    typer.Option(
        "--study-file",
        metavar="FILE",
        help="Write the studies that prove causes (FILE-choices, FILE-flags, …), for 'ensign run'.",
    ),
]


@dataclass(frozen=True, slots=True)
class _Said:
    """Options that the command line gives, the time for proofs, the line itself, and a file."""

    given: set[str]
    proof: str
    argv: Sequence[str]
    study_file: Path | None

    @property
    def redo(self) -> str:
        """The line that repeats it."""
        return shlex.join(["ensign", *self.argv])


@expanded(options=compare_options(), outputs=output_options())
def explain(  # noqa: PLR0913  # what the command line says
    context: typer.Context,
    *,
    options: Options,
    outputs: Outputs,
    details: Details = False,
    fail_on: FailOnOption = None,
    proof: Proof = "",
    study_file: StudyText = None,
) -> None:
    """Say where and why two commands differ, or two variants of a study: STUDY A B.

    They race as by 'compare', or as by 'run'. Where each program stands is looked at whenever it is
    stopped: that costs nothing, and needs neither perf nor privileges. The whole budget is used,
    since more samples tell more. Where they differ in several things, each is then toggled: what
    lies between both races beside them, and each flag, source file, option or variable gets its
    share of the difference. One command in two environments: --env A --env B -- COMMAND.

    Exit status: as of 'compare'; no difference is 0, too.
    """
    failing = FailOn(tuple(fail_on or ()))
    given = {
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }
    request = _Said(given, proof, context.obj or (), study_file)
    if options.commands and options.commands[0].endswith(".toml"):
        status = _of_study(options, outputs, failing, request, details=details)
    else:
        status = _of_commands(options, outputs, failing, request, details=details)
    if status:
        raise typer.Exit(status)


def _of_commands(
    options: Options,
    outputs: Outputs,
    failing: FailOn,
    said: _Said,
    *,
    details: bool,
) -> int:
    from ensign.cli import explain_run  # noqa: PLC0415  # numpy loads with it

    if said.study_file is not None:
        raise InputError("--study-file is for variants of a study: ensign explain STUDY A B")
    options = _in_both(options, joined="--" in said.argv)
    if options.revisions is not None or options.confirm:
        raise InputError("explain races commands once: leave out --revisions and --confirm")
    if options.mode is Mode.ALTERNATING:
        raise InputError("explain looks at programs between slices: leave out --mode alternating")
    budget_ns = options.budget_ns or (None if options.least_runs else DEFAULT_BUDGET_NS)
    shorter = options.drive is None and "slice_ns" not in said.given
    slice_ns = parse_duration_ns(SAMPLED_SLICE) if shorter else options.slice_ns
    asked = replace(options, sampled=True, budget_ns=budget_ns, slice_ns=slice_ns)
    proof_ns = (
        _proof_ns(said.proof) if said.proof else _PROOF_TIMES * (budget_ns or DEFAULT_BUDGET_NS)
    )
    return explain_run.commands(asked, proof_ns, outputs, failing, redo=said.redo, details=details)


def _in_both(options: Options, *, joined: bool) -> Options:
    """Of one command in two environments, the two commands; two of `--env` say which.

    The words behind `--` are `joined` to one command.
    """
    single = joined or len(options.commands) == 1
    if not single or options.environments is not None or len(options.env) != _ENDS:
        return options
    many = len(options.commands) > 1
    command = shlex.join(options.commands) if many else "".join(options.commands)
    assigned = ["=" in word for word in options.env]
    if not any(assigned):
        named = ",".join(options.env)
        return replace(options, commands=(command,), env=(), environments=named)
    if not all(assigned):
        raise InputError("--env A --env B are two NAME=VALUE, or two environments; not one of each")
    both = tuple(f"env {shlex.quote(assignment)} {command}" for assignment in options.env)
    return replace(options, commands=both, env=())


def _of_study(
    options: Options,
    outputs: Outputs,
    failing: FailOn,
    said: _Said,
    *,
    details: bool,
) -> int:
    from ensign.cli import explain_run  # noqa: PLC0415  # numpy loads with it

    path, *variants = options.commands
    if len(options.commands) != _STUDY_WORDS:
        raise InputError(f"of a study two variants are explained: ensign explain {path} A B")
    others = sorted({field.name for field in fields(Options)} & said.given - {*_OF_STUDIES})
    if others:
        named = "--" + others[0].removesuffix("_ns").replace("_", "-")
        raise InputError(
            f"{named} is for commands; of a study's variants there are --workload, --budget and "
            "--proof"
        )
    workloads = options.workloads
    budget_ns = options.budget_ns or DEFAULT_BUDGET_NS * max(1, len(workloads))
    proof_ns = _proof_ns(said.proof) if said.proof else _PROOF_TIMES * budget_ns
    pair, look = (variants[0], variants[1]), duration_option(budget_ns)
    chosen = [word for name in workloads for word in ("--workload", name)]
    limits = ["--budget", look, "--proof", duration_option(proof_ns)]
    redo = ["ensign", "explain", Path(path).name, *pair, *chosen, *limits]
    asked = explain_run.Explanation(
        Path(path), pair, workloads, look, proof_ns, redo, said.study_file
    )
    return explain_run.variants(
        asked, outputs, failing, details=details, share_machine=options.share_machine
    )


def _proof_ns(text: str) -> int:
    try:
        return parse_duration_ns(text)
    except InputError as error:
        raise InputError(f"--proof: {error}") from None
