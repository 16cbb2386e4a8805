"""`compare --confine`: the commands see the machine read-only, as the programs of a study do."""

from __future__ import annotations

from pathlib import Path

from ensign.builders.sandbox_mounts import tree_limits
from ensign.experiment.confinement import ProgramRules, Sandboxed
from ensign.experiment.ports import Ports
from ensign.host.confinement_probe import probe_confinement
from ensign.meter.client import find_meter
from ensign.model.errors import InputError
from ensign.model.study_sandbox import SandboxSection
from ensign.model.units import parse_size_bytes


def confined_commands(ports: Ports, asked: str = "--confine") -> Ports:
    """Ports whose commands run in a sandbox. InputError where none works here.

    `asked` is the option that is it.
    """
    confinement = probe_confinement(ports.processes(), ports.env, find_meter())
    if not confinement.works:
        remedy = f"; {confinement.remedy}" if confinement.remedy else ""
        raise InputError(f"{asked} is not possible: {confinement.reason}{remedy}")
    usual = SandboxSection()
    rules = ProgramRules(
        cwd=Path.cwd(),
        limits=tree_limits(usual),
        tmp_bytes=parse_size_bytes(usual.disk),
    )
    return ports.raced_in(Sandboxed(confinement, ports.env, rules), confinement.said)
