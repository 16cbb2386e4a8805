"""In CI nothing may be skipped: a missing tool there is a failure. Signals are not ignored."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest


def pytest_configure() -> None:
    """What nohup or a shell's `&` ignored would be ignored by all programs under test, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
