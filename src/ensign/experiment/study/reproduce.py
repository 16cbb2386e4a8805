"""How a study is done again: the command line, and what it must find."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ensign.experiment.study_file import StudyFile
from ensign.host.files import file_sha256
from ensign.model.results import Result
from ensign.sources.obtain import lock_path
from ensign.stats.named_scores import workload_of

_SHOWN_DIGITS = 12


def with_redo(
    result: Result, file: StudyFile, raced: Mapping[str, str], bundle: Path | None = None
) -> Result:
    """The result with `redo` and `redo_with`; a `bundle` is unpacked first.

    `raced` has the `budget` and `precision` that it was raced with, where they are known.
    """
    study = (file.own or file.study).workloads
    raced_there = tuple(dict.fromkeys(map(workload_of, result.workload_names)))
    every = raced_there == tuple(each.name for each in study)
    chosen = () if every else raced_there
    options = [word for name in chosen for word in ("--workload", name)]
    options += _limits(file, raced)
    own = (file.own or file.study).sandbox
    options += ["--unconfined"] if own.confined and not file.study.sandbox.confined else []
    said = {"redo": _redo(file, options, bundle), "redo_with": _redo_with(file, result.version)}
    return replace(result, extra={**result.extra, **said})


def _redo(file: StudyFile, options: list[str], bundle: Path | None) -> str:
    """The command line that repeats the study, or those of its workloads that were raced."""
    study = file.path.name
    if bundle is None:
        return shlex.join(["ensign", "run", study, *options])
    unpacked = shlex.join(["ensign", "unbundle", bundle.name, "again"])
    return f"{unpacked} && {shlex.join(['ensign', 'run', f'again/{study}', *options])}"


def _limits(file: StudyFile, raced: Mapping[str, str]) -> list[str]:
    """The options by which it was raced with another budget or precision than the study's."""
    race = (file.own or file.study).race
    usual = {"budget": race.budget, "precision": race.precision}
    return [
        word
        for name, text in raced.items()
        if text and text != usual[name]
        for word in (f"--{name}", text)
    ]


def _redo_with(file: StudyFile, version: str) -> str:
    """What that command must find to repeat this study: version, and files by SHA-256."""
    files = [each for each in (file.path, lock_path(file.path)) if each.exists()]
    hashed = (f"{each.name} {file_sha256(each)[:_SHOWN_DIGITS]}…" for each in files)
    return f"ensign {version}, {', '.join(hashed)}"
