"""Tests and benchmarks that a project's build lists, as command workloads. Pure.

CTest says them by `ctest --show-only=json-v1`, Meson by `meson introspect --benchmarks` (or
`--tests`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ensign.model.errors import InputError
from ensign.model.quoting import visible
from ensign.model.validation import first_error

_MOST = 20_000
_LONGEST_NAME, _LONGEST_DEADLINE_S = 60, 86_400
_LIKE_A_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_.+-]*)\}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.+-]+")
# What a plain command cannot be: it must fail, or what it prints decides, or others go before.
_NOT_PLAIN = {
    "WILL_FAIL": "it must fail",
    "DISABLED": "it is disabled",
    "PASS_REGULAR_EXPRESSION": "what it prints decides whether it passes",
    "FAIL_REGULAR_EXPRESSION": "what it prints decides whether it passes",
    "FIXTURES_REQUIRED": "another test must have run before it",
    "DEPENDS": "another test must have run before it",
    "SKIP_RETURN_CODE": "a status other than 0 may mean that it was skipped",
}


@dataclass(frozen=True, slots=True)
class ProjectTest:
    """One test as the build runs it; `left_out` says why it cannot be a workload.

    `deadline_s` is None where the project gives none.
    """

    name: str
    argv: tuple[str, ...]
    folder: str = ""
    env: tuple[tuple[str, str], ...] = ()
    deadline_s: float | None = None
    left_out: str = ""


class _Property(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    value: Any = None


class _OfCTest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    command: list[str] = []
    properties: list[_Property] = []


class _CTest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    tests: Annotated[list[_OfCTest], Field(max_length=_MOST)]


class _OfMeson(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    cmd: list[str]
    env: dict[str, str] = {}
    workdir: str | None = None
    timeout: float | None = None


_MESON = TypeAdapter(Annotated[list[_OfMeson], Field(max_length=_MOST)])


def project_tests(document: object) -> tuple[ProjectTest, ...]:
    """All tests of a list that CTest or Meson wrote. InputError for what is neither."""
    try:
        if isinstance(document, Mapping) and document.get("kind") == "ctestInfo":
            return tuple(map(_of_ctest, _CTest.model_validate(document).tests))
        if isinstance(document, list):
            return tuple(map(_of_meson, _MESON.validate_python(document)))
    except ValidationError as error:
        raise InputError(f"no list of tests: {visible(first_error(error))}") from None
    raise InputError(
        "neither what 'ctest --show-only=json-v1' nor what 'meson introspect --benchmarks' prints"
    )


def _of_ctest(test: _OfCTest) -> ProjectTest:
    properties = {property_.name: property_.value for property_ in test.properties}
    env, left_out = properties.get("ENVIRONMENT", []), ""
    if not test.command:
        left_out = "its program is not built"
    reasons = (why for key, why in _NOT_PLAIN.items() if properties.get(key))
    timeout = properties.get("TIMEOUT")
    pairs = (str(word).partition("=") for word in env) if isinstance(env, list) else ()
    return ProjectTest(
        test.name,
        tuple(test.command),
        str(properties.get("WORKING_DIRECTORY") or ""),
        tuple((key, value) for key, _, value in pairs),
        float(timeout) if isinstance(timeout, int | float) else None,
        left_out or next(reasons, ""),
    )


def _of_meson(test: _OfMeson) -> ProjectTest:
    return ProjectTest(
        test.name,
        tuple(test.cmd),
        test.workdir or "",
        tuple(test.env.items()),
        test.timeout,
        "" if test.cmd else "it has no command",
    )


def with_placeholders(
    tests: Sequence[ProjectTest], source: str, artifact: str = ""
) -> tuple[ProjectTest, ...]:
    """Paths below the source folder as `{files}/…`, that of the artifact as `{artifact}`.

    A test that runs nothing of that is left out: all variants would run the same.
    """
    return tuple(_placed(test, source.rstrip("/"), artifact) for test in tests)


def _placed(test: ProjectTest, source: str, artifact: str) -> ProjectTest:
    program = f"{source}/{artifact}" if artifact else ""

    def placed(text: str) -> str:
        escaped = _LIKE_A_PLACEHOLDER.sub(r"{{\1}}", text)
        if program and escaped == program:
            return "{artifact}"
        below = re.compile(rf"(?<![\w/.]){re.escape(source)}(?=/|$)")
        return below.sub("{files}", escaped)

    argv, folder = tuple(map(placed, test.argv)), placed(test.folder)
    env = tuple((key, placed(value)) for key, value in test.env)
    left_out = test.left_out
    if not left_out and not any("{files}" in word or word == "{artifact}" for word in argv):
        left_out = "it runs nothing below the source folder"
    return replace(test, argv=argv, folder=folder, env=env, left_out=left_out)


def workload_tables(tests: Sequence[ProjectTest]) -> str:
    """The tests as [[workloads]] of a study file; those that cannot be one as comments."""
    return "\n".join(_table(test, name) for test, name in _named(tests))


def _named(tests: Sequence[ProjectTest]) -> Iterator[tuple[ProjectTest, str]]:
    taken: set[str] = set()
    for number, test in enumerate(tests, start=1):
        name = _NOT_IN_NAMES.sub("-", test.name.lower()).strip("-._+")[: _LONGEST_NAME - 6]
        name = name or "test"
        if name in taken:
            name = f"{name}-{number}"
        taken.add(name)
        yield test, name


def _table(test: ProjectTest, name: str) -> str:
    if test.left_out:
        return f"# left out: {visible(test.name)}: {test.left_out}\n"
    lines = ["[[workloads]]", f'name = "{name}"', f"command = {_array(test.argv)}"]
    if test.folder:
        lines.append(f"folder = {_text(test.folder)}")
    if test.env:
        pairs = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in test.env)
        lines.append(f"env = {{ {pairs} }}")
    if test.deadline_s is not None and 0 < test.deadline_s <= _LONGEST_DEADLINE_S:
        lines.append(f'deadline = "{max(1, round(test.deadline_s))}s"')
    return "\n".join(lines) + "\n"


def _array(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, words))}]"


def _text(text: str) -> str:
    """A TOML string of one line; what cannot be seen is escaped."""
    escaped = "".join(
        character
        if character.isprintable() and character not in '"\\'
        else f"\\U{ord(character):08X}"
        for character in text
    )
    return f'"{escaped}"'
