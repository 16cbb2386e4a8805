"""Says which tests run when none has ended for long: a process that is stopped has no timeout."""

from __future__ import annotations

import threading
import time

import pytest

_QUIET_S = 420.0  # a test may take 300
_LOOK_S = 20.0


class RunningTests:
    """A plugin of the process that starts all others."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._running: dict[str, float] = {}
        self._last_s = time.monotonic()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def pytest_sessionfinish(self) -> None:
        self._over.set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)
        self._last_s = time.monotonic()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            now_s = time.monotonic()
            if now_s - self._last_s > _QUIET_S:
                self._last_s = now_s
                self._terminal.write_line(f"\nno test has ended for {_QUIET_S:.0f} s; these run:")
                for name, began_s in list(self._running.items()):
                    self._terminal.write_line(f"  {name}, for {now_s - began_s:.0f} s")
                self._terminal.flush()
