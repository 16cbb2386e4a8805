from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensign.builders.build_context import Bounds, BuildContext, Runner
from ensign.builders.sandboxes import Bubblewrap, Sandbox
from ensign.host.cache import Cache
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import Confinement
from ensign.host.processes import Outcome
from fakes import FakeClock, FakeProcesses

CONFINED = (Confinement("bwrap"), ConfinementRequest("/bin"))
DONE = Outcome(0, None, "exited")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def processes() -> FakeProcesses:
    return FakeProcesses(lambda _: DONE)


@pytest.fixture
def runner(tmp_path: Path, cache: Cache, clock: FakeClock, processes: FakeProcesses) -> Runner:
    build_context = BuildContext(processes, cache, Bubblewrap(cache, *CONFINED), clock, "/bin")
    argv = ("enter", "--")
    sandbox = Sandbox(
        tmp_path / "tree", tmp_path / "tmp", tmp_path, argv, recorder=tmp_path / "recorder"
    )
    sandbox.tree.mkdir()
    (sandbox.tree / "source.c").write_bytes(b"x" * 5000)
    bounds = Bounds.of(sandbox, 1000, 300)
    return Runner(
        build_context, sandbox, bounds, build_context.new_log("check", "k" * 64), {"PATH": "/bin"}
    )


def test_commands_share_a_deadline_and_each_may_have_less(
    runner: Runner, clock: FakeClock, processes: FakeProcesses
) -> None:
    runner.run(("a",))
    clock.advance_ns(400)
    runner.run(("b",))
    runner.run(("c",), 50)
    runner.run(("d",), 5000)
    assert [each.deadline_ns for each in processes.requests] == [1000, 600, 50, 600]
    clock.advance_ns(600)
    assert runner.run(("e",)).reason == "deadline"
    assert runner.run_unlogged(("f",)).reason == "deadline"
    assert len(processes.requests) == 4


def test_a_command_is_run_in_the_sandbox_with_its_limits(
    runner: Runner, processes: FakeProcesses, tmp_path: Path
) -> None:
    assert runner.run(("cc", "a b.c"), stdin=tmp_path / "in", stdout=tmp_path / "out") == DONE
    (request,) = processes.requests
    assert request.argv == ("enter", "--", "cc", "a b.c")
    assert (request.cwd, request.env) == (tmp_path, {"PATH": "/bin"})
    assert (request.stdin, request.stdout) == (tmp_path / "in", tmp_path / "out")
    assert request.limits.file_bytes == 300
    assert request.disk is not None
    assert request.disk.size_bytes == 300
    assert request.disk.before_bytes >= 5000
    assert request.log == runner.log


def test_the_log_names_commands_of_the_build_alone(
    runner: Runner, processes: FakeProcesses
) -> None:
    runner.run(("cc", "a b.c"))
    runner.run_unlogged(("cc", "for-a-map"))
    assert runner.log.read_text() == "$ cc 'a b.c'\n"
    assert runner.log.name == f"check-{'k' * 20}-{os.getpid()}.log"
    assert processes.requests[1].log is None
