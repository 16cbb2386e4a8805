"""What `plan`, `run`, `report` and `clean` do; imported late, numpy and polars come with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.cli.output import say
from ensign.cli.progress import BuildProgress, StatusLine, SweepsProgress, screen_of
from ensign.cli.study import BY_DEFAULT
from ensign.host.files import check_writable, write_atomically
from ensign.lab.ports import Ports
from ensign.lab.study import perform
from ensign.lab.study.plan import expectation
from ensign.lab.study.prepare import open_cache, open_study
from ensign.model.results import StudyResult
from ensign.model.units import format_size, parse_duration_ns
from ensign.report import as_csv, as_html, as_json, as_markdown, as_plan, as_terminal


@dataclass(frozen=True, slots=True)
class Files:
    """Where each kind of report goes: a path, `-` for its default, None for not asked for."""

    html: str | None
    markdown: str | None
    csv: str | None
    json: str | None


def plan(path: Path, workloads: Sequence[str]) -> None:
    """See `ensign.cli.study.plan`."""
    ports = Ports()
    file = open_study(path, ports).with_workloads(workloads)
    with open_cache(ports) as cache:
        expected = expectation(file, cache, ports)
    say(as_plan.plan(expected, screen_of(sys.stdout).width))


def run(path: Path, workloads: Sequence[str], *, update_lock: bool) -> None:
    """See `ensign.cli.study.run`."""
    ports = Ports()
    file = open_study(path, ports).with_workloads(workloads)
    with StatusLine(sys.stderr) as line, open_cache(ports) as cache:
        sweeps = SweepsProgress(line)
        telling = perform.Telling(
            build=BuildProgress(line, sys.stderr).show,
            pilot=lambda workload: line.show(f"pilot: {workload}"),
            trial=sweeps.show,
        )
        result = perform.run_study(file, cache, ports, telling, update_lock=update_lock)
    say(as_terminal.study(result, screen_of(sys.stdout)))
    page = perform.folder_of(file).root / "report.html"
    if not _is_current(page, result):
        write_html(result, page)
    say(f"Report: {page}\n")


def report(path: Path, files: Files, *, every_workload: bool) -> None:
    """See `ensign.cli.study.report`."""
    file = open_study(path)
    result = perform.stored_result(file)
    if files == Files(None, None, None, None):
        screen = screen_of(sys.stdout)
        say(as_terminal.study(result, screen, every_workload=every_workload))
        return
    if files.html is not None:
        beside = perform.folder_of(file).root / "report.html"
        say(f"Report: {write_html(result, _path(files.html, beside))}\n")
    for target, render in (
        (files.markdown, as_markdown.study),
        (files.csv, as_csv.study),
        (files.json, as_json.study),
    ):
        if target == BY_DEFAULT:
            say(render(result))
        elif target is not None:
            write_atomically(_path(target, Path(target)), render(result).encode())


def clean(older_than: str | None) -> None:
    """See `ensign.cli.study.clean`."""
    age_s = None if older_than is None else parse_duration_ns(older_than) / 1e9
    with open_cache(Ports()) as cache:
        freed_bytes = cache.clean(age_s)
    say(f"Freed {format_size(freed_bytes)}.\n")


def write_html(result: StudyResult, path: Path) -> Path:
    """Writes the page; its path."""
    write_atomically(path, as_html.study(result).encode())
    return path


def _is_current(page: Path, result: StudyResult) -> bool:
    # Drawing takes longer than all else that a finished study needs.
    try:
        return as_html.shows(page.read_text(encoding="utf-8", errors="replace"), result)
    except OSError:
        return False


def _path(target: str, default: Path) -> Path:
    path = default if target == BY_DEFAULT else Path(target)
    check_writable(path)
    return path.absolute()
