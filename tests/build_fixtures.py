from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.request import BuildPorts
from ensign.host.cache import Cache
from ensign.host.clock import SystemClock
from ensign.meter.client import find_meter
from found_compilers import compilers_found_once, found_compilers
from real_processes import PlainProcesses

__all__ = [
    "cache",
    "compilers_found_once",
    "found_compilers",
    "ports",
    "processes",
    "project",
    "recording_ports",
]

PROJECTS = Path(__file__).parent / "projects"


@pytest.fixture
def processes() -> PlainProcesses:
    return PlainProcesses()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache(tmp_path / "cache") as cache:
        yield cache


@pytest.fixture
def ports(cache: Cache, processes: PlainProcesses) -> BuildPorts:
    return BuildPorts(processes, SystemClock(), cache, 2, dict(os.environ))


@pytest.fixture
def recording_ports(ports: BuildPorts) -> BuildPorts:
    return replace(ports, meter=find_meter())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the small project, at `tmp_path/source`."""
    return Path(shutil.copytree(PROJECTS / "small", tmp_path / "source"))
