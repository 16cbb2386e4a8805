"""The study that a command names, with its suite, and the cache of sources and builds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensign.experiment.ports import Ports
from ensign.experiment.study_file import StudyFile, read_study
from ensign.experiment.suites import expand_study
from ensign.host.cache import Cache, cache_folder
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.store.bundle import is_bundle


def open_study(path: Path, ports: Ports | None = None) -> StudyFile:
    """The checked study; StudyError with line and key where it is wrong.

    What its suite is made of is fetched where the cache has it not.
    """
    if is_bundle(path):
        unbundle = shlex.join(["ensign", "unbundle", str(path), "FOLDER"])
        raise InputError(f"{path} is a bundle; take the study out of it first: {unbundle}")
    ports = ports or Ports()

    def expand(study: Study) -> Study:
        with open_cache(ports) as cache:
            return expand_study(study, path.absolute(), cache, ports)

    return read_study(path, machine_cpus=frozenset(os.sched_getaffinity(0)), expand=expand)


@contextmanager
def open_cache(ports: Ports) -> Iterator[Cache]:
    """The cache of sources and builds; what was taken from it stays while it is open."""
    with Cache(cache_folder(ports.env), clock=ports.clock) as cache:
        yield cache
