"""Commands with parameters: one variant for each combination of their values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import product

from ensign.experiment.compare.options import PER_COMMAND, WORDS, Options
from ensign.model.errors import InputError

_RESERVED = frozenset({"port", "tmp", "variant", "workload"})
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Parameter:
    """A placeholder `{name}` and what it stands for, in order."""

    name: str
    values: tuple[str, ...]


def scanned(name: str, first: str, last: str, step: str | None) -> Parameter:
    """All numbers from the first to the last. InputError for what is no number, or endless."""
    try:
        low, high = Decimal(first), Decimal(last)
        by = Decimal(step) if step is not None else Decimal(1)
    except InvalidOperation:
        raise InputError(f"-P {name} {first} {last}: the ends and the step are numbers") from None
    if by <= 0 or high < low:
        raise InputError(
            f"-P {name} {first} {last}: the step is above 0, and the last not below the first"
        )
    count = int((high - low) / by) + 1
    if count > _MOST:
        raise InputError(f"-P {name} {first} {last} has {count} values; at most {_MOST} are raced")
    return Parameter(name, tuple(str(low + index * by) for index in range(count)))


def listed(name: str, values: str) -> Parameter:
    """Values that commas divide. InputError without any."""
    words = tuple(word.strip() for word in values.split(",") if word.strip())
    if not words:
        raise InputError(f"-L {name} needs values, such as a,b,c")
    return Parameter(name, words)


def parameters_of(options: Options) -> list[Parameter]:
    """The parameters of the commands, in the order of the command line, lists first."""
    step = options.parameter_step
    if step is not None and not options.parameter_scan:
        raise InputError("--parameter-step-size needs a -P VAR MIN MAX")
    parameters = []
    for words in options.parameter_list:
        name, values = words.split(WORDS)
        parameters.append(listed(name, values))
    for words in options.parameter_scan:
        name, first, last = words.split(WORDS)
        parameters.append(scanned(name, first, last, step))
    return parameters


def with_parameters(options: Options, parameters: Sequence[Parameter]) -> Options:
    """The options with every command once for each combination that changes it.

    InputError for a parameter that no command has, or whose name means something else.
    """
    for each in parameters:
        if each.name in _RESERVED:
            raise InputError(
                f"{{{each.name}}} means something else; give the parameter another name"
            )
        if not any(f"{{{each.name}}}" in text for text in _texts(options)):
            raise InputError(f"no command has {{{each.name}}}, which a parameter stands for")
    if not parameters:
        return options
    combinations = [
        dict(zip((parameter.name for parameter in parameters), values, strict=True))
        for values in product(*(parameter.values for parameter in parameters))
    ]
    return _expanded(options, combinations)


def _texts(options: Options) -> list[str]:
    more = [text for part in PER_COMMAND for text in getattr(options, part)]
    return [*options.commands, *more]


def _expanded(options: Options, combinations: Sequence[Mapping[str, str]]) -> Options:
    count = len(options.commands)
    rows = []
    for index in range(count):
        parts = {part: _of(getattr(options, part), index) for part in PER_COMMAND}
        texts = [options.commands[index], *filter(None, parts.values())]
        seen = []
        for values in combinations:
            filled = tuple(_filled(text, values) for text in texts)
            if filled not in seen:
                seen.append(filled)
                rows.append((index, values))
    named = options.names
    names = tuple(_name(named[index], values) for index, values in rows if index < len(named))

    def part(texts: tuple[str, ...]) -> tuple[str, ...]:
        if not texts:
            return ()
        return tuple(_filled(_of(texts, index) or "", values) for index, values in rows)

    return replace(
        options,
        commands=tuple(_filled(options.commands[index], values) for index, values in rows),
        names=names if len(named) == count else (),
        setup=part(options.setup),
        prepare=part(options.prepare),
        cleanup=part(options.cleanup),
        load=part(options.load),
        preload=part(options.preload),
    )


def _of(texts: Sequence[str], index: int) -> str | None:
    if not texts:
        return None
    return texts[index] if len(texts) > 1 else texts[0]


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _name(name: str, values: Mapping[str, str]) -> str:
    return f"{name} ({', '.join(f'{key} = {value}' for key, value in values.items())})"
