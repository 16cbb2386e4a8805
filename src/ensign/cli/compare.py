"""`ensign compare`: race commands, or servers, and say which is faster."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import typer

from ensign.cli.outputs import (
    Details,
    FailOn,
    FailOnOption,
    Outputs,
    with_outputs,
)
from ensign.model.errors import InputError
from ensign.model.trials import Better, Metric, Mode, Score

T = TypeVar("T")


@with_outputs()
def compare(  # noqa: PLR0913  # one parameter per option of the command line
    commands: Annotated[
        list[str], typer.Argument(help="Two commands or more; the first is the baseline.")
    ],
    *,
    name: Annotated[
        list[str] | None, typer.Option("--name", "-n", help="A name per command, in order.")
    ] = None,
    setup: Annotated[
        list[str] | None, typer.Option(help="Run once before the race; once, or per command.")
    ] = None,
    prepare: Annotated[
        list[str] | None, typer.Option(help="Run before each execution, not measured.")
    ] = None,
    cleanup: Annotated[
        list[str] | None, typer.Option(help="Run once after the race; once, or per command.")
    ] = None,
    warmup: Annotated[int, typer.Option(min=0, help="Executions before the measured ones.")] = 0,
    shell: Annotated[
        bool, typer.Option("--shell", help="Run commands by /bin/sh (its start-up counts).")
    ] = False,
    input_file: Annotated[
        str | None, typer.Option("--input", help="File for standard input.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            help="Standard output: 'pipe' (drained; default), 'null', 'inherit', or a file "
            "({variant} in its name is filled in)."
        ),
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for every command.")] = None,
    ignore_failure: Annotated[
        bool, typer.Option("--ignore-failure", "-i", help="Measure commands that fail, too.")
    ] = False,
    margin: Annotated[
        str | None, typer.Option(help="Smallest difference that matters, such as 1%.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="Stop when the interval is ± this (default 0.5% without --budget)."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Racing time, such as 30s (default 30s, or more if needed).")
    ] = None,
    slice_: Annotated[str, typer.Option("--slice", help="Length of a slice.")] = "5ms",
    mode: Annotated[
        Literal["interleaved", "alternating"] | None,
        typer.Option(help="Slices, or whole executions (default: by a pilot run)."),
    ] = None,
    metric: Annotated[
        Metric | None, typer.Option(help="CPU or wall time (default: by a pilot run).")
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence: 0.9, 0.95, 0.975 or 0.99.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Decides the order of slices.")] = 0,
    cpus: Annotated[
        str | None, typer.Option(help="CPUs of the programs under test, such as 1 or 0-3.")
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(help="Load generator: the commands are servers; both contain {port}."),
    ] = None,
    preload: Annotated[
        list[str] | None, typer.Option(help="Fill the server before the load; not measured.")
    ] = None,
    ready: Annotated[
        str, typer.Option(help="A server is ready when: 'port', or 'output:PATTERN'.")
    ] = "port",
    operations: Annotated[
        str | None,
        typer.Option(help="Operations per run: a number, or a pattern in the output."),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="Compare what the output says: a pattern; its group is the number."),
    ] = None,
    unit: Annotated[str, typer.Option(help="Unit of the score, for reports.")] = "",
    better: Annotated[Better | None, typer.Option(help="Which score is better.")] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]TEXT",
            help="Stands for {workload} in commands (else at their end); several are raced in "
            "rounds.",
        ),
    ] = None,
    outputs: Outputs,
    details: Details = False,
    deadline: Annotated[
        str | None,
        typer.Option(help="Longest run of a command (default: the budget, else 10m)."),
    ] = None,
    ports: Annotated[
        str | None, typer.Option(help="Where {port} is taken from (default 20000-29999).")
    ] = None,
    fail_on: FailOnOption = None,
    share_machine: Annotated[
        bool, typer.Option("--share-machine", help="Do not wait for other races on this machine.")
    ] = False,
) -> None:
    """Race two or more commands (or servers); the first is the baseline.

    A command that fails is out of the race; the others race on, and its failure is reported.

    Exit status: 0 measured, 1 by --fail-on, 2 wrong use, 3 a command failed (also where the others
    were measured), 4 interrupted.
    """
    from ensign.cli.compare_run import run_compare  # noqa: PLC0415  # numpy loads with it
    from ensign.lab.commands import parse_cpus, parse_ports  # noqa: PLC0415
    from ensign.lab.compare.options import DEFAULT_PORTS, Options  # noqa: PLC0415
    from ensign.model.units import parse_duration_ns, parse_share  # noqa: PLC0415

    options = Options(
        commands=tuple(commands),
        names=tuple(name or ()),
        setup=tuple(setup or ()),
        prepare=tuple(prepare or ()),
        cleanup=tuple(cleanup or ()),
        load=tuple(load or ()),
        preload=tuple(preload or ()),
        ready=ready,
        operations=operations,
        warmup=warmup,
        shell=shell,
        input=input_file,
        output=output,
        score=_score(score, unit, better),
        env=tuple(env or ()),
        ignore_failure=ignore_failure,
        margin=_read("--margin", parse_share, margin),
        precision=_read("--precision", parse_share, precision),
        budget_ns=_read("--budget", parse_duration_ns, budget),
        slice_ns=_read("--slice", parse_duration_ns, slice_) or 0,
        mode=None if mode is None else Mode(mode),
        metric=metric,
        level=level,
        seed=seed,
        cpus=_read("--cpus", parse_cpus, cpus),
        deadline_ns=_read("--deadline", parse_duration_ns, deadline),
        ports=_read("--ports", parse_ports, ports) or DEFAULT_PORTS,
        workloads=tuple(workload or ()),
    )
    status = run_compare(
        options,
        outputs,
        FailOn(tuple(fail_on or ())),
        details=details,
        share_machine=share_machine,
    )
    if status:
        raise typer.Exit(status)


def _score(pattern: str | None, unit: str, better: Better | None) -> Score | None:
    """What a program says of its own speed. InputError where that is said by halves."""
    if pattern is None:
        if unit or better is not None:
            raise InputError("--unit and --better say more of a --score PATTERN; give that, too")
        return None
    if better is None:
        raise InputError("--score needs --better higher or --better lower")
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise InputError(f"--score '{pattern}' is no regular expression: {error}") from None
    if groups < 1:
        raise InputError(f"--score '{pattern}' needs a group around the number: ([0-9.]+)")
    return Score(pattern, unit, better)


def _read(option: str, parse: Callable[[str], T], text: str | None) -> T | None:
    """The value of an option; None where it was not given. InputError names the option."""
    if text is None:
        return None
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
