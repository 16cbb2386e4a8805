from __future__ import annotations

import pytest

from ensign.experiment.compare.commands import command_variants
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.run import CompareSteps
from ensign.experiment.ports import Ports
from ensign.experiment.steps import run_experiment
from ensign.meter.client import Json
from ensign.model.errors import CommandFailed, EnsignError, Interrupted
from fakes import FakeClock, FakeMeter


def exited(status: int) -> list[Json]:
    return [{"type": "outcome", "role": "command", "exit": status}, {"type": "end"}]


def failure_of(meter: FakeMeter) -> EnsignError:
    options = Options(commands=("true", "true"), cleanup=("false",), race_same=True)
    ports = Ports(meter=meter, clock=FakeClock(), env={})
    with pytest.raises(EnsignError) as raised:
        run_experiment(CompareSteps(options, command_variants(options), ports, lambda _: None))
    return raised.value


def test_a_clean_up_that_fails_after_a_failure_is_told_too() -> None:
    error = failure_of(FakeMeter([exited(3), exited(1)]))
    assert isinstance(error, CommandFailed)
    assert "exited with status 3" in str(error)
    (note,) = error.__notes__
    assert "'--cleanup false' exited with status 1" in note


def test_a_clean_up_that_fails_after_ctrl_c_is_told_too() -> None:
    class Impatient(FakeMeter):
        def run(self, verb: object, request: Json) -> object:  # type: ignore[override]
            if not self.requests:
                self.requests.append((verb, request))  # type: ignore[arg-type]
                raise KeyboardInterrupt
            return super().run(verb, request)  # type: ignore[arg-type]

    error = failure_of(Impatient([[], exited(1)]))
    assert isinstance(error, Interrupted)
    assert "--cleanup false" in error.__notes__[0]


def test_a_clean_up_that_works_is_not_mentioned() -> None:
    error = failure_of(FakeMeter([exited(3), exited(0)]))
    assert not hasattr(error, "__notes__")
