"""Options that commands share: outputs (`--json FILE`, …; `-` is standard output), `--fail-on`.

Options that are declared elsewhere become parameters of a command here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

from ensign.cli.output import say
from ensign.experiment.compare.options import DeclaredOption, Options, declared_options
from ensign.host.files import check_writable, write_atomically
from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.report.formats import FORMATS

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
    """Destination of each format: a path, or `-`; what is not asked for is None."""

    files: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        to_here = [name for name, target in self._asked() if target == STANDARD_OUTPUT]
        if len(to_here) > 1:
            both = " and ".join(f"--{name}" for name in to_here)
            raise InputError(f"{both} cannot both go to standard output; name a file for one")

    @property
    def are_asked_for(self) -> bool:
        """True if there are any."""
        return bool(self._asked())

    @property
    def to_standard_output(self) -> bool:
        """True if standard output is one of them, so that nothing else may be written there."""
        return any(target == STANDARD_OUTPUT for _, target in self._asked())

    def check(self) -> None:
        """InputError where one cannot be written, before anything is measured."""
        for _, target in self._asked():
            if target != STANDARD_OUTPUT:
                check_writable(Path(target))

    def write(self, result: Result) -> None:
        """Renders and writes what was asked for; files before standard output, which may fail."""
        self.write_texts(
            {file_format.name: partial(file_format.render, result) for file_format in FORMATS}
        )

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
class Expansion:
    """Parameters of the command line that a command takes as one value."""

    parameters: tuple[inspect.Parameter, ...]
    value: Callable[[dict[str, Any]], object]


def expanded(
    **expansions: Expansion,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the parameters of each expansion in the place of the one so named."""

    def given(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_parameters(**values: Any) -> None:
            made = {
                name: expansion.value(
                    {one.name: values.pop(one.name) for one in expansion.parameters}
                )
                for name, expansion in expansions.items()
            }
            command(**values, **made)

        hints = get_type_hints(command, include_extras=True)
        parameters = [
            new
            for old in inspect.signature(command).parameters.values()
            for new in (
                expansions[old.name].parameters
                if old.name in expansions
                else [old.replace(annotation=hints[old.name])]
            )
        ]
        with_parameters.__annotations__ = {
            parameter.name: parameter.annotation for parameter in parameters
        }
        # Typer reads it; mypy knows no such attribute.
        vars(with_parameters)["__signature__"] = inspect.Signature(parameters)
        return with_parameters

    return given


def output_options(*names: str) -> Expansion:
    """The options of these formats (of all, without names)."""
    chosen = [file_format for file_format in FORMATS if file_format.name in names or not names]
    return Expansion(
        tuple(
            _keyword(
                file_format.name,
                str | None,
                typer.Option(
                    f"--{file_format.name}",
                    *file_format.aliases,
                    metavar="FILE",
                    help=file_format.help,
                ),
            )
            for file_format in chosen
        ),
        Outputs,
    )


def compare_options() -> Expansion:
    """The options of `compare`, read."""
    declared = {option.name: option for option in declared_options()}

    def value(values: dict[str, Any]) -> Options:
        given = {name: value for name, value in values.items() if value not in (None, [])}
        return Options(**{name: _read(declared[name], each) for name, each in given.items()})

    return Expansion(tuple(map(_parameter, declared.values())), value)


def _parameter(declared: DeclaredOption) -> inspect.Parameter:
    option, kind, default = declared.option, declared.kind, declared.default
    if option.is_argument:
        argument = typer.Argument(help=option.help)
        return _keyword(declared.name, list[str], argument, inspect.Parameter.empty)
    if option.read is not None or option.kind is not None:
        kind, default = (option.kind or str) | None, option.default
    elif get_origin(kind) is tuple:
        kind, default = list[str] | None, None
    option_info = typer.Option(
        *declared.names, metavar=option.metavar, help=option.help, min=option.least
    )
    return _keyword(declared.name, kind, option_info, default)


def _keyword(name: str, kind: Any, said: Any, default: object = None) -> inspect.Parameter:
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, said])


def _read(declared: DeclaredOption, value: Any) -> Any:
    """The value of an option. InputError names the option."""
    if isinstance(value, list):
        return tuple(value)
    if declared.option.read is None:
        return value
    try:
        return declared.option.read(value)
    except InputError as error:
        raise InputError(f"{declared.names[0]}: {error}") from None


@dataclass(frozen=True, slots=True)
class FailOn:
    """Conditions that make the exit status 1. InputError for a word that is not known."""

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
            bool(ranks)
            and any(_SEVERITIES.index(finding.severity) >= min(ranks) for finding in findings)
        )


def _is_slower(comparison: Comparison) -> bool:
    is_slower = comparison.direction is Direction.SLOWER
    return is_slower and comparison.size in (None, Size.BEYOND)
