"""Requests to the builders, and ports that the caller lends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.builders.training import Trainer
from ensign.host.cache import Cache
from ensign.host.clock import Clock
from ensign.host.processes import Processes
from ensign.model.study import Study
from ensign.model.variants import Variant


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A request to build: `path` is the study file, `baseline` the name of one of the variants.

    `update_lock` pins the source anew, where otherwise a changed one is an error.
    `install_dependencies` has what a Debian package needs installed, where that is missing.
    """

    study: Study
    path: Path
    variants: tuple[Variant, ...]
    baseline: str
    update_lock: bool = False
    install_dependencies: bool = False


@dataclass(frozen=True, slots=True)
class BuildPorts:
    """The effects of building. `env` is the caller's environment, of which builds get PATH alone.

    `meter` is the program that records the calls of compilers; without it none are recorded.
    `trainer` runs programs that collect profiles; without it there is neither PGO nor BOLT. The
    cache holds what was built until it is closed: keep it open while the artifacts are used.
    """

    processes: Processes
    clock: Clock
    cache: Cache
    cores: int
    env: Mapping[str, str]
    meter: Path | None = None
    trainer: Trainer | None = None
