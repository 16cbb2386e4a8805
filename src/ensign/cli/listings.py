"""Commands that list: tests of a published suite, a project's own tests, the schemas of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.options import Outputs, expanded, output_options
from ensign.cli.output import complain, say


def schema(
    *,
    results: Annotated[
        bool,
        typer.Option("--results", help="The schema of the JSON that 'report' and 'compare' write."),
    ] = False,
) -> None:
    """Print the JSON Schema of a study file, or of the results as JSON."""
    if results:
        from ensign.report.formats import results_schema_text  # noqa: PLC0415

        say(results_schema_text())
        return
    import json  # noqa: PLC0415

    from ensign.model.study import study_schema  # noqa: PLC0415  # pydantic loads with it

    say(json.dumps(study_schema(), indent=2) + "\n")


def workloads(
    listed: Annotated[
        Path,
        typer.Argument(
            metavar="LIST",
            help="A list of tests as CTest (json-v1) or Meson (introspect) prints it.",
        ),
    ],
    *,
    source: Annotated[
        str, typer.Option(metavar="DIR", help="The source folder, as it stands in LIST.")
    ],
    artifact: Annotated[
        str,
        typer.Option(metavar="PATH", help="The study's artifact, below that: build/program."),
    ] = "",
) -> None:
    """Write a project's tests and benchmarks as [[workloads]] of a study, for you to choose from.

    Each keeps its arguments, its folder and its environment; paths below the source folder
    become {files}. What cannot be a workload is left as a comment, with the reason. Nothing is run.

    Exit status: 0, 2 where LIST is no such list.
    """
    from ensign.experiment.suites import project_workloads  # noqa: PLC0415  # pydantic loads

    say(project_workloads(listed, source, artifact))


_INPUT = 2


@expanded(outputs=output_options("json"))
def suites(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="Which suite, such as redis.")],
    *,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Only tests of this group, such as hash; may be given several times."),
    ] = None,
    path: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A checkout instead of the pinned wheel.")
    ] = None,
    server_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The version of the server under test.")
    ] = "7.0.15",
    outputs: Outputs,
) -> None:
    """List the tests of a published suite: what they send, and which a study can race.

    A test is expressible where ensign's own load generator sends what the suite's would, and
    runnable where the server's version knows its commands. Exit status: 0, 2 where a test's file is
    wrong.
    """
    from ensign.experiment.ports import Ports  # noqa: PLC0415  # pydantic and yaml load with these
    from ensign.experiment.study.opened import open_cache  # noqa: PLC0415
    from ensign.experiment.suites import list_suite  # noqa: PLC0415
    from ensign.model.errors import InputError  # noqa: PLC0415
    from ensign.report import as_suites  # noqa: PLC0415

    ports = Ports()
    with open_cache(ports) as cache:
        suite_list = list_suite(suite, path, server_version, cache, ports)
    rows = [row for row in suite_list.rows if not group or set(group) & set(row.groups)]
    if group and not rows:
        known = sorted({name for row in suite_list.rows for name in row.groups})
        raise InputError(
            f"no test is of the group {', '.join(group)}; there are {', '.join(known)}"
        )
    server = f"{suite} {server_version}"
    outputs.write_texts({"json": lambda: as_suites.as_json(rows, server)})
    if not outputs.to_standard_output:
        say(as_suites.terminal(rows, server))
    for mistake in suite_list.mistakes:
        complain(mistake)
    if suite_list.mistakes:
        raise typer.Exit(_INPUT)
