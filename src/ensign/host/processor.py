"""What a processor can run, by its flags in /proc/cpuinfo and by its registers of `cpuid`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.model.cpuid import sets_of
from ensign.model.environment_sheet import registers_text
from ensign.model.instructions import LEVELS, ProcessorSets


@dataclass(frozen=True, slots=True)
class Processor:
    """What it has; `identity` differs where code made for "this processor" might.

    `registers` are those of `cpuid` that show features, as the meter names them.
    """

    sets: ProcessorSets
    identity: str
    registers: Mapping[str, int] = field(default_factory=dict)

    @property
    def flags(self) -> frozenset[str]:
        """The names of all that it is known to have."""
        return self.sets.names

    def lacks(self, target: str) -> tuple[str, ...]:
        """Which of the features of a target are missing here; none for other names."""
        return tuple(sorted(self.sets.lacking(LEVELS.get(target, frozenset()))))


def read_cpuinfo(root: Path = Path("/")) -> str:
    """The text of /proc/cpuinfo; empty where there is no such file."""
    try:
        return (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""


def flags_of_all(cpuinfo: str) -> frozenset[str]:
    """What every processor in the text of /proc/cpuinfo has; empty where it is no such text."""
    fields = (_pair(line) for line in cpuinfo.splitlines() if ":" in line)
    each = [frozenset(value.split()) for name, value in fields if name == "flags"]
    return frozenset.intersection(*each) if each else frozenset()


def processor_of(cpuinfo: str, registers: Mapping[str, int] | None = None) -> Processor:
    """The first processor of the text of /proc/cpuinfo, with what `cpuid` says of it."""
    registers = registers or {}
    first = cpuinfo.split("\n\n", 1)[0]
    fields = dict(_pair(line) for line in first.splitlines() if ":" in line)
    flags = frozenset(fields.get("flags", "").split())
    naming = ("vendor_id", "cpu family", "model", "stepping")
    parts = [*(fields.get(name, "") for name in naming), *sorted(flags)]
    parts.append(registers_text(registers))
    identity = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    sets = ProcessorSets(flags | sets_of(registers), whole=bool(registers))
    return Processor(sets, identity, registers)


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
