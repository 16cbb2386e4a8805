"""What a stage calls its compilers with, recorded while its commands run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensign.builders import recorder
from ensign.builders.build_context import BuildContext
from ensign.builders.collector import Collector
from ensign.builders.sandboxes import Sandbox
from ensign.builders.stage_runs import StageFailedError
from ensign.builders.stages import Stage
from ensign.model.calls import Call
from ensign.model.errors import InputError


class CallLog:
    """The calls so far. Without a collector there are none."""

    def __init__(self, path: Path, collector: Collector | None) -> None:
        self.path = path
        self._collector = collector

    def calls(self, skip: int = 0) -> tuple[Call, ...]:
        """Those after the first `skip`. StageFailedError where the build forged or damaged one."""
        self.require_sound()
        try:
            return recorder.read_calls(self.path, skip)
        except InputError:
            raise _damaged("a call lacks what every call has") from None

    def require_sound(self) -> None:
        """StageFailedError where what was recorded is not what the recorder sent."""
        damage = "" if self._collector is None else self._collector.damage
        if damage:
            raise _damaged(damage)


def _damaged(why: str) -> StageFailedError:
    return StageFailedError(f"the build's record is damaged: {why}")


@contextmanager
def recorded(stage: Stage, sandbox: Sandbox, build_context: BuildContext) -> Iterator[CallLog]:
    """Record what the commands of a stage call, if there is a recorder.

    A stage that failed because its record was damaged fails for that reason.
    """
    if build_context.meter is None:
        yield CallLog(sandbox.cwd / recorder.CALLS, None)
        return
    set_up_recorder(stage, sandbox, build_context, records=True)
    with build_context.cache.temporary() as folder:
        log = folder / recorder.CALLS
        collector = Collector(sandbox.recorder / recorder.SOCKET, log, sandbox.recorder)
        call_log = CallLog(log, collector)
        with collector.listening():
            try:
                yield call_log
            except StageFailedError as failed:
                failed.calls = call_log.calls()
                raise
            call_log.require_sound()


def set_up_recorder(
    stage: Stage, sandbox: Sandbox, build_context: BuildContext, *, records: bool = False
) -> None:
    """Put the recorder where the commands of a stage find it, if there is one.

    Unless it `records`, it only runs what the stage's programs are.
    """
    if build_context.meter is None:
        return
    place = recorder.Place(sandbox.recorder, build_context.sandboxes.recorder_path)
    keeping = recorder.Keeping(records=records, confined=bool(sandbox.argv))
    recorder.set_up(place, build_context.meter, stage.recorded, stage.changes, keeping)
