"""What `{variant}` and `{tmp}` stand for in the commands around a race, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ensign.experiment.compare.options import CommandVariant, Options
from ensign.host.temporary import temporary_folder
from ensign.meter.requests import ProcessSpec
from ensign.model.trials import TWIN

TMP = "{tmp}"


def for_variant(process: ProcessSpec, variant: str, tmp: str | None = None) -> ProcessSpec:
    """A process that is run outside a race, with `{variant}` (and `{tmp}`) filled in."""

    def filled(text: str) -> str:
        text = text.replace("{variant}", variant)
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
    options: Options, commands: tuple[CommandVariant, ...]
) -> Iterator[tuple[Options, tuple[CommandVariant, ...]]]:
    """Folders for `{tmp}` that last from `--setup` to `--cleanup`, where one of these names it.

    Else each execution gets a fresh one from the meter, and nothing is changed here.
    """
    around = [argv for command in commands for argv in (command.setup, command.cleanup) if argv]
    if not any(TMP in word for argv in around for word in argv):
        yield options, commands
        return
    with temporary_folder("tmp") as folder:
        for variant in (*(command.variant for command in commands), TWIN):
            Path(folder, variant).mkdir()
        own = f"{folder}/{{variant}}"
        yield _options(options, own), tuple(_command(command, own) for command in commands)


@contextmanager
def passing_tmp(*texts: str) -> Iterator[str | None]:
    """A folder for `{tmp}` that processes run one after the other share, where one names it."""
    if not any(TMP in text for text in texts):
        yield None
        return
    with temporary_folder("tmp") as folder:
        yield str(folder)


def _options(options: Options, tmp: str) -> Options:
    def filled(text: str | None) -> str | None:
        return None if text is None else text.replace(TMP, tmp)

    return replace(
        options,
        input=filled(options.input),
        output=filled(options.output),
        env=tuple(command.replace(TMP, tmp) for command in options.env),
    )


def _command(command: CommandVariant, tmp: str) -> CommandVariant:
    def filled(argv: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if argv is None else tuple(word.replace(TMP, tmp) for word in argv)

    return replace(
        command,
        argv=tuple(word.replace(TMP, tmp) for word in command.argv),
        setup=filled(command.setup),
        prepare=filled(command.prepare),
        cleanup=filled(command.cleanup),
        load=filled(command.load),
        preload=filled(command.preload),
    )
