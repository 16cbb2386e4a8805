"""How much work dealing out thousands of jobs is: CPU time and memory of a coordinator.

    python bench/coordinator.py [JOBS...]

A simulated cluster stands behind the port of executors, in virtual time: 200 nodes, every job takes
ten minutes, one in twenty is lost and follows again. Plan, submission and intake are counted, the
files of tasks included; what a job writes at its end is not the coordinator's.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from ensign.experiment.cluster.coordinate import Coordinator, Times
from ensign.experiment.cluster.task_files import End, TaskFiles
from ensign.experiment.cluster.tasks import tasks_of
from ensign.experiment.study_file import parse_study
from ensign.model.cluster import Cluster
from ensign.store.folder import StudyFolder
from simulated_cluster import SimulatedCluster

NODES = 200
_STUDY = """\
name = "s"
source = { kind = "path", path = "." }
build = { commands = [["make"]], artifact = "p" }
axes = { compiler = ["gcc-12"], optimization = ["-O2", "-O3"] }
baseline = { optimization = "-O2" }
workloads = [{ name = "w", command = ["{artifact}"] }]
"""


def measured(jobs: int, folder: Path) -> tuple[float, int, int]:
    """CPU seconds, submissions and looks of a coordinator with so many tasks."""
    groups = {f"kind-{number}": {"count": 500} for number in range(jobs // 500)}
    cluster = Cluster.model_validate({"hosts": groups, "builds": {"cpus": 1}})
    file = parse_study(_STUDY, folder / "s.toml")
    cpu_s = time.process_time()
    tasks = tasks_of(file, cluster, "lock")
    files = TaskFiles(StudyFolder(folder / "s"))
    lost = {task.name: ["NODE_FAIL"] for task in tasks[::20]}
    here = SimulatedCluster(files, tuple(f"n{n}" for n in range(NODES)), 600.0, lost)
    here.shares_nodes = True
    looks = 0

    def wait(seconds: float) -> None:
        nonlocal looks
        looks += 1
        here.wait(seconds)

    found = Coordinator(tasks, here, files, Times(here.time, wait)).run()
    assert all(view.state.end is End.DONE for view in found)
    return time.process_time() - cpu_s - here.cpu_s, len(here.submissions), looks


def main(counts: list[int]) -> None:
    """A row for each number of jobs."""
    print("jobs  submissions  looks  CPU    greatest memory")
    for jobs in counts or [500, 1000, 2500, 5000]:
        with tempfile.TemporaryDirectory() as folder:
            cpu_s, submissions, looks = measured(jobs, Path(folder))
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{jobs:5}  {submissions:11}  {looks:5}  {cpu_s:4.1f} s  {peak_mb:.0f} MiB", flush=True
        )


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]])
