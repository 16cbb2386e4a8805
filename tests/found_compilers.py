"""Compilers are looked at once by the tests that are about something else.

To find one takes a dozen processes and hashes of its passes, and nobody installs another one while
tests run. What finding does is tested in `tests/toolchains`, which does not use this.
"""

from __future__ import annotations

import os

import pytest

from ensign.host.processes import Processes
from ensign.meter.client import LocalMeter
from ensign.meter.processes import MeterProcesses
from ensign.toolchains.find import Toolchain, ToolchainFinder
from real_processes import PlainProcesses


@pytest.fixture(scope="session")
def found_compilers() -> dict[str, Toolchain]:
    return {}


@pytest.fixture(autouse=True)
def compilers_found_once(
    found_compilers: dict[str, Toolchain], monkeypatch: pytest.MonkeyPatch
) -> None:
    find, path = ToolchainFinder.find, os.environ["PATH"]

    def remembered(finder: ToolchainFinder, name: str) -> Toolchain:
        if finder._path != path or not _is_real(finder._processes):
            return find(finder, name)
        if name not in found_compilers:
            found_compilers[name] = find(finder, name)
        return found_compilers[name]

    monkeypatch.setattr(ToolchainFinder, "find", remembered)


def _is_real(processes: Processes) -> bool:
    if isinstance(processes, MeterProcesses):
        return isinstance(processes._meter, LocalMeter)
    return isinstance(processes, PlainProcesses)
