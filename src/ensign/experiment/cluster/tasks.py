"""The tasks of a study on a cluster, and what is known of it where they left their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from ensign.experiment.cluster.jobs import Task, Work
from ensign.experiment.cluster.task_files import TaskFiles
from ensign.experiment.study.stored import folder_of
from ensign.experiment.study_file import NO_OPTIONS, RunOptions, StudyFile
from ensign.model.cluster import Cluster, HostSlot
from ensign.model.errors import InputError
from ensign.model.units import parse_duration_ns, parse_size_bytes
from ensign.store.folder import StudyFolder

_CLUSTER = "cluster"
# No node has a colon in its name.
_BUILD = "build:"


@dataclass(frozen=True, slots=True)
class StudyHosts:
    """Hosts that a study was given to, and the shares of their kinds (none: equal)."""

    hosts: tuple[HostSlot, ...]
    shares: dict[str, float]


_HOSTS = TypeAdapter(StudyHosts)


def write_hosts(folder: StudyFolder, cluster: Cluster) -> None:
    """Keeps what `ensign report` must know of the hosts. StorageFailed."""
    hosts = StudyHosts(cluster.slots, cluster.shares)
    folder.write_json(_CLUSTER, _HOSTS.dump_python(hosts, mode="json"))


def read_hosts(folder: StudyFolder) -> StudyHosts | None:
    """The hosts of a study; None where it was raced here alone. InputError where damaged."""
    content = folder.read_json(_CLUSTER)
    try:
        return None if content is None else _HOSTS.validate_python(content)
    except ValidationError:
        path = folder.json_file(_CLUSTER)
        raise InputError(f"{path} is damaged; delete it and run again") from None


def require_free_nodes(slots: Sequence[HostSlot], files: TaskFiles) -> None:
    """InputError where a node that is named has results as another host of the study."""
    files.forget_nodes([slot.name for slot in slots])
    owners = {node: task for task, node in files.nodes().items()}
    for slot in slots:
        owner = owners.get(slot.node, slot.name)
        if slot.node and owner != slot.name:
            raise InputError(
                f"node {slot.node} has raced as {owner} already: take {owner} out of the file, or "
                f"leave out {slot.node}"
            )


def tasks_of(
    file: StudyFile,
    cluster: Cluster,
    lock: str,
    options: RunOptions = NO_OPTIONS,
) -> tuple[Task, ...]:
    """Builds first, then a race on each host; `lock` is the text of the study's lock file. Pure."""
    folder = folder_of(file).root
    asked = _asked(file, lock, options)

    def work(task: str, host: HostSlot | None = None, part: tuple[int, int] = (0, 1)) -> Work:
        study = str(file.path.absolute())
        return Work(task, study, str(folder), asked, host, part, options)

    builds = cluster.builds
    parts = builds.parts(len(file.variants))
    memory = builds.memory
    of_builds = cluster.placement(builds)
    building = (
        Task(
            work(f"{_BUILD}{number + 1}", part=(number, parts)),
            of_builds,
            parse_duration_ns(builds.time_limit) / 1e9,
            builds.cpus,
            None if memory is None else parse_size_bytes(memory),
        )
        for number in range(parts)
    )
    limit_s = parse_duration_ns(cluster.time_limit) / 1e9
    racing = (
        Task(work(slot.name, host=slot), cluster.placement(cluster.hosts[slot.kind]), limit_s)
        for slot in cluster.slots
    )
    return (*building, *racing)


def _asked(file: StudyFile, lock: str, options: RunOptions) -> str:
    """Name of all that is asked for: where it differs, what is done is not."""
    identity = [file.text, lock, asdict(options)]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
