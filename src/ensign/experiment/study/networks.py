"""Workloads over a network of their own, where this machine or user may make one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ensign.experiment.exclusions import listed
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import Confinement, probe_confinement
from ensign.host.programs import LocalPrograms, Programs
from ensign.meter.client import find_meter
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import WORKLOADS_LEFT_OUT
from ensign.model.findings import Finding

if TYPE_CHECKING:  # doctor asks without a study
    from ensign.experiment.ports import Ports
    from ensign.experiment.study_file import StudyFile

_TRIED = ("ends", "--words=1", "--words=1", "--rate=1000000000", "--", "true", "true")
NETWORKS_REMEDY = "sysctl kernel.unprivileged_userns_clone=1 user.max_net_namespaces=10000"
_SAID_BY = "ensign-meter ends: "


def network_obstacle(programs: Programs, confinement: Confinement, env: Mapping[str, str]) -> str:
    """Why programs that are raced here can have no network of their own; empty where they can."""
    meter = find_meter()
    view = ConfinementRequest(
        env.get("PATH", os.defpath), env.get("HOME", ""), programs=(meter,), read=(meter,)
    )
    answer = programs.ask((*confinement.argv(view), str(meter), *_TRIED))
    return "" if answer.success else answer.line.removeprefix(_SAID_BY)


def refused_networks(file: StudyFile, ports: Ports) -> dict[str, str]:
    """The workloads whose network is refused here, and why."""
    names = [workload.name for workload in file.study.workloads if workload.network is not None]
    if not names:
        return {}
    confinement = Confinement()
    if file.study.sandbox.confined:
        confinement = probe_confinement(ports.processes(), ports.env, find_meter())
    why = network_obstacle(LocalPrograms(), confinement, ports.env)
    return dict.fromkeys(names, f"{why}; {NETWORKS_REMEDY}") if why else {}


def without_networks(file: StudyFile, ports: Ports) -> tuple[StudyFile, tuple[Finding, ...]]:
    """The study without what is refused here. InputError where nothing is left."""
    refused = refused_networks(file, ports)
    if not refused:
        return file, ()
    left = [workload.name for workload in file.study.workloads if workload.name not in refused]
    why = next(iter(refused.values()))
    if not left:
        raise InputError(f"no workload of {file.path} can be raced here: {why}")
    text = f"left out: {listed([*refused])}: {why}"
    return file.with_workloads(left), (WORKLOADS_LEFT_OUT.found(text),)
