"""The one convention for outputs: `--json FILE`, `--markdown FILE`, …; `-` is standard output."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ensign.cli.output import say
from ensign.host.files import check_writable, write_atomically
from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.report.formats import FORMATS, Format

if TYPE_CHECKING:
    from ensign.model.results import Result

STANDARD_OUTPUT = "-"
_SLOWER = "slower"
_SEVERITIES = tuple(Severity)

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
    def are_asked_for(self) -> bool:
        """Whether there are any."""
        return bool(self._asked())

    @property
    def to_standard_output(self) -> bool:
        """Whether standard output is one of them, so that nothing else may be written there."""
        return any(target == STANDARD_OUTPUT for _, target in self._asked())

    def check(self) -> None:
        """InputError where one cannot be written, before anything is measured."""
        for _, target in self._asked():
            if target != STANDARD_OUTPUT:
                check_writable(Path(target))

    def write(self, result: Result) -> None:
        """Renders and writes what was asked for; files before standard output, which may fail."""
        self.write_texts({each.name: partial(each.render, result) for each in FORMATS})

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


def with_outputs(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of these formats (of all, without names) for its `outputs`."""
    chosen = [each for each in FORMATS if each.name in names or not names]

    def given(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**values: Any) -> None:
            files = {each.name: values.pop(each.name) for each in chosen}
            command(**values, outputs=Outputs(files))

        options = [_option(each) for each in chosen]
        hints = get_type_hints(command, include_extras=True)
        parameters = [
            new
            for old in inspect.signature(command).parameters.values()
            for new in (options if old.name == "outputs" else [_typed(old, hints)])
        ]
        with_options.__annotations__ = {each.name: each.annotation for each in parameters}
        # Typer reads it; mypy knows no such attribute.
        vars(with_options)["__signature__"] = inspect.Signature(parameters)
        return with_options

    return given


def _typed(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> inspect.Parameter:
    return parameter.replace(annotation=hints[parameter.name])


def _option(each: Format) -> inspect.Parameter:
    option = typer.Option(f"--{each.name}", *each.aliases, metavar="FILE", help=each.help)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(
        each.name, kind, default=None, annotation=Annotated[str | None, option]
    )


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
