"""Asking make what it would do: in a copy of the folder, confined where that works.

A Makefile may run programs while it is read, so that this happens only where somebody asks for it.
"""

from __future__ import annotations

import os
from pathlib import Path

from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement import Bind
from ensign.host.confinement_probe import probe_confinement
from ensign.host.disk_watch import DiskLimit, used_bytes
from ensign.host.files import copy_tree
from ensign.host.foreign_files import hand_over
from ensign.host.processes import Processes, ProcessLimits, ProcessRequest, read_tail
from ensign.host.search_path import apart_from
from ensign.host.temporary import temporary_folder
from ensign.meter.client import find_meter
from ensign.meter.command_lines import calls_of
from ensign.model.calls import Call
from ensign.proof.dry_run import asked_of_dry_run
from ensign.proof.link import TreePlace

_DEADLINE_NS = 60 * 10**9
_LONGEST_BYTES = 50_000_000
_MOST_WRITTEN_BYTES = 1 << 30


def dry_run_of(folder: Path, processes: Processes) -> tuple[TreePlace, tuple[Call, ...]]:
    """The calls that `make -n` prints; even a dry run may make included files again."""
    with temporary_folder("doctor") as scratch:
        copy, log = scratch / "tree", scratch / "log"
        copy_tree(folder, copy, exclude=(".git",))
        home = scratch / "home"
        home.mkdir()
        path = apart_from(os.environ.get("PATH", os.defpath), (folder,))
        env = {"PATH": path, "LC_ALL": "C", "HOME": str(home), "TMPDIR": str(home)}
        confinement = probe_confinement(processes, os.environ, find_meter())
        binds = tuple(Bind(str(each), str(each), writable=True) for each in (copy, home))
        shown = ConfinementRequest(
            path, os.environ.get("HOME", ""), binds=binds, read=(find_meter(),), cwd=str(copy)
        )
        if confinement.user is not None:
            hand_over((copy, home), confinement.user)
            scratch.chmod(0o711)
        argv = (*confinement.argv(shown), "make", "-n", "-B", "-w")
        disk = DiskLimit((scratch,), _MOST_WRITTEN_BYTES, used_bytes((scratch,)))
        limits = ProcessLimits(file_bytes=_MOST_WRITTEN_BYTES, tree_processes=1000)
        processes.run(
            ProcessRequest(
                argv, env, copy, log=log, deadline_ns=_DEADLINE_NS, disk=disk, limits=limits
            )
        )
        # What was built in the folder says the folder's own path.
        own = str(folder.resolve())
        text = read_tail(log, _LONGEST_BYTES).replace(str(copy), own)
        return TreePlace(folder, own), calls_of(find_meter(), asked_of_dry_run(text, own))
