"""What `ensign compare` does once its options are read; imported late, numpy comes with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ensign.cli.machine_lock import machine_lock
from ensign.cli.output import say
from ensign.cli.progress import CompareProgress, StatusLine, screen_of
from ensign.host.files import check_writable, write_atomically
from ensign.host.signals import signals_deferred
from ensign.lab.compare.options import Options, command_variants
from ensign.lab.compare.result import compare_result
from ensign.lab.compare.run import Comparing
from ensign.lab.cpu_plan import cpus_of_options
from ensign.lab.machine import machine_state
from ensign.lab.ports import Ports
from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.errors import InputError
from ensign.model.results import CompareResult, Stopped
from ensign.report import as_csv, as_json, as_markdown, as_terminal

_INTERRUPTED = 4


@dataclass(frozen=True, slots=True)
class Exports:
    """Where results go, besides the terminal."""

    json: Path | None
    csv: Path | None
    markdown: Path | None

    def check(self) -> None:
        """InputError where one cannot be written, before anything is measured."""
        for path in (self.json, self.csv, self.markdown):
            if path is not None:
                check_writable(path)


def parse_fail_if(text: str | None) -> bool:
    """Whether `--fail-if slower` was given. InputError for any other word."""
    if text not in (None, "slower"):
        raise InputError(f"--fail-if knows 'slower', not '{text}'")
    return text is not None


def run_compare(
    options: Options, exports: Exports, *, fail_if_slower: bool, share_machine: bool = False
) -> int:
    """Races, prints, exports. Returns the exit status; errors pass."""
    exports.check()
    if options.input is not None and Path(options.input).is_dir():
        raise InputError(f"--input {options.input} is a folder; name a file in it")
    commands = command_variants(options)
    ports = Ports(race_lock=machine_lock(share=share_machine))
    cpus, cpu_findings = cpus_of_options(options.cpus, servers=bool(options.load))
    before = machine_state()
    with StatusLine(sys.stderr) as line:
        progress = CompareProgress(line, sys.stderr)
        comparing = Comparing(options, commands, cpus, ports, progress.show, progress.expect)
        raced = comparing.run()
    with signals_deferred():
        compared = raced.judged()
        after = machine_state()
        findings = (*cpu_findings, *before.findings_until(after))
        made_at = datetime.now(tz=UTC).isoformat(timespec="seconds")
        result = compare_result(options, compared, after.facts_since(before), findings, made_at)
        # First what lasts: standard output may be on a full disk.
        _export(result, exports)
        say(as_terminal.compare(result, screen_of(sys.stdout)))
    if compared.error is not None:
        raise compared.error
    if result.stopped is Stopped.INTERRUPTED:
        return _INTERRUPTED
    return int(fail_if_slower and any(map(_slower, result.comparisons)))


def _slower(comparison: Comparison) -> bool:
    is_slower = comparison.direction is Direction.SLOWER
    return is_slower and comparison.size in (None, Size.BEYOND)


def _export(result: CompareResult, exports: Exports) -> None:
    if exports.json is not None:
        write_atomically(exports.json.absolute(), as_json.compare(result).encode())
    if exports.csv is not None:
        write_atomically(exports.csv.absolute(), as_csv.compare(result).encode())
    if exports.markdown is not None:
        write_atomically(exports.markdown.absolute(), as_markdown.compare(result).encode())
