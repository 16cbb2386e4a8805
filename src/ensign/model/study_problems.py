"""Problems of a study file, in words for its author. Pure."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ensign.model import placeholders
from ensign.model.quoting import quoted
from ensign.model.study import Study

_LONGEST_VALUE = 60
Where = tuple[str | int, ...]

_PATTERNS = {
    r"^[a-z0-9][a-z0-9_.+-]*$": "must be small letters, digits and _.+-, a letter or digit first",
    r"^[a-z][a-z0-9_]*$": "must be small letters, digits and _, a letter first",
    r"^[A-Za-z0-9][A-Za-z0-9_.,@:+-]*$": "must be letters, digits and _.,@:+-, without spaces",
    r"^[A-Za-z0-9(\[!][A-Za-z0-9_.,:=@+&|()\[\]*!-]*$": "must be features joined by & or |",
    r"^[A-Za-z0-9][A-Za-z0-9_.-]*$": "must be the name of one node",
    r"^[0-9a-f]{64}$": "must be the 64 small hexadecimal digits of a SHA-256",
}
_WANTED = {
    "string_type": 'a text in quotes, such as "5m" or "1%"',
    "int_type": "a whole number, without quotes",
    "float_type": "a number, such as 0.95",
    "bool_type": "true or false",
    "list_type": 'a list, such as ["a", "b"]',
    "tuple_type": "a list of two numbers, such as [20000, 29999]",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the keys and indices that lead to it, and what is wrong."""

    where: Where
    text: str


Origins = Mapping[Where, tuple[int, ...]]


def check_shape(
    mapping: Mapping[str, object], origins: Origins = MappingProxyType({})
) -> tuple[Study | None, tuple[Problem, ...]]:
    """The study of a parsed file, or None and what is wrong with its keys and values.

    `origins` has, by the keys that lead to a list, which of the written items each item is.
    """
    try:
        return Study.model_validate(dict(mapping)), ()
    except ValidationError as error:
        return None, shape_problems(error, origins)


def shape_problems(
    error: ValidationError, origins: Origins = MappingProxyType({})
) -> tuple[Problem, ...]:
    """What is wrong with keys and values of a study, or of a table that it may have."""
    details = error.errors(include_url=False)
    problems = [_problem(detail, origins) for detail in details if detail["type"] != "missing"]
    misspelt = {_nearest_key(detail) for detail in details if detail["type"] == "extra_forbidden"}
    problems += [
        _problem(detail, origins)
        for detail in details
        if detail["type"] == "missing" and _where(detail) not in misspelt
    ]
    return tuple(problems)


def is_repeated(where: Where, origins: Origins) -> bool:
    """True if what is wrong there is wrong with an earlier item of the same origin, too."""
    start = _list_of(where, origins)
    if start is None or where[-1:] == ("name",):
        return False
    index = int(where[len(start)])
    return origins[start][index] in origins[start][:index]


def _list_of(where: Where, origins: Origins) -> Where | None:
    """The keys that lead to the list that it is in, if its items are not as they were written."""
    for start, written in origins.items():
        index = where[len(start)] if where[: len(start)] == start and where != start else None
        if isinstance(index, int) and index < len(written):
            return start
    return None


def _as_written(where: Where, origins: Origins) -> Where:
    start = _list_of(where, origins)
    if start is None:
        return where
    index = origins[start][int(where[len(start)])]
    return (*start, index, *where[len(start) + 1 :])


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The one of `valid` that is most like a word, or None where nothing is like it."""
    ordered = list(dict.fromkeys(valid))
    for cutoff in (0.6, 0.4):
        matches = difflib.get_close_matches(word, ordered, n=1, cutoff=cutoff)
        if matches:
            return matches[0]
    return None


def suggestion(word: str, valid: Sequence[str]) -> str:
    """`; nearest is 'x'`, or all of `valid` where none is near; empty without any."""
    near = nearest(word, valid)
    if near is not None:
        return f"; nearest is '{near}'"
    if not valid:
        return ""
    return f"; valid: {', '.join(valid)}"


def table_name(where: Where) -> str:
    """`[race]`, `[[workloads]]` number 3, or the file itself, for use after "in"."""
    names = ".".join(step for step in where if isinstance(step, str))
    if not names:
        return "the study"
    if isinstance(where[-1], int):
        return f"[[{names}]] number {where[-1] + 1}"
    return f"[{names}]"


def _where(detail: ErrorDetails) -> Where:
    steps = tuple(step for step in detail["loc"] if step != "[key]")
    if steps[:1] == ("source",):  # a tagged union: pydantic names the tag, which is no key
        return (*steps[:1], *steps[2:])
    if "preload" in steps:  # one, too
        after = steps.index("preload") + 2
        return (*steps[:after], *steps[after + 1 :])
    return steps


def _nearest_key(detail: ErrorDetails) -> Where | None:
    near = nearest(str(detail["loc"][-1]), _keys(detail["loc"][:-1]))
    return None if near is None else (*_where(detail)[:-1], near)


def _keys(location: Where) -> tuple[str, ...]:
    model = _follow(Study, location)
    return tuple(model.model_fields) if model is not None else ()


def _follow(annotation: object, steps: Where) -> type[BaseModel] | None:
    """The table's model at a pydantic location, which has the union's tag as one of its steps."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not steps:
            return annotation
        field = annotation.model_fields.get(str(steps[0]))
        return None if field is None else _follow(field.annotation, steps[1:])
    members = typing.get_args(annotation)
    if isinstance(steps[0] if steps else None, int):
        return _follow(members[0], steps[1:]) if members else None
    for member in members:
        if steps and _tag(member) == steps[0]:
            return _follow(member, steps[1:])
    for member in members:
        model = _follow(member, steps)
        if model is not None:
            return model
    return None


def _tag(member: object) -> str | None:
    if not (isinstance(member, type) and issubclass(member, BaseModel)):
        return None
    kind = member.model_fields.get("kind")
    return None if kind is None else str(typing.get_args(kind.annotation)[0])


def _problem(detail: ErrorDetails, origins: Origins) -> Problem:
    where = _where(detail)
    if detail["type"] == "union_tag_not_found":
        where = (*where, "kind")
    if detail["type"] == "union_tag_invalid":
        where = (*where, "kind")
    return Problem(where, _text(detail, _as_written(where, origins)))


def _text(detail: ErrorDetails, where: Where) -> str:
    key = next((str(step) for step in reversed(where) if isinstance(step, str)), "study")
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        keys = _keys(detail["loc"][:-1])
        return f"unknown key '{key}' in {table_name(where[:-1])}{suggestion(key, keys)}"
    if kind == "missing":
        return f"key '{key}' is missing in {table_name(where[:-1])}"
    if kind == "union_tag_not_found":
        return f"key 'kind' is missing in {table_name(where[:-1])}; {_listed(_kinds())}"
    if kind == "union_tag_invalid":
        tag = str(context["tag"])
        return f"'kind': '{tag}' is not a kind of source{suggestion(tag, _kinds())}"
    return f"'{key}': {_value_text(detail)}"


def _value_text(detail: ErrorDetails) -> str:
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        valid = re.findall(r"[^\s',]+", str(context["expected"]).replace(" or ", " "))
        return f"{quoted(value)} is not valid{suggestion(str(value), valid)}"
    if kind in _WANTED:
        return f"{_shown(value)} is not {_WANTED[kind]}"
    if kind == "string_pattern_mismatch":
        return f"{_shown(value)} {_PATTERNS.get(str(context['pattern']), detail['msg'])}"
    bounds = {
        "greater_than": "must be above {gt}",
        "greater_than_equal": "must be at least {ge}",
        "less_than_equal": "must be at most {le}",
        "too_short": "needs at least {min_length} item(s)",
        "too_long": "has more than {max_length} items",
        "string_too_long": "is longer than {max_length} characters",
        "string_too_short": "must not be empty",
    }
    if kind in bounds:
        return f"{_shown(value)} {bounds[kind].format(**context)}"
    return f"{_shown(value)}: {detail['msg']}"


def _shown(value: object) -> str:
    text = quoted(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


def _listed(words: Sequence[str]) -> str:
    return f"one of: {', '.join(words)}"


def _kinds() -> tuple[str, ...]:
    return tuple(_tags(Study.model_fields["source"].annotation))


def _tags(annotation: object) -> Iterator[str]:
    for member in typing.get_args(annotation):
        tag = _tag(member)
        if tag is not None:
            yield tag


def uses(texts: Iterable[str], *names: str) -> bool:
    """True if a text has one of these placeholders."""
    return any(name in placeholders.names_in(text) for text in texts for name in names)


def unknown(argv: Sequence[str], where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    """The placeholders of a command that are not allowed there; `where` leads to the command."""
    for index, text in enumerate(argv):
        yield from unknown_in_text(text, (*where, index), allowed)


def unknown_in_env(env: dict[str, str], where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    """The same of the values of an environment."""
    for name, text in env.items():
        yield from unknown_in_text(text, (*where, name), allowed)


def unknown_in_text(text: str, where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    """The same of one text."""
    key = next(str(step) for step in reversed(where) if isinstance(step, str))
    for name in placeholders.names_in(text):
        if name not in allowed:
            near = suggestion(name, allowed).replace("'", "{", 1).replace("'", "}", 1)
            known = "is not known here" if name in placeholders.RESERVED else "is unknown"
            yield Problem(where, f"'{key}': placeholder {{{name}}} {known}{near}")
