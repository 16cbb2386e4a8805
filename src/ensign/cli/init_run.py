"""Body of `ensign init`; imported late."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from ensign.cli.output import say
from ensign.cli.progress import BuildProgress, StatusLine
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache
from ensign.model.errors import InputError
from ensign.tools.init.axes import asked_axes, vary
from ensign.tools.init.first_build import Callbacks
from ensign.tools.init.first_study import FirstStudy, InitRequest, first_study

_FILE = "ensign.toml"


@dataclass(frozen=True, slots=True)
class InitOptions:
    """Options of the command line, empty where it says nothing."""

    system: str
    artifact: str
    command: str
    axes: tuple[str, ...]


def init(folder: Path, asked: InitOptions, *, force: bool) -> None:
    """See `ensign.cli.init.init`."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    file = folder / _FILE
    if file.exists() and not force:
        raise InputError(f"{file} is there already: --force writes over it, 'ensign run' runs it")
    axes = asked_axes(asked.axes)
    artifact = asked.artifact or (shlex.split(asked.command) or [""])[0]
    wish = InitRequest(folder, file, asked.system, artifact, asked.command)
    ports = Ports()
    with StatusLine(sys.stderr) as line, open_cache(ports) as cache:
        told = Callbacks(BuildProgress(line, sys.stderr).show, line.show)
        written = first_study(wish, cache, ports, told)
        vary(file, axes)
    say(_told(written))


def _told(written: FirstStudy) -> str:
    lines = [
        f"{written.file}: {written.artifact}, built by {written.system}, raced on",
        f"  {written.command}",
        *written.notes,
        f"Next: ensign run {shlex.quote(str(written.file))}",
    ]
    return "".join(f"{line}\n" for line in lines)
