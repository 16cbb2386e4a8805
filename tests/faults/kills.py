"""`make kills`: signals at random moments to each process of a study and of a comparison.

    python tests/faults/kills.py                   # 200 kills, then stops and requests to end
    python tests/faults/kills.py --scenario study --role worker --signal KILL --nth 3 --after-ms 12

Whoever is hit is found below the command that was started: the n-th process of its role that is
seen (of ensign itself: when the n-th meter is), some milliseconds later, both drawn at random.
Times would say less, since no two runs of a busy machine take equally long. Afterwards the same
command must end as if nothing had happened. Results are lines of JSON in build/faults/kills.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from faults.calls import Done, Launcher, Running, new_place
from faults.campaign import OUT, Campaign, done_before, revision, said_by
from faults.oracle import other_outcome, stored_trials, wrong_afterwards, wrong_with_fault
from faults.scenarios import SCENARIOS
from faults.surroundings import descendants, mounts

# What a process is, by its place in the tree, and else by its name.
_COMPILERS = ("gcc", "cc1", "as", "ld", "collect2", "gcc-12", "ensign-meter")
_METER = ("guardian", "worker")
ROLES = ("ensign", *_METER, "bwrap", "make", "compiler", "program")
_SIGNALS = {"KILL": ROLES, "STOP": ("ensign", *_METER), "TERM": ("ensign", *_METER, "program"),
            "INT": ("ensign",), "HUP": ("ensign",)}  # fmt: skip
_STOPPED_S = 1.5
_LONGEST_DELAY_MS = 40.0
_PAUSE_S = 0.001


@dataclass(frozen=True, slots=True)
class Shot:
    """A signal for the `nth` process of a role, so long after it is first seen."""

    role: str
    signal: str
    nth: int = 1
    delay_ms: float = 0.0


@dataclass
class Shooter:
    """Sends one signal; `hit` is the process that got it, or None where none of the role came."""

    shot: Shot
    hit: tuple[int, str] | None = None

    def __call__(self, running: Running) -> None:
        seen: set[int] = set()
        while _lives(running.pid):
            for pid, (role, words) in roles(running.pid).items():
                if role != _seen_for(self.shot.role) or pid in seen:
                    continue
                seen.add(pid)
                if len(seen) < self.shot.nth:
                    continue
                time.sleep(self.shot.delay_ms / 1000)
                victim = running.pid if self.shot.role == "ensign" else pid
                if self._send(victim):
                    self.hit = (victim, "ensign" if victim == running.pid else words[:120])
                    return
            time.sleep(_PAUSE_S)

    def _send(self, pid: int) -> bool:
        number = signal.Signals[f"SIG{self.shot.signal}"]
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        if number == signal.SIGSTOP:
            time.sleep(_STOPPED_S)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return True


def _seen_for(role: str) -> str:
    """Whose processes are counted: of ensign there is one, whose meters tell how far it is."""
    return "guardian" if role == "ensign" else role


@dataclass
class Observer:
    """Counts the processes of each role in one run."""

    seen: dict[str, set[int]] = field(default_factory=dict)

    def __call__(self, running: Running) -> None:
        while _lives(running.pid):
            for pid, (role, _) in roles(running.pid).items():
                self.seen.setdefault(role, set()).add(pid)
            time.sleep(_PAUSE_S)

    def most(self, role: str) -> int:
        """How many there were."""
        return max(1, len(self.seen.get(_seen_for(role), ())))


def observed(campaign: Campaign) -> Observer:
    """What a run of the command starts, without any signal."""
    observer = Observer()
    with new_place(campaign.scratch) as folder:
        shutil.copytree(campaign.template, folder, symlinks=True, dirs_exist_ok=True)
        done = campaign.launcher.run(folder, campaign.scenario.argv, meanwhile=observer)
        assert done.status == 0, done.err
    return observer


def _lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def roles(pid: int) -> dict[int, tuple[str, str]]:
    """The command and the living processes below it, each with its role and command line."""
    found = {pid: ("ensign", "ensign")}
    below = descendants(pid)
    for each, words in below.items():
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text(errors="replace").rpartition(")")
            parent = int(fields[2].split()[1])
            above = found.get(parent, ("", ""))[0]
            name = fields[0].partition("(")[2]
            found[each] = (_role(name, above), words)
    return found


def _role(name: str, above: str) -> str:
    if name == "ensign-meter" and above == "ensign":
        return "guardian"
    if name == "ensign-meter" and above == "guardian":
        return "worker"
    if name in ("bwrap", "make"):
        return name
    if name in _COMPILERS:
        return "compiler"
    return "program" if name in ("spin", "cheap", "dear") else "other"


@dataclass(frozen=True, slots=True)
class Kill:
    """What came of one signal. `wrong` is empty where all was as it must be."""

    scenario: str
    shot: Shot
    hit: str
    status: int | None
    said: str
    left: tuple[str, ...]
    wrong: tuple[str, ...]


def shoot(campaign: Campaign, shot: Shot) -> Kill:
    """Carry out the command with the signal, and again without."""
    shooter = Shooter(shot)
    scenario = campaign.scenario
    with new_place(campaign.scratch) as folder:
        shutil.copytree(campaign.template, folder, symlinks=True, dirs_exist_ok=True)
        done = campaign.launcher.run(folder, scenario.argv, meanwhile=shooter)
        wrong = list(_wrong(done, shot, folder))
        if done.status == 0 and shot.role in ("ensign", *_METER):
            wrong += other_outcome(scenario, folder, campaign.reference)
        trials = stored_trials(folder)
        again = campaign.launcher.run(folder, scenario.argv)
        failed = shot.role == "program" and _was_raced(again)
        reference = {"claims": []} if failed else campaign.reference
        after = replace(again, status=0) if failed else again
        wrong += wrong_afterwards(scenario, after, folder, reference, trials)
    wrong += [f"left mount {each}" for each in mounts(campaign.scratch)]
    hit = "" if shooter.hit is None else shooter.hit[1]
    return Kill(scenario.name, shot, hit, done.status, said_by(done), done.left, tuple(wrong))


def _was_raced(again: Done) -> bool:
    """Whether a killed program failed in a stored trial, so that it is out of the race for good."""
    out = "nothing is left to compare" in again.err or "[variant-failed]" in again.out
    return again.status in (0, 3) and out and "Traceback" not in again.err


def _wrong(done: Done, shot: Shot, folder: Path) -> Iterator[str]:
    """What a killed ensign leaves, the next one has to remove; else nothing may be left."""
    killed = shot.signal == "KILL" and shot.role in ("ensign", *_METER)
    for each in wrong_with_fault(done, folder, ""):
        of_its_end = each in ("exit status -9", "0 complaints")
        expected = of_its_end and shot.role == "ensign" and killed
        if not expected and not (killed and each.startswith("left control group")):
            yield each
    if shot.signal == "STOP" and done.status != 0:
        yield f"a stop of {_STOPPED_S} s ended it with status {done.status}"


def drawn(kills: int, others: int, observer: Observer, seed: str) -> Iterator[Shot]:
    """Shots at random moments, roles in turn."""
    chance = random.Random(seed)  # noqa: S311
    gentle = [(s, role) for s, hit in _SIGNALS.items() if s != "KILL" for role in hit]
    there = [role for role in ROLES if observer.seen.get(_seen_for(role))]
    for number in range(kills + others):
        name, role = "KILL", there[number % len(there)]
        if number >= kills:
            name, role = gentle[(number - kills) % len(gentle)]
        nth = chance.randint(1, observer.most(role))
        yield Shot(role, name, nth, round(chance.uniform(0, _LONGEST_DELAY_MS), 1))


def table(found: list[dict[str, Any]]) -> str:
    """How many signals each role got, and after how many something was wrong."""

    def key(each: dict[str, Any]) -> tuple[str, str, str]:
        return each["scenario"], each["shot"]["signal"], each["shot"]["role"]

    sent = Counter(key(each) for each in found)
    hit = Counter(key(each) for each in found if each["hit"])
    wrong = Counter(key(each) for each in found if each["wrong"])
    lines = [f"{'scenario':<10}{'signal':<8}{'role':<10}{'sent':>6}{'hit':>6}{'wrong':>6}"]
    lines += [
        f"{s:<10}{n:<8}{r:<10}{count:>6}{hit[s, n, r]:>6}{wrong[s, n, r]:>6}"
        for (s, n, r), count in sorted(sent.items())
    ]
    for each in found:
        if each["wrong"]:
            lines += ["", f"{each['scenario']} {each['shot']}: {each['hit']}", f"  {each['said']}"]
            lines += [f"  {text}" for text in each["wrong"]]
    return "\n".join(lines) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", choices=("study", "compare"), action="append")
    parser.add_argument("--role", choices=ROLES)
    parser.add_argument("--signal", choices=sorted(_SIGNALS), default="KILL")
    parser.add_argument("--nth", type=int, default=1, help="of the processes of the role")
    parser.add_argument("--after-ms", type=float, default=0.0, help="after it is seen")
    parser.add_argument("--kills", type=int, default=100, help="of each scenario")
    parser.add_argument("--others", type=int, default=30, help="signals of other kinds")
    parser.add_argument("--out", type=Path, default=OUT / "kills.jsonl")
    parser.add_argument("--scratch", type=Path, default=OUT / "scratch")
    return parser.parse_args()


def main() -> int:
    """1 where something was wrong."""
    arguments = _arguments()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    one = arguments.role is not None
    known = [] if one else done_before(arguments.out)
    there = {(each["scenario"], json.dumps(each["shot"])) for each in known}
    found = list(known)
    with Launcher() as launcher:
        for name in arguments.scenario or ("study", "compare"):
            campaign = Campaign(SCENARIOS[name], launcher, arguments.scratch, counted=False)
            asked = Shot(arguments.role, arguments.signal, arguments.nth, arguments.after_ms)
            kills, others = arguments.kills, arguments.others
            shots = [asked] if one else list(drawn(kills, others, observed(campaign), name))
            # How many processes are seen differs: what counts is how many shots are there.
            begin = sum(1 for scenario, _ in there if scenario == name)
            for number, shot in enumerate(shots[begin:], start=begin + 1):
                kill = shoot(campaign, shot)
                found.append(asdict(kill))
                if not one:
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(asdict(kill) | {"revision": revision()}) + "\n")
                mark = "WRONG" if kill.wrong else "ok"
                words = f"{shot.signal} {shot.role} {shot.nth} ({kill.hit[:40] or '-'})"
                sys.stderr.write(f"{name} {number}/{len(shots)} {words}: {kill.status}, {mark}\n")
    sys.stdout.write(table(found))
    shutil.rmtree(arguments.scratch, ignore_errors=True)
    return int(any(each["wrong"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
