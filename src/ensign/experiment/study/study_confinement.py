"""In what the programs of a study are raced, traced and trained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ensign.builders.sandbox_mounts import RESULTS, given_env, sandbox_paths, tree_limits
from ensign.experiment.confinement import ProgramRules, StudySurroundings, may_be_shown
from ensign.experiment.ports import Ports
from ensign.experiment.study_file import StudyFile
from ensign.host.cache import cache_folder
from ensign.host.confinement_probe import Confinement, probe_confinement
from ensign.meter.client import find_meter
from ensign.model.study_sandbox import SandboxSection
from ensign.model.units import parse_size_bytes


def confined_ports(file: StudyFile, ports: Ports) -> Ports:
    """Ports whose races take place in the study's confinement, if it wants any and one works here.

    InputError where what is named in `sandbox` is not there.
    """
    sandbox, folder = file.study.sandbox, file.folder
    if not sandbox.confined or ports.commands is not None:
        return ports
    rules = ProgramRules(
        env=given_env(sandbox, ports.env),
        read=(*_whole(folder, ports), *sandbox_paths(sandbox.read, folder, "read")),
        write=sandbox_paths(sandbox.write, folder, "write"),
        hidden=(cache_folder(ports.env), folder / RESULTS),
        network=sandbox.network,
        limits=tree_limits(sandbox),
        tmp_bytes=parse_size_bytes(sandbox.disk),
    )
    probe = partial(_probed, ports)
    return ports.raced_in(StudySurroundings(probe, ports.env, rules))


def inherited_library_path(sandbox: SandboxSection, env: Mapping[str, str]) -> str:
    """Where loaders look after the folders of what was built: the caller's, if it is given."""
    given = given_env(sandbox, env) if sandbox.confined else env
    return given.get("LD_LIBRARY_PATH", "")


def _probed(ports: Ports) -> Confinement:
    return probe_confinement(ports.processes(), ports.env, find_meter())


def _whole(folder: Path, ports: Ports) -> tuple[Path, ...]:
    """The study's folder, unless it is a home folder, or above one."""
    return (folder,) if may_be_shown(folder, ports.env.get("HOME", "")) else ()
