"""Facts of processors from 2008 on: what `cpuid` says, and what Linux shows of it.

Registers are those of the dumps that klauspost/cpuid keeps of InstLatx64, `flags` those of the same
model as archspec-json keeps them, of another machine with another microcode; where there are none
(`flags_by_cpuid`) they are made of the registers. XCR0 is what the processor could let a system
use. The virtual machine was asked itself; it hides AMX-FP16, AMX-COMPLEX and more of its host.
`march` is what compilers call the processor, or one before it; `taken_away` is of that, and not
there: who made the virtual machine took it away; no Sapphire Rapids has what GCC 12 believes.

With TEST_PROCESSOR=NAME in the environment all tests take NAME for the processor of this machine.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from ensign.host.machine import Processor, processor_of
from ensign.meter import questions as this_processor
from ensign.model.environment_sheet import PROCESSOR_REGISTERS, EnvironmentSheet, registers_of


@dataclass(frozen=True)
class Facts:
    name: str
    march: tuple[str, ...]
    cpuinfo: str
    registers: dict[str, int]
    taken_away: frozenset[str]

    @property
    def processor(self) -> Processor:
        return processor_of(self.cpuinfo, self.registers)

    @property
    def shown(self) -> Processor:
        """By a copy of its /proc/cpuinfo alone."""
        return processor_of(self.cpuinfo)


def _read() -> dict[str, Facts]:
    found = json.loads((Path(__file__).parent / "processors.json").read_text())
    facts = {}
    for name, each in found.items():
        family, model, stepping = each["numbers"]
        cpuinfo = (
            f"processor\t: 0\nvendor_id\t: {each['vendor']}\ncpu family\t: {family}\n"
            f"model\t\t: {model}\nmodel name\t: {each['model']}\nstepping\t: {stepping}\n"
            f"flags\t\t: {each['flags']}\n\n"
        )
        gone = frozenset(each.get("taken_away", "").split())
        sheet = EnvironmentSheet(name, {PROCESSOR_REGISTERS: each["cpuid"]})
        facts[name] = Facts(name, tuple(each["march"]), cpuinfo, registers_of(sheet), gone)
    return facts


PROCESSORS = _read()


def stand_in_here() -> Facts | None:
    """The one that is taken for this machine's."""
    name = os.environ.get("TEST_PROCESSOR")
    return PROCESSORS[name] if name else None


def stand_in(name: str, patch: pytest.MonkeyPatch) -> None:
    """One of them is this machine's, for this process."""
    facts = PROCESSORS[name]
    patch.setattr(this_processor, "read_cpuinfo", lambda: facts.cpuinfo)
    patch.setattr(this_processor, "read_registers", lambda _executable: facts.registers)
