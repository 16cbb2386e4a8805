"""`make cluster-faults`: what may happen to a study on a cluster, on a Slurm of one's own.

    python tests/faults/cluster.py [FAULT...]

Each fault hits a study of two hosts once both have measured something. Then the coordinator must
end by itself, or the same command afterwards; no trial that was complete may be lost or changed, no
job and no process may be left, and what happened must be said. Results are lines of JSON in
build/faults/cluster.jsonl.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from faults.surroundings import descendants
from local_slurm import LocalSlurm, local_slurm

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "faults" / "cluster.jsonl"
_PROGRAM = Path(__file__).parents[1] / "end_to_end" / "programs" / "spin.c"
_LONGEST_S = 420.0
_STUDY = """\
name = "s"
layouts = "natural"
source = { kind = "path", path = "source" }
build = { commands = [["sh", "-c", "{cc} {cflags} -DWORK=1 -o spin spin.c"]], artifact = "spin" }
axes = { compiler = ["gcc-12"], optimization = ["-O1", "-O2"] }
baseline = { optimization = "-O1" }
race = { budget = "10m", rounds = %d, executions = 1 }

[[workloads]]
name = "short"
command = ["{artifact}", "20000000"]

[[workloads]]
name = "long"
command = ["{artifact}", "40000000"]

[cluster]
%s
builds = { cpus = 1 }
hosts.milan.nodes = ["n1", "n2"]
"""
_NODES = {"n1": "milan", "n2": "milan"}


@dataclass
class Trial:
    """A study under way: `folder` has it, `running` is its coordinator."""

    slurm: LocalSlurm
    folder: Path
    options: str = ""
    rounds: int = 8
    running: subprocess.Popen[bytes] | None = None
    statuses: list[int] = field(default_factory=list)
    damaged: set[str] = field(default_factory=set)

    @property
    def results(self) -> Path:
        return self.folder / ".ensign" / "s"

    @property
    def env(self) -> dict[str, str]:
        cache = {"XDG_CACHE_HOME": str(self.folder / "cache")}
        lock = {"ENSIGN_RACE_LOCK": str(self.folder / "race.lock")}
        return {**self.slurm.env, **cache, **lock, "PYTHONDONTWRITEBYTECODE": "1"}

    def write(self) -> None:
        (self.folder / "source").mkdir()
        shutil.copy(_PROGRAM, self.folder / "source" / "spin.c")
        (self.folder / "s.toml").write_text(_STUDY % (self.rounds, self.options))

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                ["ensign", "run", "s.toml", "--on", "s.toml"], cwd=self.folder, env=self.env,
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        return (self.folder / "said").read_text(errors="replace")

    def wait(self) -> int:
        assert self.running is not None
        status = self.running.wait(_LONGEST_S)
        self.statuses.append(status)
        return status

    def trials(self) -> dict[str, str]:
        """SHA-256 of every complete trial, by its path."""
        found = self.results.glob("hosts/*/trials/*/*.csv.gz")
        return {
            str(path.relative_to(self.results)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in found
        }

    def job(self, host: str) -> str:
        """Number of the job that is racing there."""
        names = self.slurm.ask("squeue", "-h", "-t", "RUNNING", "-o", "%i|%j").split()
        return next(each.partition("|")[0] for each in names if each.endswith(f"-{host}"))

    def processes(self, *words: str) -> list[int]:
        """Processes of this study, and meters, whose command line has all these words."""
        found = []
        for pid, line in _command_lines():
            with suppress(OSError):
                own = str(self.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
                if (own or "ensign-meter" in line) and all(word in line for word in words):
                    found.append(pid)
        return found


def _racing(trial: Trial) -> None:
    """Waits until a host has measured something and goes on."""
    _until(lambda: bool(trial.trials()))


def _both_racing(trial: Trial) -> None:
    _racing(trial)
    _until(lambda: len({each.split("/")[1] for each in trial.trials()}) == 2)


def _until(there: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + _LONGEST_S
    while not there():
        if time.monotonic() > ends_s:
            raise TimeoutError("it never happened")
        time.sleep(0.2)


def _host_racing(trial: Trial) -> str:
    """The host whose trials are the newest."""
    newest = max(trial.results.glob("hosts/*/trials/*/*.gz"), key=lambda path: path.stat().st_mtime)
    return newest.relative_to(trial.results).parts[1]


def _kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    assert pids, "there was nothing to kill"
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def scancel_race(trial: Trial) -> None:
    trial.slurm.ask("scancel", trial.job(_host_racing(trial)))


def scancel_both(trial: Trial) -> None:
    trial.slurm.ask("scancel", "--me")


def kill_job(trial: Trial) -> None:
    _kill(trial.processes("submitit.core._submit"))


def kill_meter(trial: Trial) -> None:
    """There is one while an execution races, and not between two."""
    _until(lambda: bool(_meters(trial)))
    _kill(_meters(trial))


def _meters(trial: Trial) -> list[int]:
    jobs = trial.processes("submitit.core._submit")
    below = [each for job in jobs for each in descendants(job).items()]
    return [pid for pid, line in below if "ensign-meter" in line]


def kill_step(trial: Trial) -> None:
    job = trial.job(_host_racing(trial))
    _kill(_named(f"slurmstepd: [{job}."))


def kill_slurmd(trial: Trial) -> None:
    node = trial.slurm.ask("squeue", "-h", "-j", trial.job(_host_racing(trial)), "-o", "%N").strip()
    trial.slurm.kill_daemon(node)
    time.sleep(3)
    trial.slurm.start_daemon(node)


def lose_node(trial: Trial) -> None:
    """The node is gone with all that ran on it, and comes back half a minute later."""
    job = trial.job(_host_racing(trial))
    node = trial.slurm.ask("squeue", "-h", "-j", job, "-o", "%N").strip()
    trial.slurm.kill_daemon(node)
    _kill(_named(f"slurmstepd: [{job}."))
    time.sleep(30)
    trial.slurm.start_daemon(node)


def node_down(trial: Trial) -> None:
    node = trial.slurm.ask("squeue", "-h", "-j", trial.job(_host_racing(trial)), "-o", "%N").strip()
    trial.slurm.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=tried")
    time.sleep(10)
    trial.slurm.ask("scontrol", "update", f"nodename={node}", "state=resume")


def restart_controller(trial: Trial) -> None:
    trial.slurm.kill_daemon("slurmctld", signal.SIGTERM)
    time.sleep(5)
    trial.slurm.start_daemon("slurmctld")


def kill_controller(trial: Trial) -> None:
    trial.slurm.kill_daemon("slurmctld")
    time.sleep(20)
    trial.slurm.start_daemon("slurmctld")


def restart_munge(trial: Trial) -> None:
    trial.slurm.kill_daemon("munged", signal.SIGTERM)
    time.sleep(8)
    trial.slurm.start_daemon("munged")


def requeue(trial: Trial) -> None:
    trial.slurm.ask("scontrol", "requeue", trial.job(_host_racing(trial)))


def preempt(trial: Trial) -> None:
    """A job of a partition that goes before ours takes both nodes for a while."""
    trial.slurm.ask(
        "sbatch", "-p", "urgent", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 5"
    )


def suspend(trial: Trial) -> None:
    job = trial.job(_host_racing(trial))
    trial.slurm.ask("scontrol", "suspend", job)
    time.sleep(5)
    trial.slurm.ask("scontrol", "resume", job)


def time_limit(trial: Trial) -> None:
    """The study takes longer than a job may."""


def kill_coordinator(trial: Trial) -> None:
    assert trial.running is not None
    _kill([trial.running.pid])


def interrupt(trial: Trial) -> None:
    assert trial.running is not None
    _kill([trial.running.pid], signal.SIGINT)


def second_coordinator(trial: Trial) -> None:
    with trial.start() as other:
        assert other.wait(60) == 2, trial.said()
    assert "another ensign" in trial.said()


def damage_trial(trial: Trial) -> None:
    _both_racing(trial)
    first = min(trial.results.glob("hosts/*/trials/*/*.gz"), key=lambda path: path.stat().st_mtime)
    trial.damaged.add(str(first.relative_to(trial.results)))
    first.write_bytes(first.read_bytes()[:-20])


def damage_outcome(trial: Trial) -> None:
    for name in ("outcome", "progress"):
        for path in trial.results.glob(f"tasks/*.{name}.json"):
            path.write_text("{")


def full_disk(trial: Trial) -> None:
    """Nothing can be written for ten seconds: neither trials nor words."""
    filler = trial.folder / ".ensign" / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
            file.flush()
    time.sleep(10)
    filler.unlink()


def _named(word: str) -> list[int]:
    return [pid for pid, line in _command_lines() if word in line]


def _command_lines() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if int(entry.name) != os.getpid():
                yield int(entry.name), line


FAULTS: dict[str, Callable[[Trial], None]] = {
    each.__name__: each
    for each in (
        scancel_race, scancel_both, kill_job, kill_meter, kill_step, kill_slurmd, lose_node,
        node_down, restart_controller, kill_controller, restart_munge, requeue, preempt, suspend,
        time_limit, kill_coordinator, interrupt, second_coordinator, damage_trial, damage_outcome,
        full_disk,
    )
}  # fmt: skip
_OTHERS = {"time_limit": ('time_limit = "1m"', 80)}


def hit(name: str) -> dict[str, object]:
    """Tries a fault; what was wrong afterwards (nothing: all is well)."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cf-") as folder, local_slurm(_NODES) as slurm:
        trial = Trial(slurm, Path(folder), *_OTHERS.get(name, ()))
        trial.write()
        wrong: list[str] = []
        try:
            with _disk(trial.folder) if name == "full_disk" else nullcontext():
                wrong = _tried(trial, FAULTS[name])
        except (AssertionError, TimeoutError, StopIteration, subprocess.SubprocessError) as error:
            wrong = [repr(error)]
        finally:
            if trial.running is not None and trial.running.poll() is None:
                trial.running.kill()
                trial.running.wait()
        said = trial.said()
    took_s = round(time.monotonic() - began, 1)
    return {
        "fault": name, "wrong": wrong, "statuses": trial.statuses, "took_s": took_s,
        "said": said if wrong else "",
    }  # fmt: skip


def _tried(trial: Trial, fault: Callable[[Trial], None]) -> list[str]:
    trial.running = trial.start()
    _racing(trial)
    before = trial.trials()
    fault(trial)
    status = trial.wait()
    for _ in range(2):
        if status != 0:
            trial.running = trial.start()
            status = trial.wait()
    return list(_wrong(trial, before, status))


def _wrong(trial: Trial, before: dict[str, str], status: int) -> Iterator[str]:
    after = trial.trials()
    if status != 0:
        yield f"the same command ends with {status}"
    lost = [name for name in before if name not in after]
    if lost:
        yield f"lost: {lost}"
    changed = [
        name for name in before if name not in trial.damaged and after.get(name) != before[name]
    ]
    if changed:
        yield f"raced again: {changed}"
    if len(after) != 4 * trial.rounds:
        yield f"{len(after)} trials instead of {4 * trial.rounds}"
    _settle(trial)
    left = trial.slurm.ask("squeue", "-h").split()
    if left:
        yield f"jobs are left: {left}"
    processes = trial.processes()
    if processes:
        yield f"processes are left: {processes}"


def _settle(trial: Trial) -> None:
    """Jobs that have ended are completing for a while, longer after the controller was away."""
    with suppress(TimeoutError):
        ends_s = time.monotonic() + 90
        while trial.processes() or trial.slurm.ask("squeue", "-h").split():
            if time.monotonic() > ends_s:
                break
            time.sleep(0.5)


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """A file system of 3 MB for the results of a study."""
    place = folder / ".ensign"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def main(names: list[str]) -> int:
    """All faults, or these; the number of those after which something was wrong."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    failed = 0
    # Whoever starts this in the background ignores it, and so would the coordinators.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in names or list(FAULTS):
        found = hit(name)
        failed += bool(found["wrong"])
        with OUT.open("a") as file:
            file.write(json.dumps(found) + "\n")
        said = f"{name}: {found['wrong'] or 'well'} ({found['took_s']} s, {found['statuses']})\n"
        sys.stdout.write(said)
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
