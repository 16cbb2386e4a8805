"""`ensign compare`: race commands, or servers, and say which is faster."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from ensign.cli.argv import words_of
from ensign.cli.outputs import (
    Details,
    FailOn,
    FailOnOption,
    Outputs,
    with_outputs,
)
from ensign.model.errors import InputError
from ensign.model.score_units import better_by, contradiction
from ensign.model.trials import Better, Metric, Mode, Score

if TYPE_CHECKING:
    from ensign.experiment.compare.parameters import Parameter

T = TypeVar("T")


@with_outputs()
def compare(  # noqa: PLR0913  # one parameter per option of the command line
    context: typer.Context,
    commands: Annotated[
        list[str],
        typer.Argument(
            help="Two commands or more; the first is the baseline. With --revisions or "
            "--environments one."
        ),
    ],
    *,
    revisions: Annotated[
        str | None,
        typer.Option(
            metavar="A..B",
            help="Build two commits of the repository here, and race one command with each; A "
            "alone is compared with HEAD.",
        ),
    ] = None,
    environments: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Race one command in root directories: host, debian:RELEASE, a directory or tar "
            "archive (with a slash), or names of --study.",
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The study whose [environments] are named."),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Builds the program in each checkout of --revisions."),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB",
            help="More files of each checkout that the command of --revisions needs, beside the "
            "program, its libraries and the files that it names; may be given several times.",
        ),
    ] = None,
    unconfined: Annotated[
        bool,
        typer.Option(
            "--unconfined",
            help="With --revisions: build and run as it is, with network and home folders.",
        ),
    ] = False,
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
        str,
        typer.Option(
            "--shell",
            "-S",
            metavar="[=SHELL]",
            help="Run commands by /bin/sh, or by SHELL (its start-up counts); 'none' is usual.",
        ),
    ] = "none",
    parameter_list: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter-list",
            "-L",
            metavar="VAR VALUES",
            help="Each command once for each value (a,b,c) of {VAR}.",
        ),
    ] = None,
    parameter_scan: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter-scan",
            "-P",
            metavar="VAR MIN MAX",
            help="Each command once for each number of {VAR}.",
        ),
    ] = None,
    parameter_step: Annotated[
        str | None,
        typer.Option("--parameter-step-size", "-D", help="Between numbers of a scan (default 1)."),
    ] = None,
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
    show_output: Annotated[
        bool, typer.Option("--show-output", help="Let commands print to the terminal.")
    ] = False,
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
    runs: Annotated[
        int | None, typer.Option("--runs", "-r", help="So many executions of each, exactly.")
    ] = None,
    min_runs: Annotated[
        int | None, typer.Option("--min-runs", "-m", help="So many executions of each at least.")
    ] = None,
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", "-M", help="So many executions of each at most.")
    ] = None,
    twin: Annotated[
        bool,
        typer.Option(
            "--twin/--no-twin",
            help="Race a second copy of the baseline, which shows what can be trusted, and halves "
            "the baseline's noise.",
        ),
    ] = True,
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
    drive: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of --load: what ensign's own load generator sends (TOML, as a study's "
            "'drive'); it can keep latency.",
        ),
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
    benchmarks: Annotated[
        str | None,
        typer.Option(
            metavar="FRAMEWORK",
            help="The programs are benchmarks made with google-benchmark, pyperf, criterion or "
            "libtest: each benchmark is compared.",
        ),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What each command must print; who does not is out."),
    ] = None,
    expected_sha256: Annotated[
        str | None, typer.Option(metavar="HASH", help="SHA-256 of what each command must print.")
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
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="All raw data in one file, for 'ensign report' later."),
    ] = None,
    details: Details = False,
    time_unit: Annotated[
        Literal["second", "millisecond", "microsecond"] | None,
        typer.Option("--time-unit", "-u", help="Unit of times in tables (default: as fits)."),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="Longest run of a command (default: the budget, else 10m)."),
    ] = None,
    ports: Annotated[
        str | None, typer.Option(help="Where {port} is taken from (default 20000-29999).")
    ] = None,
    fail_on: FailOnOption = None,
    race_same: Annotated[
        bool,
        typer.Option(
            "--race-same",
            help="Race commands that run the same program, too: a test of the measurement.",
        ),
    ] = False,
    share_machine: Annotated[
        bool, typer.Option("--share-machine", help="Do not wait for other races on this machine.")
    ] = False,
    confine: Annotated[
        bool,
        typer.Option(
            "--confine",
            help="Run the commands without network, home folders and other processes, all files "
            "read-only but {tmp}.",
        ),
    ] = False,
) -> None:
    """Race two or more commands (or servers); the first is the baseline.

    A command that fails is out of the race; the others race on, and its failure is reported.

    Exit status: 0 measured, 1 by --fail-on, 2 wrong use, 3 a command failed (also where the others
    were measured), 4 interrupted.
    """
    from ensign.cli.compare_run import run_compare  # noqa: PLC0415  # numpy loads with it
    from ensign.experiment.command_words import parse_cpus, parse_ports  # noqa: PLC0415
    from ensign.experiment.compare.drive_file import read_drive  # noqa: PLC0415
    from ensign.experiment.compare.options import DEFAULT_PORTS, Options  # noqa: PLC0415
    from ensign.experiment.compare.parameters import with_parameters  # noqa: PLC0415
    from ensign.model.units import parse_duration_ns, parse_share  # noqa: PLC0415

    options = Options(
        commands=tuple(commands),
        names=tuple(name or ()),
        build=build,
        setup=tuple(setup or ()),
        prepare=tuple(prepare or ()),
        cleanup=tuple(cleanup or ()),
        load=tuple(load or ()),
        preload=tuple(preload or ()),
        ready=ready,
        operations=operations,
        warmup=warmup,
        shell="" if shell == "none" else shell,
        input=input_file,
        output=_output(output, show_output=show_output),
        score=_score(score, unit, better),
        benchmarks=benchmarks or "",
        expected=expected,
        expected_sha256=expected_sha256,
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
        twin=twin,
        race_same=race_same,
        drive=None if drive is None else read_drive(drive),
        runs=runs,
        min_runs=min_runs,
        max_runs=max_runs,
        time_unit=time_unit or "",
    )
    if revisions is not None and len(commands) > 1:
        quoted = shlex.quote(" ".join(commands))
        raise InputError(f"--revisions races one command; if that is one, quote it: {quoted}")
    if revisions is not None and environments is not None:
        raise InputError("--revisions and --environments are two questions; ask one at a time")
    if revisions is None and (build is not None or files or unconfined):
        raise InputError(
            "--build, --files and --unconfined are for checkouts, which needs --revisions A..B"
        )
    options = with_parameters(options, _parameters(parameter_list, parameter_scan, parameter_step))
    redo = shlex.join(["ensign", *(context.obj or ())])
    failing = FailOn(tuple(fail_on or ()))
    if revisions is not None:
        from ensign.cli.revisions_run import run_revisions  # noqa: PLC0415

        status = run_revisions(
            options,
            revisions,
            outputs,
            failing,
            redo=redo,
            files=tuple(files or ()),
            bundle=bundle,
            details=details,
            share_machine=share_machine,
            confined=not unconfined,
        )
        if status:
            raise typer.Exit(status)
        return
    status = run_compare(
        options,
        outputs,
        failing,
        redo=redo,
        bundle=bundle,
        details=details,
        share_machine=share_machine,
        confine=confine,
        environments=environments,
        study=study,
    )
    if status:
        raise typer.Exit(status)


def _score(pattern: str | None, unit: str, better: Better | None) -> Score | None:
    """What a program says of its own speed. InputError where that is said by halves."""
    if pattern is None:
        if unit or better is not None:
            raise InputError("--unit and --better say more of a --score PATTERN; give that, too")
        return None
    from ensign.experiment.command_words import require_group  # noqa: PLC0415

    better = better or better_by(unit)
    if better is None:
        raise InputError(
            "--score needs --better higher or --better lower, or a --unit that is a time or a rate"
        )
    wrong = contradiction(unit, better)
    if wrong:
        raise InputError(f"--better {better}: --unit {wrong}; leave --better out")
    require_group("--score", pattern, "[0-9.]+")
    return Score(pattern, unit, better)


def _output(output: str | None, *, show_output: bool) -> str | None:
    if show_output and output is not None:
        raise InputError("--show-output is --output inherit; leave out one of them")
    return "inherit" if show_output else output


def _parameters(
    lists: list[str] | None, scans: list[str] | None, step: str | None
) -> list[Parameter]:
    """The parameters of the commands, in the order of the command line, lists first."""
    from ensign.experiment.compare.parameters import listed, scanned  # noqa: PLC0415

    if step is not None and not scans:
        raise InputError("--parameter-step-size needs a -P VAR MIN MAX")
    found = []
    for each in lists or ():
        name, values = words_of(each)
        found.append(listed(name, values))
    for each in scans or ():
        name, first, last = words_of(each)
        found.append(scanned(name, first, last, step))
    return found


def _read(option: str, parse: Callable[[str], T], text: str | None) -> T | None:
    """The value of an option; None where it was not given. InputError names the option."""
    if text is None:
        return None
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
