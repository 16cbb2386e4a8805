"""`make kills`: signals at random moments to each process of a study and of a comparison.

    python tests/faults/kills.py                   # 200 kills, then stops and requests to end
    python tests/faults/kills.py --scenario study --role worker --signal KILL --at 1.5

Whoever is hit is found below the command that was started, at a moment drawn from the time that it
takes; after it, the same command must end as if nothing had happened. Results are lines of JSON in
build/faults/kills.jsonl.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from faults.calls import Done, Launcher, Running, new_place
from faults.campaign import OUT, Campaign, done_before, revision, said_by
from faults.oracle import stored_trials, wrong_afterwards, wrong_with_fault
from faults.scenarios import SCENARIOS
from faults.surroundings import descendants, mounts

# What a process is, by its place in the tree, and else by its name.
_COMPILERS = ("gcc", "cc1", "as", "ld", "collect2", "gcc-12", "ensign-meter")
_METER = ("guardian", "worker")
ROLES = ("ensign", *_METER, "bwrap", "make", "compiler", "program")
_SIGNALS = {"KILL": ROLES, "STOP": ("ensign", *_METER), "TERM": ("ensign", *_METER, "program"),
            "INT": ("ensign",), "HUP": ("ensign",)}  # fmt: skip
_STOPPED_S = 1.5
_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Shot:
    """A signal for a process of a role, at a time after the start."""

    role: str
    signal: str
    at_s: float


@dataclass
class Shooter:
    """Sends one signal; `hit` is the process that got it, or None where none of the role came."""

    shot: Shot
    hit: tuple[int, str] | None = None

    def __call__(self, running: Running) -> None:
        time.sleep(self.shot.at_s)
        give_up = time.monotonic() + _PATIENCE_S
        while self.hit is None and time.monotonic() < give_up and _lives(running.pid):
            for pid, (role, words) in roles(running.pid).items():
                if role == self.shot.role and self._send(pid):
                    self.hit = (pid, words[:120])
                    return
            time.sleep(0.001)

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
    before = mounts()
    shooter = Shooter(shot)
    scenario = campaign.scenario
    with new_place(campaign.scratch) as folder:
        shutil.copytree(campaign.template, folder, symlinks=True, dirs_exist_ok=True)
        done = campaign.launcher.run(folder, scenario.argv, meanwhile=shooter)
        wrong = list(_wrong(done, shot, folder))
        trials = stored_trials(folder)
        again = campaign.launcher.run(folder, scenario.argv)
        wrong += wrong_afterwards(scenario, again, folder, campaign.reference, trials)
    wrong += [f"left mount {each}" for each in mounts() - before]
    hit = "" if shooter.hit is None else shooter.hit[1]
    return Kill(scenario.name, shot, hit, done.status, said_by(done), done.left, tuple(wrong))


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


def drawn(kills: int, others: int, longest_s: float, seed: str) -> Iterator[Shot]:
    """Shots at random moments, roles in turn."""
    chance = random.Random(seed)  # noqa: S311
    for number in range(kills):
        at_s = round(chance.uniform(0, longest_s), 3)
        yield Shot(ROLES[number % len(ROLES)], "KILL", at_s)
    gentle = [(s, role) for s, hit in _SIGNALS.items() if s != "KILL" for role in hit]
    for number in range(others):
        name, role = gentle[number % len(gentle)]
        yield Shot(role, name, round(chance.uniform(0, longest_s), 3))


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


def _longest_s(campaign: Campaign) -> float:
    return campaign.took_s * 0.95


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", choices=("study", "compare"), action="append")
    parser.add_argument("--role", choices=ROLES)
    parser.add_argument("--signal", choices=sorted(_SIGNALS), default="KILL")
    parser.add_argument("--at", type=float, default=0.0, help="seconds after the start")
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
            longest_s = _longest_s(campaign)
            shots = list(drawn(arguments.kills, arguments.others, longest_s, name))
            if one:
                shots = [Shot(arguments.role, arguments.signal, arguments.at)]
            # Times differ from machine to machine: what counts is how many of each are there.
            begin = sum(1 for scenario, _ in there if scenario == name)
            for number, shot in enumerate(shots[begin:], start=begin + 1):
                kill = shoot(campaign, shot)
                found.append(asdict(kill))
                if not one:
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(asdict(kill) | {"revision": revision()}) + "\n")
                mark = "WRONG" if kill.wrong else "ok"
                words = f"{shot.signal} {shot.role} at {shot.at_s:.2f} s ({kill.hit[:40] or '-'})"
                sys.stderr.write(f"{name} {number}/{len(shots)} {words}: {kill.status}, {mark}\n")
    sys.stdout.write(table(found))
    shutil.rmtree(arguments.scratch, ignore_errors=True)
    return int(any(each["wrong"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
