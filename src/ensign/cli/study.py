"""`ensign plan`, `run`, `report` and `clean`: a study from its file to its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.options import (
    Details,
    FailOn,
    FailOnOption,
    Outputs,
    expanded,
    output_options,
)
from ensign.cli.output import say
from ensign.model.errors import InputError

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file (TOML).")]
EvidencePath = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A study file, or a bundle of one (zip).")
]
Signers = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        metavar="FILE",
        help="With --verify: whose signatures count (an allowed_signers file of ssh-keygen).",
    ),
]
UpdateLock = Annotated[
    bool, typer.Option("--update-lock", help="Accept a source that changed since the lock file.")
]
ShareMachine = Annotated[
    bool, typer.Option("--share-machine", help="Do not wait for other races on this machine.")
]
Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", help="Race only this workload; may be given several times."),
]


On = Annotated[
    Path | None,
    typer.Option(
        "--on",
        metavar="FILE",
        help="On the hosts of a Slurm cluster, as this file says: cluster.toml, or the study "
        "itself where it has a table [cluster].",
    ),
]


def plan(study: StudyPath, *, workload: Workloads = None, on: On = None) -> None:
    """Show variants, workloads, expected time and disk; build and race nothing.

    Nothing of the study's own is run: compilers in its folders are named, and not tried.
    """
    from ensign.cli import study_run  # noqa: PLC0415  # numpy loads with it

    study_run.plan(study, workload or [], on)


@expanded(outputs=output_options())
def run(  # noqa: PLR0913  # one parameter per option of the command line
    study: StudyPath,
    *,
    workload: Workloads = None,
    budget: Annotated[
        str | None, typer.Option(help="Racing time, such as 2h, instead of the study's.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="Half-width of geometric means that suffices, such as 0.3%."),
    ] = None,
    update_lock: UpdateLock = False,
    outputs: Outputs,
    details: Details = False,
    fail_on: FailOnOption = None,
    share_machine: ShareMachine = False,
    on: On = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="With --on: cancel the study's jobs, submit none.")
    ] = False,
    unconfined: Annotated[
        bool,
        typer.Option("--unconfined", help="Run the study's programs as they are, not confined."),
    ] = False,
    install_build_deps: Annotated[
        bool,
        typer.Option(
            "--install-build-deps",
            help="Install what the Debian package needs to be built (as root, by apt-get).",
        ),
    ] = False,
) -> None:
    """Build what is missing, verify, race what is missing, say what came out; resumable.

    A variant that fails while it is raced is out, and the report says so; the others go on. A page
    with figures is written beside the results in any case. With --on, builds and races are jobs
    of a cluster; the same command takes them up again, from any terminal.

    Exit status: 0 done, 1 by --fail-on, 2 wrong input, 3 the baseline failed (what was measured
    before is reported) or every variant did, 4 interrupted (run it again, with the same options).
    """
    from ensign.cli import study_run  # noqa: PLC0415
    from ensign.experiment.study_file import RunOptions  # noqa: PLC0415

    options = RunOptions(tuple(workload or ()), budget, precision, confined=not unconfined)
    failing = FailOn(tuple(fail_on or ()))
    if on is not None:
        from ensign.cli import cluster_run  # noqa: PLC0415

        if cancel:
            cluster_run.cancel(study, on)
            return
        here = {
            "--fail-on": fail_on,
            "--share-machine": share_machine,
            "--install-build-deps": install_build_deps,
        }
        alone = [name for name, given in here.items() if given]
        if alone:
            raise InputError(f"{alone[0]} is for a run on this machine: it does not go with --on")
        cluster_run.run(study, on, options, outputs, details=details, update_lock=update_lock)
        return
    if cancel:
        raise InputError("--cancel needs --on FILE, by which the jobs were submitted")
    status = study_run.run(
        study,
        options,
        outputs,
        failing,
        details=details,
        share_machine=share_machine,
        update_lock=update_lock,
        install_dependencies=install_build_deps,
    )
    _end(status)


@expanded(outputs=output_options())
def report(  # noqa: PLR0913  # one parameter per option of the command line
    study: EvidencePath,
    *,
    outputs: Outputs,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            help="Of a study on a cluster: this host's own report; 'local' is what this machine "
            "raced without it.",
        ),
    ] = None,
    details: Details = False,
    every_workload: Annotated[
        bool, typer.Option("--workloads", help="In the terminal, show every workload.")
    ] = False,
    fail_on: FailOnOption = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Report nothing, but check that what was told follows from what was measured, "
            "and who signed a bundle.",
        ),
    ] = False,
    signers: Signers = None,
) -> None:
    """Report what was found: in the terminal, or as HTML, markdown, CSV or JSON.

    Exit status: 0 done, 1 by --fail-on or where --verify finds a difference, 2 wrong input.
    """
    from ensign.cli import report_run  # noqa: PLC0415

    if verify:
        _end(report_run.verify(study, signers))
        return
    failing = FailOn(tuple(fail_on or ()))
    _end(
        report_run.report(
            study, outputs, failing, host=host, details=details, every_workload=every_workload
        )
    )


@expanded(outputs=output_options("markdown", "json"))
def diff_studies(
    a: Annotated[Path, typer.Argument(metavar="A", help="A study file or a bundle.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another host's or date's.")],
    *,
    outputs: Outputs,
) -> None:
    """Say what changed between two studies: ratios of ratios, builds, machine, settings."""
    from ensign.cli import report_run  # noqa: PLC0415

    report_run.diff_studies(a, b, outputs)


@expanded(outputs=output_options("markdown", "json", "html"))
def merge(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND=]RESULTS...",
            help="Study files or bundles, one for each host; KIND is what kind of host it is "
            "(default: its processor).",
        ),
    ],
    *,
    share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=SHARE", help="Share of the fleet (default: all kinds have an equal one)."
        ),
    ] = None,
    outputs: Outputs,
) -> None:
    """Say what is true of several hosts: of each, of each kind of host, and of the fleet.

    Hosts of a kind are a sample of it, so two of each kind are needed, and more tell more.
    """
    from ensign.cli import report_run  # noqa: PLC0415

    report_run.merge(results, share or [], outputs)


def _end(status: int) -> None:
    if status:
        raise typer.Exit(status)


def bundle(
    study: EvidencePath,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The bundle (default: NAME.bundle.zip beside STUDY)."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", metavar="KEY", help="Sign it with a key of ssh-keygen."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Of a bundle: check that it is whole, and who signed it."),
    ] = False,
    signers: Signers = None,
) -> None:
    """Put a study and all that its report follows from into one file, for `report` anywhere.

    With --sign, a bundle that is there is signed, such as one that `compare` wrote.

    Exit status: 0 done, 1 where --verify finds it changed, unsigned, or signed by another than the
    signers, 2 wrong input.
    """
    from ensign.cli import report_run  # noqa: PLC0415

    if verify:
        _end(report_run.verify_bundle(study, signers))
        return
    report_run.bundle(study, output, sign)


def unbundle(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What 'ensign bundle' made.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Created if it does not exist.")],
) -> None:
    """Take study file and lock file out of a bundle, to run the study again."""
    from ensign.cli import report_run  # noqa: PLC0415

    report_run.unbundle(bundle, folder)


def clean(
    *,
    older_than: Annotated[
        str | None, typer.Option(help="Only what has not been used for this long, such as 24h.")
    ] = None,
) -> None:
    """Empty the cache of sources and builds; results beside studies stay."""
    from ensign.experiment.ports import Ports  # noqa: PLC0415  # pydantic loads with it
    from ensign.experiment.study.opened import open_cache  # noqa: PLC0415
    from ensign.model.units import format_size, parse_duration_ns  # noqa: PLC0415

    age_s = None if older_than is None else parse_duration_ns(older_than) / 1e9
    with open_cache(Ports()) as cache:
        freed_bytes = cache.clean(age_s)
    say(f"Freed {format_size(freed_bytes)}.\n")
