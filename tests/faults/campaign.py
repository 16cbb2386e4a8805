"""`make faults`: every call site of ensign × every kind of failure, then calls drawn at random.

    python tests/faults/campaign.py                    # all, from where it was left
    python tests/faults/campaign.py --scenario study --site 'host/files.py:33 write' --kind ENOSPC

Results are lines of JSON in build/faults/, one for each fault; what is there is not done again. At
the end a table, and each fault after which something was wrong with the command that repeats it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from faults.calls import Done, Launcher, Trouble, give_to, new_place
from faults.injection import KINDS, Fault
from faults.oracle import other_outcome, stored_trials, wrong_afterwards, wrong_with_fault
from faults.scenarios import SCENARIOS, Json, Scenario
from faults.surroundings import mounts

_ROOT = Path(__file__).parent.parent.parent
OUT = _ROOT / "build" / "faults"
_RANDOM = {"study": 250, "compare": 150, "report": 50, "bundle": 50}


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one fault. `wrong` is empty where all was as it must be."""

    scenario: str
    fault: Fault
    struck: str
    kind: str
    status: int | None
    said: str
    left: tuple[str, ...]
    wrong: tuple[str, ...]
    took_s: float

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        words = ["python", "tests/faults/campaign.py", "--scenario", self.scenario]
        if self.fault.site:
            words += ["--site", self.fault.site]
        words += ["--nth", str(self.fault.nth), "--kind", self.kind]
        return shlex.join([*words, *(["--lasting"] if self.fault.lasting else [])])


@dataclass
class Campaign:
    """One scenario, with what it does without a fault."""

    scenario: Scenario
    launcher: Launcher
    scratch: Path
    counted: bool = True

    def __post_init__(self) -> None:
        self.template = self.scratch / f"{self.scenario.name}.template"
        shutil.rmtree(self.template, ignore_errors=True)
        with new_place(self.scratch) as folder:
            self._prepare(folder)
            shutil.copytree(folder, self.template, symlinks=True)
            done = self.launcher.run(
                folder, self.scenario.argv, trouble=Trouble(counted=self.counted)
            )
            assert done.status == 0, done.err
            self.counts, self.took_s = done.counts, done.took_s
            self.total = sum(self.counts.values())
            self.reference: Json = json.loads(json.dumps(self.scenario.outcome(folder)))

    def _prepare(self, folder: Path) -> None:
        self.scenario.prepare(folder)
        give_to(self.launcher.user, folder.parent)
        if self.scenario.before is not None:
            assert self.launcher.run(folder, self.scenario.before).status == 0
            (folder / "results.json").unlink()

    def sites(self) -> Iterator[Fault]:
        """Every call site with every kind of failure that it may meet; first one for each site."""
        kinds = {site: KINDS[site.rpartition(" ")[2]] for site in sorted(self.counts)}
        for number in range(max(map(len, kinds.values()))):
            for site, possible in kinds.items():
                if number < len(possible):
                    yield Fault(site, 1, possible[number])

    def drawn(self, count: int, seed: int = 1) -> Iterator[Fault]:
        """Calls drawn at random, half of them with all that follow."""
        chance = random.Random(f"{seed} {self.scenario.name}")  # noqa: S311
        every = sorted({kind for kinds in KINDS.values() for kind in kinds})
        for _ in range(count):
            lasting = chance.random() < 0.5
            kind = chance.choice(("ENOSPC", "EIO", "EMFILE", "ENOMEM") if lasting else every)
            yield Fault("", chance.randrange(1, self.total + 1), kind, lasting=lasting)

    def inject(self, fault: Fault) -> Finding:
        """Carry out the command with the fault, and again without."""
        with new_place(self.scratch) as folder:
            shutil.copytree(self.template, folder, symlinks=True, dirs_exist_ok=True)
            give_to(self.launcher.user, folder.parent)
            done = self.launcher.run(folder, self.scenario.argv, trouble=Trouble(fault))
            struck = done.struck or {"struck": "", "kind": ""}
            # Of those that last, the first may be overcome, or of another kind.
            later = fault.kind if fault.lasting else ""
            mute = later in KINDS["write"]
            wrong = list(wrong_with_fault(done, folder, struck["kind"], later=later, mute=mute))
            if done.status == 0:
                wrong += other_outcome(self.scenario, folder, self.reference)
            trials = stored_trials(folder)
            again = self.launcher.run(folder, self.scenario.argv)
            wrong += wrong_afterwards(self.scenario, again, folder, self.reference, trials)
        wrong += [f"left mount {each}" for each in mounts(self.scratch)]
        return Finding(
            self.scenario.name, fault, struck["struck"], struck["kind"], done.status,
            said_by(done), done.left, tuple(wrong), done.took_s + again.took_s,
        )  # fmt: skip


def said_by(done: Done) -> str:
    """The lines of ensign's own, or the end of a traceback."""
    if "Traceback" in done.err:
        return done.err[-1500:]
    return "\n".join(line for line in done.err.splitlines() if line.startswith("ensign: "))


def revision() -> str:
    """The state of the sources, for the results."""
    argv = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def record(finding: Finding, path: Path) -> None:
    """Adds a line to the results."""
    said = {**asdict(finding), "command": finding.command, "revision": revision()}
    with path.open("a") as file:
        file.write(json.dumps(said) + "\n")


def done_before(path: Path) -> list[dict[str, Any]]:
    """The results that are there."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def table(found: list[dict[str, Any]]) -> str:
    """How many faults of each kind in each scenario, and after how many something was wrong."""
    rows = Counter((each["scenario"], each["kind"]) for each in found if each["struck"])
    wrong = Counter((each["scenario"], each["kind"]) for each in found if each["wrong"])
    lines = [f"{'scenario':<10}{'kind':<8}{'faults':>8}{'wrong':>8}"]
    lines += [f"{s:<10}{k:<8}{n:>8}{wrong[s, k]:>8}" for (s, k), n in sorted(rows.items())]
    for each in found:
        if each["wrong"]:
            lines += ["", each["struck"], *(f"  {text}" for text in each["wrong"])]
            lines += [f"  {line}" for line in each["said"].splitlines()[-4:]]
            lines.append(f"  {each['command']}")
    return "\n".join(lines) + "\n"


def _asked(arguments: argparse.Namespace, campaign: Campaign) -> list[Fault]:
    name = campaign.scenario.name
    if arguments.site or arguments.nth:
        nth = arguments.nth or 1
        return [Fault(arguments.site, nth, arguments.kind, lasting=arguments.lasting)]
    count = _RANDOM[name] if arguments.random is None else arguments.random
    pattern = re.compile(arguments.sites)
    wanted = [each for each in campaign.sites() if pattern.match(each.site)]
    wanted = [] if arguments.no_sites else wanted
    part, parts = (int(each) for each in arguments.part.split("/"))
    return [*wanted, *campaign.drawn(count)][part - 1 :: parts]


def main() -> int:
    """1 where something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), action="append")
    parser.add_argument("--site", default="", help="as 'host/files.py:33 write'")
    parser.add_argument("--sites", default="", help="only call sites that match this pattern")
    parser.add_argument("--nth", type=int, default=0, help="of the site; of all calls without it")
    parser.add_argument("--kind", default="")
    parser.add_argument("--lasting", action="store_true", help="and all calls that follow")
    parser.add_argument("--random", type=int, help="how many calls drawn at random")
    parser.add_argument("--no-sites", action="store_true", help="only calls drawn at random")
    parser.add_argument("--part", default="1/1", help="as 2/3: for several at once")
    parser.add_argument("--again", action="store_true", help="those again that were wrong")
    parser.add_argument("--user", type=int, help="as this user; needs root")
    parser.add_argument("--python", default=sys.executable, help="that this user may read")
    parser.add_argument("--out", type=Path, default=OUT / "calls.jsonl")
    parser.add_argument("--scratch", type=Path, default=OUT / "scratch")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    one = bool(arguments.site or arguments.nth)
    known = [] if one else done_before(arguments.out)
    if arguments.again:
        known = [each for each in known if not each["wrong"]]
        arguments.out.write_text("".join(json.dumps(each) + "\n" for each in known))
    there = {(each["scenario"], json.dumps(each["fault"])) for each in known}
    found: list[dict[str, Any]] = []
    with Launcher(arguments.user, arguments.python) as launcher:
        for name in arguments.scenario or SCENARIOS:
            campaign = Campaign(SCENARIOS[name], launcher, arguments.scratch)
            asked = _asked(arguments, campaign)
            for number, fault in enumerate(asked, start=1):
                if (name, json.dumps(asdict(fault))) in there:
                    continue
                finding = campaign.inject(fault)
                if not one:
                    record(finding, arguments.out)
                found.append({**asdict(finding), "command": finding.command})
                mark = "WRONG" if finding.wrong else "ok"
                words = f"{name} {number}/{len(asked)} {finding.struck or '-'} {finding.kind}"
                sys.stderr.write(f"{words}: {finding.status}, {mark} ({finding.took_s:.1f} s)\n")
    sys.stdout.write(table(found if one else done_before(arguments.out)))
    shutil.rmtree(arguments.scratch, ignore_errors=True)
    return int(any(each["wrong"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
