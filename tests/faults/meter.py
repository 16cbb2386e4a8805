"""`make faults`, second part: failures of the system calls that `ensign-meter` makes.

    python tests/faults/meter.py
    python tests/faults/meter.py --scenario compare --run 3 --call openat --nth 2 --kind EMFILE

The meter is a static program: strace makes its real calls fail. Runs of the meter that make the
same calls are one: each kind of run, of call, of failure, for the first n and some at random. A
meter inside a sandbox is out of reach: races of a study are, its builds and pilots' commands not.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from faults.calls import Launcher, Trouble, give_to, new_place
from faults.campaign import OUT, Campaign, done_before, revision, said_by, table
from faults.meter_tracing import calls, injected
from faults.oracle import other_outcome, stored_trials, wrong_afterwards, wrong_with_fault
from faults.scenarios import SCENARIOS
from faults.surroundings import mounts

_EMFILE = ("EMFILE",)
_KINDS: dict[str, tuple[str, ...]] = {
    "openat": ("ENOSPC", "EMFILE", "EIO"),
    "open": ("EMFILE",),
    "write": ("ENOSPC", "EIO"),
    "pwrite64": ("EIO",),
    "read": ("EIO",),
    "pread64": ("EIO",),
    "mkdir": ("ENOSPC", "EACCES"),
    "mkdirat": ("ENOSPC", "EACCES"),
    "rename": ("ENOSPC",),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "rmdir": ("EIO",),
    "getdents64": ("EIO",),
    "statx": ("EIO",),
    "fstat": ("EIO",),
    "chmod": ("EIO",),
    "fchmod": ("EIO",),
    "copy_file_range": ("ENOSPC",),
    "sendfile": ("ENOSPC",),
    "fork": ("EAGAIN", "ENOMEM"),
    "vfork": ("EAGAIN",),
    "clone": ("EAGAIN", "ENOMEM"),
    "clone3": ("EAGAIN", "ENOMEM"),
    "mmap": ("ENOMEM",),
    "brk": ("ENOMEM",),
    "dup": _EMFILE,
    "dup2": _EMFILE,
    "fcntl": _EMFILE,
    "pipe2": _EMFILE,
    "socket": ("EMFILE", "ENOMEM"),
    "bind": ("ENOMEM",),
    "epoll_create1": _EMFILE,
    "eventfd2": _EMFILE,
    "signalfd4": _EMFILE,
    "timerfd_create": _EMFILE,
    "pidfd_open": _EMFILE,
    "memfd_create": _EMFILE,
    "prlimit64": ("EPERM",),
    "sched_setaffinity": ("EINVAL",),
    "poll": ("ENOMEM",),
    "ppoll": ("ENOMEM",),
    "flock": ("ENOLCK",),
    "chdir": ("EACCES",),
    "setsid": ("EPERM",),
    "setpgid": ("EPERM",),
}
_FIRST, _MORE = 3, 2


@dataclass(frozen=True, slots=True)
class MeterFault:
    """The `nth` call of that name fails in the processes of the `run`-th meter of a command."""

    run: int
    call: str
    nth: int
    kind: str

    @property
    def options(self) -> list[str]:
        """What strace is told."""
        what = f"{self.call}:error={self.kind}:when={self.nth}"
        return ["-e", f"trace={self.call}", "-e", f"inject={what}"]


@dataclass(frozen=True, slots=True)
class MeterFinding:
    """What came of one fault. `wrong` is empty where all was as it must be."""

    scenario: str
    fault: MeterFault
    struck: str
    kind: str
    status: int | None
    said: str
    left: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        fault = self.fault
        return (
            f"python tests/faults/meter.py --scenario {self.scenario} --run {fault.run} "
            f"--call {fault.call} --nth {fault.nth} --kind {fault.kind}"
        )


def faults(campaign: Campaign) -> Iterator[MeterFault]:
    """For each kind of run, call and failure the first few, and some of the others."""
    chance = random.Random(campaign.scenario.name)  # noqa: S311
    with new_place(campaign.scratch) as folder:
        shutil.copytree(campaign.template, folder, symlinks=True, dirs_exist_ok=True)
        traces = folder.parent / "traces"
        traces.mkdir()
        asked = {"nth": 0, "options": ["-e", f"trace={_traced()}"], "folder": str(traces)}
        done = campaign.launcher.run(folder, campaign.scenario.argv, trouble=Trouble(meter=asked))
        assert done.status == 0, done.err
        runs = calls(traces)
    seen: set[tuple[str, str, int]] = set()
    for run, verb, counts in runs:
        for call, count in counts.items():
            # By size of the count: runs that do about the same are not all tried.
            if call not in _KINDS or (verb, call, count.bit_length()) in seen:
                continue
            seen.add((verb, call, count.bit_length()))
            numbers = set(range(1, min(count, _FIRST) + 1))
            numbers |= {chance.randrange(1, count + 1) for _ in range(_MORE)} | {count}
            for nth in sorted(numbers):
                for kind in _KINDS[call]:
                    yield MeterFault(run, call, nth, kind)


def _traced() -> str:
    # Not every architecture has all of them.
    return ",".join(f"?{call}" for call in _KINDS)


def inject(campaign: Campaign, fault: MeterFault) -> MeterFinding:
    """Carry out the command with the fault, and again without."""
    scenario = campaign.scenario
    with new_place(campaign.scratch) as folder:
        shutil.copytree(campaign.template, folder, symlinks=True, dirs_exist_ok=True)
        traces = folder.parent / "traces"
        traces.mkdir()
        give_to(campaign.launcher.user, folder.parent)
        asked = {"nth": fault.run, "options": fault.options, "folder": str(traces)}
        done = campaign.launcher.run(folder, scenario.argv, trouble=Trouble(meter=asked))
        wrong = list(wrong_with_fault(done, folder, ""))
        if done.status == 0:
            wrong += other_outcome(scenario, folder, campaign.reference)
        trials = stored_trials(folder)
        again = campaign.launcher.run(folder, scenario.argv)
        wrong += wrong_afterwards(scenario, again, folder, campaign.reference, trials)
        struck = injected(traces)
    wrong += [f"left mount {each}" for each in mounts(campaign.scratch)]
    return MeterFinding(
        scenario.name, fault, struck, fault.kind, done.status, said_by(done), done.left,
        tuple(wrong),
    )  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", choices=("study", "compare"), action="append")
    parser.add_argument("--run", type=int, help="of the meter, counted from 1")
    parser.add_argument("--call", choices=sorted(_KINDS))
    parser.add_argument("--nth", type=int, default=1)
    parser.add_argument("--kind", default="EIO")
    parser.add_argument("--out", type=Path, default=OUT / "meter.jsonl")
    parser.add_argument("--scratch", type=Path, default=OUT / "scratch")
    return parser.parse_args()


def main() -> int:
    """1 where something was wrong."""
    arguments = _arguments()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    one = arguments.run is not None
    known = [] if one else done_before(arguments.out)
    there = {(each["scenario"], json.dumps(each["fault"])) for each in known}
    found: list[dict[str, Any]] = list(known)
    with Launcher() as launcher:
        for name in arguments.scenario or ("compare", "study"):
            campaign = Campaign(SCENARIOS[name], launcher, arguments.scratch, counted=False)
            fault = MeterFault(arguments.run, arguments.call, arguments.nth, arguments.kind)
            asked = [fault] if one else list(faults(campaign))
            for number, each in enumerate(asked, start=1):
                if (name, json.dumps(asdict(each))) in there:
                    continue
                finding = inject(campaign, each)
                said = {**asdict(finding), "command": finding.command, "revision": revision()}
                found.append(said)
                if not one:
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(said) + "\n")
                mark = "WRONG" if finding.wrong else "ok"
                words = f"{each.call} {each.nth} {each.kind} in run {each.run}"
                sys.stderr.write(
                    f"{name} {number}/{len(asked)} {words}: {finding.status}, {mark}\n"
                )
    sys.stdout.write(table(found))
    shutil.rmtree(arguments.scratch, ignore_errors=True)
    return int(any(each["wrong"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
