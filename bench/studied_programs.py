"""Programs of a study, for benches that race some of them in ways of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache, open_study
from ensign.experiment.study.prepare import build_programs
from ensign.model.errors import InputError


def built_programs(path: Path, variants: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Paths of these variants' programs and of the tools, built if need be."""
    ports = Ports()
    with open_cache(ports) as cache:
        programs = build_programs(open_study(path), cache, ports)
    artifacts = dict(programs.artifacts)
    missing = [variant for variant in variants if variant not in artifacts]
    if missing:
        raise InputError(f"{path} has no variant of its own called {', '.join(missing)}")
    return artifacts, dict(programs.tools)
