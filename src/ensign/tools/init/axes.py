"""Axes that somebody asks a first study for, in place of those that it has by itself."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ensign.experiment.study_file import parse_study
from ensign.host.files import write_atomically
from ensign.host.regular_file import read_text
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.study_axes import Axes

_TRAINED = ("pgo", "bolt")
_FIRST_COMPILER = re.compile(r'^compiler = ("(?:[^"\\]|\\.)*")$', re.MULTILINE)
_SECTION = r"^\[{}\]\n(?:.+\n)*"
_WORKLOAD = re.compile(r"^\[\[workloads\]\]\n((?:.+\n)*)", re.MULTILINE)

Asked = Mapping[str, Sequence[str]]


def asked_axes(texts: Sequence[str]) -> Asked:
    """Each as a study file has it: `lto = ["off", "full"]`. InputError for anything else."""
    found: dict[str, Sequence[str]] = {}
    for text in texts:
        example = 'write it as a study does: --axis \'lto = ["off", "full"]\''
        try:
            axes = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):
            raise InputError(f"--axis {quoted(text)} is no line of TOML; {example}") from None
        if not axes:
            raise InputError(f"--axis {quoted(text)} names no axis; {example}")
        for name, values in axes.items():
            known = name in Axes.model_fields and name != "combine"
            if not known or not isinstance(values, list) or not values:
                raise InputError(f"--axis {quoted(text)}: {quoted(name)} is no axis; {example}")
            found[name] = values
    return found


def vary(file: Path, asked: Asked) -> None:
    """Write the axes into a first study. InputError where they cannot be."""
    if asked:
        text = with_axes(read_text(file), asked)
        write_atomically(file, text.encode())
        parse_study(text, file)


def with_axes(text: str, asked: Asked) -> str:
    """The study with these axes, the first value of each as the baseline.

    The workload trains where a profile is asked for. Pure.
    """
    compiler = _FIRST_COMPILER.search(text)
    axes: dict[str, Sequence[str]] = {"optimization": ["-O2"], **asked}
    if compiler is not None and "compiler" not in axes:
        axes = {"compiler": [str(tomllib.loads(compiler[0])["compiler"])], **axes}
    lines = ["[axes]", 'combine = "one-at-a-time"']
    lines += [f"{name} = {_value(list(values))}" for name, values in axes.items()]
    base = ["[baseline]", *(f"{name} = {_value(values[0])}" for name, values in axes.items())]
    text = _replaced(text, "axes", lines)
    text = _replaced(text, "baseline", base)
    if any("on" in asked.get(name, ()) for name in _TRAINED):
        text = _with_training(text)
    return text


def _replaced(text: str, section: str, lines: Sequence[str]) -> str:
    pattern = re.compile(_SECTION.format(section), re.MULTILINE)
    return pattern.sub(lambda _: "".join(f"{line}\n" for line in lines), text, count=1)


def _with_training(text: str) -> str:
    workload = _WORKLOAD.search(text)
    if workload is None:
        return text
    comment = (
        "# The profile is collected on the same run: better one that is like it, but another.\n"
    )
    return f"{text}\n{comment}[[training.workloads]]\n{workload[1]}"


def _value(value: object) -> str:
    """Texts, numbers and lists of them are in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
