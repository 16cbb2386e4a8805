"""`ensign record`: run a build as it is, and keep what it called for `ensign doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.output import complain
from ensign.model.units import pluralize


def record(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The build, as `-- make -j4`.")
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where it is kept (.ensign-record.jsonl, here)."),
    ] = None,
) -> None:
    """Run a build and write down each call of a compiler, linker or archiver.

    `ensign doctor` in this folder, or of a program in it, then knows every call. The command runs
    as you do, unconfined; its exit status is that of this one, and signals go to it.
    """
    from ensign.experiment.ports import Ports  # noqa: PLC0415  # pydantic loads here
    from ensign.tools.record_build import watch_build  # noqa: PLC0415

    built = watch_build(command, output, Ports())
    kept = f"; {built.kept} calls of earlier builds still hold" if built.kept else ""
    if built.built_nothing:
        complain(f"nothing was recorded: there was nothing to build{kept}")
    elif built.calls:
        did = f"{built.compiled} compiled, {built.linked} linked"
        complain(f"recorded {pluralize(len(built.calls), 'call')} ({did}) in {built.file}{kept}")
    else:
        complain(
            "no call of a compiler was recorded: there was nothing to build, its compiler is not "
            "one for C, C++ or Rust, or the build calls it by a path, as CMake does (configure it "
            f"under 'ensign record', too){kept}"
        )
    if built.calls and not built.compiled and not built.linked and not built.built_nothing:
        complain(
            "no compiler was among them: the build calls it by a path, or by a program that finds "
            "its own; give the build its bare name, as in CC=gcc"
        )
    if built.exit:
        raise typer.Exit(built.exit)
