"""What this processor can run: the levels of the x86-64 psABI, from its flags in /proc/cpuinfo."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ensign.model.instructions import LEVELS


@dataclass(frozen=True, slots=True)
class Processor:
    """`identity` differs where code made for "this processor" might."""

    flags: frozenset[str]
    identity: str

    def lacks(self, target: str) -> tuple[str, ...]:
        """Which of the features of a target are missing here; none for other names."""
        return tuple(sorted(LEVELS.get(target, frozenset()) - self.flags))


def read_processor(root: Path = Path("/")) -> Processor:
    """Read the first processor; without flags where there is no such file."""
    try:
        text = (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        text = ""
    return processor_of(text)


def flags_of_all(cpuinfo: str) -> frozenset[str]:
    """What every processor in the text of /proc/cpuinfo has; empty where it is no such text."""
    fields = (_pair(line) for line in cpuinfo.splitlines() if ":" in line)
    each = [frozenset(value.split()) for name, value in fields if name == "flags"]
    return frozenset.intersection(*each) if each else frozenset()


def processor_of(cpuinfo: str) -> Processor:
    """The first processor of the text of /proc/cpuinfo."""
    first = cpuinfo.split("\n\n", 1)[0]
    fields = dict(_pair(line) for line in first.splitlines() if ":" in line)
    flags = frozenset(fields.get("flags", "").split())
    naming = ("vendor_id", "cpu family", "model", "stepping")
    parts = [*(fields.get(name, "") for name in naming), *sorted(flags)]
    return Processor(flags, hashlib.sha256(" ".join(parts).encode()).hexdigest())


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
