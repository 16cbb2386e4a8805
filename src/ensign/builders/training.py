"""The port for running an instrumented program on its training workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ensign.model.study_workload import Workload


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One run of one training workload.

    `env` is added to the environment of the program alone, not to that of what loads it, and
    `wrapper` goes in front of its command. `tools` are the programs behind `{NAME}` placeholders.
    `deadline_ns` is what is left for this profile. `root` is the tree in which the program lies,
    `libraries` are folders in which its loader is to look first. It may write to `writes`.
    """

    program: Path
    workload: Workload
    env: tuple[tuple[str, str], ...]
    tools: Mapping[str, Path]
    deadline_ns: int
    wrapper: tuple[str, ...] = ()
    root: Path | None = None
    libraries: tuple[str, ...] = ()
    writes: tuple[Path, ...] = ()


class Trainer(Protocol):
    """Runs programs under training; may be used from several threads at once."""

    def train(self, run: TrainingRun) -> str:
        """Run it to its end, a server until it has stopped by itself. Why it failed, or empty.

        Interrupted if everything was interrupted meanwhile.
        """
        ...
