"""`ensign plan`, `run`, `report` and `clean`: a study from its file to its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file (TOML).")]
EvidencePath = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A study file, or a bundle of one (zip).")
]
UpdateLock = Annotated[
    bool, typer.Option("--update-lock", help="Accept a source that changed since the lock file.")
]
Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", help="Race only this workload; may be given several times."),
]

_STUDIES = (".toml", ".zip")
_OPTIONAL_VALUES = ("--html", "--markdown", "--csv", "--json")
BY_DEFAULT = "-"


def with_optional_values(argv: list[str]) -> list[str]:
    """`report --json` means `report --json -`: these options may stand without a file. Pure."""
    if not {"report", "diff-studies"}.intersection(argv[:1]):
        return argv
    filled: list[str] = []
    for index, word in enumerate(argv):
        filled.append(word)
        following = argv[index + 1 : index + 2]
        alone = not following or following[0].startswith("-") or following[0].endswith(_STUDIES)
        if word in _OPTIONAL_VALUES and alone and following != [BY_DEFAULT]:
            filled.append(BY_DEFAULT)
    return filled


def plan(study: StudyPath, *, workload: Workloads = None) -> None:
    """Show variants, workloads, expected time and disk; build and race nothing."""
    from ensign.cli import study_run  # noqa: PLC0415  # numpy and polars load with it

    study_run.plan(study, workload or [])


def run(
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
    share_machine: Annotated[
        bool, typer.Option("--share-machine", help="Do not wait for other races on this machine.")
    ] = False,
) -> None:
    """Build what is missing, verify, race what is missing, say what came out; resumable.

    A variant that fails while it is raced is out, and the report says so; the others go on.

    Exit status: 0 done, 2 wrong input, 3 the baseline failed (what was measured before is reported)
    or every variant did, 4 interrupted (run it again, with the same options).
    """
    from ensign.cli import study_run  # noqa: PLC0415
    from ensign.cli.machine_lock import machine_lock  # noqa: PLC0415
    from ensign.lab.study_file import LimitOptions  # noqa: PLC0415

    limits = LimitOptions(budget=budget, precision=precision)
    lock = machine_lock(share=share_machine)
    study_run.run(study, workload or [], limits, lock, update_lock=update_lock)


def report(
    study: EvidencePath,
    *,
    html: Annotated[
        str | None,
        typer.Option(help="One self-contained file (default: beside the results or the bundle)."),
    ] = None,
    markdown: Annotated[
        str | None, typer.Option(help="For a pull request (default: standard output).")
    ] = None,
    csv: Annotated[
        str | None, typer.Option(help="A row per comparison (default: standard output).")
    ] = None,
    json: Annotated[
        str | None, typer.Option(help="Everything but raw trials (default: standard output).")
    ] = None,
    every_workload: Annotated[
        bool, typer.Option("--workloads", help="In the terminal, show every workload.")
    ] = False,
) -> None:
    """Report what a study found: in the terminal, or as HTML, markdown, CSV or JSON."""
    from ensign.cli import study_run  # noqa: PLC0415

    files = study_run.ReportFiles(html=html, markdown=markdown, csv=csv, json=json)
    study_run.report(study, files, every_workload=every_workload)


def diff_studies(
    a: Annotated[Path, typer.Argument(metavar="A", help="A study file or a bundle.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another host's or date's.")],
    *,
    markdown: Annotated[
        str | None, typer.Option(help="For a pull request (default: standard output).")
    ] = None,
    json: Annotated[str | None, typer.Option(help="Default: standard output.")] = None,
) -> None:
    """Say what changed between two studies: ratios of ratios, builds, machine, settings."""
    from ensign.cli import study_run  # noqa: PLC0415

    study_run.diff_studies(a, b, {"markdown": markdown, "json": json})


def bundle(
    study: StudyPath,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The bundle (default: NAME.bundle.zip beside STUDY)."),
    ] = None,
) -> None:
    """Put a study and all that its report follows from into one file, for `report` anywhere."""
    from ensign.cli import study_run  # noqa: PLC0415

    study_run.bundle(study, output)


def unbundle(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What 'ensign bundle' made.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Made where it is missing.")],
) -> None:
    """Take study file and lock file out of a bundle, to run the study again."""
    from ensign.cli import study_run  # noqa: PLC0415

    study_run.unbundle(bundle, folder)


def clean(
    *,
    older_than: Annotated[
        str | None, typer.Option(help="Only what was not used for so long, such as 24h.")
    ] = None,
) -> None:
    """Empty the cache of sources and builds; results beside studies stay."""
    from ensign.cli import study_run  # noqa: PLC0415

    study_run.clean(older_than)
