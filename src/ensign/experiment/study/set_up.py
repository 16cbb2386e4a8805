"""Commands around a study: set up before its first execution, cleaned up after the last."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from ensign.experiment.pilots import CommandsAround
from ensign.experiment.study_file import StudyFile
from ensign.meter.client import Json, StoppableMeter, Verb
from ensign.meter.requests import ProcessSpec
from ensign.model.errors import EnsignError
from ensign.model.placeholders import fill, fill_all, shown
from ensign.model.trials import TWIN


class MeterAfterSetUp:
    """A meter that runs the study's set-up commands before its first run.

    Nothing is set up, and nothing cleaned up, where everything was raced already.
    """

    def __init__(self, meter: StoppableMeter, file: StudyFile) -> None:
        self._meter = meter
        setups, cleanups = (_processes(file, key) for key in ("setup", "cleanup"))
        self._around = CommandsAround(meter, setups, cleanups)
        self._begun = False

    def run(self, verb: Verb, request: Json) -> Generator[Json, None, None]:
        """See `Meter.run`. CommandFailed where a set-up command fails."""
        if not self._begun:
            self._begun = True
            self._around.set_up()
        return (yield from self._meter.run(verb, request))

    def interrupt(self, only: Json | None = None) -> None:
        """See `StoppableMeter.interrupt`."""
        self._meter.interrupt(only)

    @contextmanager
    def cleaned_up(self, cleaned: list[EnsignError]) -> Iterator[None]:
        """See `CommandsAround.cleaned_up`."""
        with self._around.cleaned_up(cleaned, lambda: self._begun):
            yield


def _processes(file: StudyFile, key: str) -> dict[ProcessSpec, str]:
    """With `{variant}` there is one per variant, the twin's too."""
    names = [*(variant.name for variant in file.variants), TWIN]
    processes: dict[ProcessSpec, str] = {}
    for workload in file.study.workloads:
        argv = workload.commands_around.get(key)
        for name in names if argv else ():
            values = {"variant": name}
            env = tuple((each, fill(text, values)) for each, text in workload.env.items())
            process = ProcessSpec(fill_all(argv or (), values), env, cwd=str(file.folder))
            what = f"{key} of workload {workload.name}: {shown(process.argv)}"
            processes.setdefault(process, what)
    return processes
