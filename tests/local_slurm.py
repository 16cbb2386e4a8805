"""A Slurm of one's own on this machine: several nodes, one folder, loopback only.

    python tests/local_slurm.py [--node NAME=FEATURE,FEATURE ...] COMMAND...

starts it, runs the command with SLURM_CONF set, and stops it. All nodes have the CPUs of this
machine; their features are what kinds of hosts are told by. Needs Debian's slurm-wlm and munge.
"""

from __future__ import annotations

import argparse
import getpass
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Daemons end with who started them, however that ends.
_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")
_READY_S = 60.0
_STOPPED_S = 20.0
_CONFIGURATION = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=10
MinJobAge=300
SchedulerParameters=sched_interval=2,sched_min_interval=200000
"""
_NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=4000"
)
_PARTITIONS = """\
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""


@dataclass
class LocalSlurm:
    """The daemons, by name: `munged`, `slurmctld`, and each node's."""

    folder: Path
    nodes: Mapping[str, str]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Slurm's commands mean this one."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> None:
        """Writes the configuration, starts all daemons, waits for the nodes."""
        (self.folder / "munge").mkdir(mode=0o700)
        (self.folder / "state").mkdir()
        key = self.folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(self._configuration())
        self.start_daemon("munged")
        _until((self.folder / "munge" / "socket").exists, "munged")
        self.start_daemon("slurmctld")
        for node in self.nodes:
            (self.folder / node).mkdir()
            self.start_daemon(node)
        _until(self.is_idle, "the nodes")

    def start_daemon(self, name: str) -> None:
        """Starts one, in the foreground of a session of its own."""
        munge, configuration = self.folder / "munge", str(self.folder / "slurm.conf")
        argv = {
            "munged": [
                "munged", "--foreground", "--force", "--num-threads=2",
                f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                f"--log-file={munge}/log", f"--seed-file={munge}/seed",
            ],
            "slurmctld": ["slurmctld", "-D", "-f", configuration],
        }.get(name, ["slurmd", "-D", "-N", name, "-f", configuration])  # fmt: skip
        program = shutil.which(argv[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if program is None:
            raise SystemExit(f"{argv[0]} is not installed: slurm-wlm and munge have it")
        with (self.folder / f"{name}.out").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                [*_WITH_PARENT, program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )

    def kill_daemon(self, name: str, number: int = signal.SIGKILL) -> None:
        """Ends one, and waits until it has gone."""
        daemon = self.daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(_STOPPED_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def ask(self, *argv: str) -> str:
        """What one of Slurm's commands prints."""
        done = subprocess.run(
            argv, env=self.env, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout

    def is_idle(self) -> bool:
        """True if every node is there and free."""
        return self.ask("sinfo", "-h", "-N", "-p", "all", "-o", "%T").split() == ["idle"] * len(
            self.nodes
        )

    def stop(self) -> None:
        """Ends all jobs, then all daemons."""
        with suppress(subprocess.SubprocessError):
            self.ask("scancel", "--me")
            _until(lambda: not self.ask("squeue", "-h").split(), "the jobs", fail=False)
        for name in (*self.nodes, "slurmctld", "munged"):
            if name in self.daemons:
                self.kill_daemon(name, signal.SIGTERM)

    def _configuration(self) -> str:
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(len(self.nodes) + 1)
        text = _CONFIGURATION.format(
            host=host, user=getpass.getuser(), folder=self.folder, port=ports[0]
        )
        for (name, features), port in zip(self.nodes.items(), ports[1:], strict=True):
            node = _NODE.format(name=name, host=host, port=port, cpus=os.cpu_count())
            text += f"{node} Feature={features}\n" if features else f"{node}\n"
        return text + _PARTITIONS


@contextmanager
def local_slurm(nodes: Mapping[str, str]) -> Iterator[LocalSlurm]:
    """A Slurm for a block; nothing of it is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        slurm = LocalSlurm(Path(folder), nodes)
        try:
            slurm.start()
            yield slurm
        finally:
            slurm.stop()


def _until(there: Callable[[], bool], what: str, *, fail: bool = True) -> None:
    ends_s = time.monotonic() + _READY_S
    while not there():
        if time.monotonic() > ends_s:
            if fail:
                raise SystemExit(f"{what} did not become ready within {_READY_S:g} s")
            return
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    """Below those that the kernel gives to connections, which come and go."""
    found: list[int] = []
    for port in random.sample(range(10_000, 20_000), 1000):
        with socket.socket() as each, suppress(OSError):
            each.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return found


def main(argv: Sequence[str]) -> int:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--node", action="append", metavar="NAME=FEATURES")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(argv)
    named = chosen.node or ["n1=milan", "n2=milan", "n3=genoa", "n4=genoa"]
    nodes = dict(each.partition("=")[::2] for each in named)
    with local_slurm(nodes) as slurm:
        return subprocess.run(chosen.command or ["sinfo"], env=slurm.env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
