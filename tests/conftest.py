"""What all tests share: nothing of who started them reaches them, and any order will do.

In CI nothing may be skipped: a missing tool there is a failure.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from hanging import RunningTests
from processors import stand_in

hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# What a developer, a `make` above this one or a terminal sets would reach all programs under test.
_FOREIGN = (
    "AR", "CC", "CFLAGS", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "CPPFLAGS", "CXX", "CXXFLAGS",
    "FORCE_COLOR", "LD_LIBRARY_PATH", "LD_PRELOAD", "LDFLAGS", "LINES", "MAKEFLAGS", "MAKELEVEL",
    "MFLAGS", "NO_COLOR", "SOURCE_DATE_EPOCH", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
)  # fmt: skip
_FOREIGN_PREFIXES = ("CCACHE_", "ENSIGN_", "GCC_", "GIT_", "XDG_")
_PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)  # which it ignores, and gives back to its children


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", metavar="SEED", help="run the tests in a random order: a number, or 'any'"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Undoes what `nohup`, a shell's `&` or a hook of git made of signals and environment."""
    for number in signal.valid_signals() - set(_PYTHONS_OWN):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in list(os.environ):
        if name in _FOREIGN or name.startswith(_FOREIGN_PREFIXES):
            del os.environ[name]
    if processor := os.environ.get("TEST_PROCESSOR"):
        patch = pytest.MonkeyPatch()
        stand_in(processor, patch)
        config.add_cleanup(patch.undo)
    # Suites that run at the same time do not wait for each other's races.
    lock = Path(tempfile.mkdtemp(prefix="ensign-test-")) / "race.lock"
    os.environ["ENSIGN_RACE_LOCK"] = str(lock)
    config.add_cleanup(lambda: shutil.rmtree(lock.parent, ignore_errors=True))
    if config.getoption("--shuffle") == "any":
        # All processes of a run must agree on it.
        drawn = str(random.SystemRandom().randrange(10**6))
        config.option.shuffle = os.environ.setdefault("ORDER_OF_TESTS", drawn)


def pytest_sessionstart(session: pytest.Session) -> None:
    if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
        session.config.pluginmanager.register(RunningTests(terminal))


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed, processor = config.getoption("--shuffle"), os.environ.get("TEST_PROCESSOR")
    order = [] if seed is None else [f"order: --shuffle {seed}"]
    return [*order, f"processor: TEST_PROCESSOR={processor}"] if processor else order


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no search for garbage goes through it again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--shuffle")) is not None:
        random.Random(seed).shuffle(items)  # noqa: S311  # an order is no secret


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],  # noqa: ARG001  # the hook's signature
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, not allowed in CI: {report.longrepr}"
    return report
