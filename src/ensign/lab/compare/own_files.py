"""What `{arm}` and `{tmp}` stand for in the commands around a race, too."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ensign.lab.compare.options import Candidate, Options
from ensign.meter.requests import ProcessSpec
from ensign.model.trials import TWIN

TMP = "{tmp}"


def for_arm(process: ProcessSpec, arm: str, tmp: str | None = None) -> ProcessSpec:
    """A process that is run on its own, outside a race, with `{arm}` (and `{tmp}`) filled in."""

    def filled(text: str) -> str:
        text = text.replace("{arm}", arm)
        return text if tmp is None else text.replace(TMP, tmp)

    def path(text: str | None) -> str | None:
        return None if text is None else filled(text)

    return replace(
        process,
        argv=tuple(filled(word) for word in process.argv),
        env=tuple((name, filled(value)) for name, value in process.env),
        stdin=path(process.stdin),
        stdout=path(process.stdout),
    )


@contextmanager
def lasting_tmp(
    options: Options, entries: tuple[Candidate, ...]
) -> Iterator[tuple[Options, tuple[Candidate, ...]]]:
    """Folders for `{tmp}` that last from `--setup` to `--cleanup`, where one of these names it.

    Else each execution gets a fresh one from the meter, and nothing is changed here.
    """
    around = [argv for entry in entries for argv in (entry.setup, entry.cleanup) if argv]
    if not any(TMP in word for argv in around for word in argv):
        yield options, entries
        return
    with tempfile.TemporaryDirectory(prefix="ensign-tmp-") as folder:
        for arm in (*(entry.arm for entry in entries), TWIN):
            Path(folder, arm).mkdir()
        own = f"{folder}/{{arm}}"
        yield _options(options, own), tuple(_entry(entry, own) for entry in entries)


@contextmanager
def passing_tmp(*texts: str) -> Iterator[str | None]:
    """A folder for `{tmp}` that processes run one after the other share, where one names it."""
    if not any(TMP in text for text in texts):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ensign-tmp-") as folder:
        yield folder


def _options(options: Options, tmp: str) -> Options:
    def filled(text: str | None) -> str | None:
        return None if text is None else text.replace(TMP, tmp)

    return replace(
        options,
        input=filled(options.input),
        output=filled(options.output),
        env=tuple(entry.replace(TMP, tmp) for entry in options.env),
    )


def _entry(entry: Candidate, tmp: str) -> Candidate:
    def filled(argv: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if argv is None else tuple(word.replace(TMP, tmp) for word in argv)

    return replace(
        entry,
        argv=tuple(word.replace(TMP, tmp) for word in entry.argv),
        setup=filled(entry.setup),
        prepare=filled(entry.prepare),
        cleanup=filled(entry.cleanup),
        load=filled(entry.load),
        preload=filled(entry.preload),
    )
