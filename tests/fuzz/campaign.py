"""One target for long: coverage-guided where atheris is installed, else by blind damage.

    python -m fuzz.campaign TARGET SECONDS FOLDER

Goes on after a fault. For each key of a fault FOLDER/TARGET gets the smallest input that was
found, and what happened; FOLDER/TARGET.corpus the inputs that reached something new. Prints a line
of JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None  # then blindly

_LIBRARIES = ("ensign", "elftools", "tarfile", "zipfile", "tomllib", "shlex", "json")

if atheris is not None:
    with atheris.instrument_imports(include=list(_LIBRARIES), enable_loader_override=False):
        from fuzz.attempt import Fault, Target, attempt, limit_memory
        from fuzz.check import corpus_of
        from fuzz.mutate import mutated
        from fuzz.targets import TARGETS
else:
    from fuzz.attempt import Fault, Target, attempt, limit_memory
    from fuzz.check import corpus_of
    from fuzz.mutate import mutated
    from fuzz.targets import TARGETS

# Counting coverage makes everything slower.
_CPU_S = 3.0
_MOST_SHRINKING_S = 20.0


@dataclass
class Campaign:
    """Inputs are given one by one; faults are kept."""

    target: Target
    out: Path
    folder: Path
    executions: int = 0
    found: dict[str, bytes] = field(default_factory=dict)

    def give(self, data: bytes) -> None:
        """One input."""
        self.executions += 1
        fault = attempt(self.target, data, self.folder, _CPU_S)
        if fault is not None and fault.key not in self.found:
            self.keep(fault, data)

    def keep(self, fault: Fault, data: bytes) -> None:
        """Shrink it, and write it down."""
        self.found[fault.key] = data
        data = self.shrunk(fault.key, data)
        self.found[fault.key] = data
        self.out.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(data).hexdigest()[:16]
        (self.out / name).write_bytes(data)
        text = f"{fault.key}\n{fault.text}"
        (self.out / f"{name}.txt").write_text(text, errors="backslashreplace")

    def shrunk(self, key: str, data: bytes) -> bytes:
        """As small as it gets in a short time, with the same fault."""
        until = time.monotonic() + _MOST_SHRINKING_S
        size = len(data) // 2
        while size and time.monotonic() < until:
            at = 0
            while at < len(data) and time.monotonic() < until:
                shorter = data[:at] + data[at + size :]
                fault = attempt(self.target, shorter, self.folder, _CPU_S)
                if fault is not None and fault.key == key:
                    data = shorter
                else:
                    at += size
            size //= 2
        return data


def guided(campaign: Campaign, seconds: int, corpus: Path) -> None:
    """Until the time is over; libFuzzer ends the process."""
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = corpus_of(campaign.target)
    for name, data in seeds.items():
        (corpus / name).write_bytes(data)
    others = list(seeds.values())

    def change(data: bytes, most: int, seed: int) -> bytes:
        if seed % 3 == 0:
            return bytes(atheris.Mutate(data, most))
        return mutated(data, campaign.target.kind, others, seed)[:most]

    until = time.monotonic() + seconds

    def give(data: bytes) -> None:
        campaign.give(data)
        if time.monotonic() > until:
            tell(campaign, "guided")
            sys.stdout.flush()
            shutil.rmtree(campaign.folder)
            os._exit(0)  # libFuzzer would take an orderly end for a fault

    # Its own clock is that of the wall; hangs are judged by CPU time, in `attempt`.
    options = ("-max_len=262144", "-timeout=100000", "-rss_limit_mb=0", "-verbosity=0")
    kept = f"-artifact_prefix={campaign.out}-"
    atheris.Setup([sys.argv[0], str(corpus), kept, *options], give, custom_mutator=change)
    atheris.Fuzz()


def blind(campaign: Campaign, seconds: int) -> None:
    """Damage of damage of the corpus."""
    seeds = list(corpus_of(campaign.target).values())
    until = time.monotonic() + seconds
    first = random.SystemRandom().randrange(1 << 40)
    number = 0
    while time.monotonic() < until:
        data = seeds[number % len(seeds)]
        campaign.give(mutated(data, campaign.target.kind, seeds, first + number))
        number += 1
    tell(campaign, "blind")


def tell(campaign: Campaign, how: str) -> None:
    """What came out."""
    said = {
        "target": campaign.target.name,
        "how": how,
        "executions": campaign.executions,
        "faults": sorted(campaign.found),
    }
    sys.stdout.write(json.dumps(said) + "\n")


def main() -> None:
    """One target."""
    name, seconds, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    limit_memory()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        campaign = Campaign(TARGETS[name], out / name, Path(folder))
        for data in corpus_of(campaign.target).values():
            campaign.give(data)
        if atheris is None:
            blind(campaign, seconds)
        else:
            guided(campaign, seconds, out / f"{name}.corpus")


if __name__ == "__main__":
    main()
