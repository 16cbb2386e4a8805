"""The one convention for outputs: `--json FILE`, `--markdown FILE`, …; `-` is standard output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensign.cli.output import say
from ensign.host.files import check_writable, write_atomically
from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity

if TYPE_CHECKING:
    from ensign.model.results import Result

STANDARD_OUTPUT = "-"
_SLOWER = "slower"
_SEVERITIES = tuple(Severity)

JsonFile = Annotated[
    str | None,
    typer.Option("--json", "--export-json", metavar="FILE", help="Everything ('-': to here)."),
]
MarkdownFile = Annotated[
    str | None,
    typer.Option("--markdown", "--export-markdown", metavar="FILE", help="For a pull request."),
]
CsvFile = Annotated[
    str | None,
    typer.Option("--csv", "--export-csv", metavar="FILE", help="A row for each comparison."),
]
HtmlFile = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="A page with figures, in one file.")
]
Details = Annotated[
    bool, typer.Option("--details", help="All tables, findings and notes in the terminal.")
]
FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="WHAT",
        help="Exit with 1 where one is 'slower' (beyond the margin), or a finding is a 'warning' "
        "(or worse) or an 'error'; may be given several times.",
    ),
]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where each format goes: a path, or `-`; what is not asked for is None."""

    files: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        to_here = [name for name, target in self._asked() if target == STANDARD_OUTPUT]
        if len(to_here) > 1:
            both = " and ".join(f"--{name}" for name in to_here)
            raise InputError(f"{both} cannot both go to standard output; name a file for one")

    @property
    def to_standard_output(self) -> bool:
        """Whether standard output is one of them, so that nothing else may be written there."""
        return any(target == STANDARD_OUTPUT for _, target in self._asked())

    def check(self) -> None:
        """InputError where one cannot be written, before anything is measured."""
        for _, target in self._asked():
            if target != STANDARD_OUTPUT:
                check_writable(Path(target))

    def write(self, formats: Mapping[str, Callable[[Result], str]], result: Result) -> None:
        """Renders and writes what was asked for; files before standard output, which may fail."""
        self.write_texts({name: partial(render, result) for name, render in formats.items()})

    def write_texts(self, texts: Mapping[str, Callable[[], str]]) -> None:
        """As `write`, of what makes each text."""
        for name, target in sorted(self._asked(), key=lambda each: each[1] == STANDARD_OUTPUT):
            text = texts[name]()
            if target == STANDARD_OUTPUT:
                say(text)
            else:
                write_atomically(Path(target).absolute(), text.encode())

    def _asked(self) -> list[tuple[str, str]]:
        return [(name, target) for name, target in self.files.items() if target is not None]


@dataclass(frozen=True, slots=True)
class FailOn:
    """What makes the exit status 1. InputError for a word that is not known."""

    words: tuple[str, ...] = ()
    known: tuple[str, ...] = (_SLOWER, *_SEVERITIES)

    def __post_init__(self) -> None:
        for word in self.words:
            if word not in self.known:
                raise InputError(f"--fail-on knows {', '.join(self.known)}, not '{word}'")

    def status(self, result: Result) -> int:
        """1 where that is so, else 0."""
        slower = _SLOWER in self.words and any(map(_is_slower, result.comparisons))
        return int(slower or bool(self.status_of(result.findings)))

    def status_of(self, findings: tuple[Finding, ...] | list[Finding]) -> int:
        """1 where a finding is as grave as that, else 0."""
        ranks = [_SEVERITIES.index(Severity(word)) for word in self.words if word != _SLOWER]
        return int(
            bool(ranks) and any(_SEVERITIES.index(each.severity) >= min(ranks) for each in findings)
        )


def _is_slower(comparison: Comparison) -> bool:
    is_slower = comparison.direction is Direction.SLOWER
    return is_slower and comparison.size in (None, Size.BEYOND)
