"""What `plan`, `run`, `report` and `clean` do; imported late, numpy and polars come with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.cli.output import complain, say
from ensign.cli.progress import BuildProgress, RoundsProgress, StatusLine, screen_of
from ensign.cli.study import BY_DEFAULT
from ensign.host.files import check_writable, write_atomically
from ensign.host.race_lock import RaceLock
from ensign.lab.ports import Ports
from ensign.lab.study import evidence
from ensign.lab.study.differences import differences
from ensign.lab.study.plan import expectation
from ensign.lab.study.prepare import open_cache, open_study
from ensign.lab.study.progress import ProgressCallbacks
from ensign.lab.study.run import run_study
from ensign.lab.study_file import LimitOptions
from ensign.model.errors import InputError, RaceFailed
from ensign.model.results import StudyResult
from ensign.model.units import format_size, parse_duration_ns
from ensign.report import as_csv, as_difference, as_html, as_json, as_markdown, as_plan, as_terminal


@dataclass(frozen=True, slots=True)
class ReportFiles:
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


def run(
    path: Path, workloads: Sequence[str], limits: LimitOptions, lock: RaceLock, *, update_lock: bool
) -> None:
    """See `ensign.cli.study.run`."""
    ports = Ports(race_lock=lock)
    file = open_study(path, ports).with_workloads(workloads).with_limits(limits)
    with StatusLine(sys.stderr) as line, open_cache(ports) as cache:
        sys.stderr.write(as_plan.before_run(expectation(file, cache, ports)) + "\n")
        rounds = RoundsProgress(line, sys.stderr)
        progress = ProgressCallbacks(
            build=BuildProgress(line, sys.stderr).show,
            pilot=lambda workload: line.show(f"pilot: {workload}"),
            plan=rounds.expect,
            trial=rounds.show,
        )
        failure = _failure_of_race(
            lambda: run_study(file, cache, ports, progress, update_lock=update_lock)
        )
    with evidence.opened(path) as found:
        try:
            result = found.result()
        except InputError as error:
            # Nothing whole was measured before it failed.
            raise failure or error from None
    say(as_terminal.study(result, screen_of(sys.stdout)))
    page = found.page
    if not _is_current(page, result):
        write_html(result, page)
    say(f"Report: {page}\n")
    if failure is not None:
        raise failure


def _failure_of_race(race: Callable[[], None]) -> RaceFailed | None:
    """What failed while it raced: what was measured before is to be reported first."""
    try:
        race()
    except RaceFailed as error:
        return error
    return None


def report(path: Path, files: ReportFiles, *, every_workload: bool) -> None:
    """See `ensign.cli.study.report`."""
    with evidence.opened(path) as found:
        result = found.result()
    if files == ReportFiles(None, None, None, None):
        screen = screen_of(sys.stdout)
        say(as_terminal.study(result, screen, every_workload=every_workload))
        return
    if files.html is not None:
        page = write_html(result, _path(files.html, found.page))
        alone = BY_DEFAULT not in (files.markdown, files.csv, files.json)
        # Another kind on standard output must stay what it is.
        (say if alone else sys.stderr.write)(f"Report: {page}\n")
    for target, render in (
        (files.markdown, as_markdown.study),
        (files.csv, as_csv.study),
        (files.json, as_json.study),
    ):
        if target is not None:
            _give(render(result), target)


def diff_studies(a: Path, b: Path, files: Mapping[str, str | None]) -> None:
    """See `ensign.cli.study.diff_studies`; `files` says where markdown and JSON go."""
    found = differences(a, b)
    asked = {kind: target for kind, target in files.items() if target is not None}
    if not asked:
        say(as_difference.text(found, screen_of(sys.stdout).width))
    for kind, target in asked.items():
        render = as_difference.markdown if kind == "markdown" else as_difference.as_json
        _give(render(found), target)


def bundle(path: Path, output: Path | None) -> None:
    """See `ensign.cli.study.bundle`."""
    if output is not None:
        check_writable(output)
    made = evidence.bundle(path, output)
    say(f"Bundle: {made.path} ({format_size(made.size_bytes)}, SHA-256 {made.sha256})\n")


def unbundle(path: Path, folder: Path) -> None:
    """See `ensign.cli.study.unbundle`."""
    given, missing = evidence.unbundle(path, folder)
    for each in given:
        say(f"{each}\n")
    say(f"To run it again: ensign run {given[0]}\n")
    for text in missing:
        complain(text)


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


def _give(text: str, target: str) -> None:
    if target == BY_DEFAULT:
        say(text)
    else:
        write_atomically(_path(target, Path(target)), text.encode())


def _path(target: str, default: Path) -> Path:
    path = default if target == BY_DEFAULT else Path(target)
    check_writable(path)
    return path.absolute()
