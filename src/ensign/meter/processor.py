"""This processor: what Linux shows of it, and what `ensign-meter` asked it itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from ensign.host.processor import Processor, processor_of, read_cpuinfo
from ensign.meter.abilities import said_by
from ensign.meter.client import find_meter
from ensign.model.errors import InternalError


class ProcessorLine(BaseModel):
    """The meter's own words."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    registers: Mapping[str, NonNegativeInt]


def read_processor() -> Processor:
    """This one; where there is no meter, by what Linux shows alone. Errors as `said_by`."""
    registers: Mapping[str, int] = {}
    with suppress(InternalError):
        registers = read_registers(find_meter())
    return processor_of(read_cpuinfo(), registers)


def read_registers(executable: Path) -> Mapping[str, int]:
    """Its registers of `cpuid` that show features; none but on x86-64."""
    return parse_registers(said_by(executable, "processor"))


def parse_registers(text: str) -> Mapping[str, int]:
    """The one JSON line of `ensign-meter processor`. InternalError where it is none. Pure."""
    try:
        return ProcessorLine.model_validate_json(text).registers
    except ValidationError:
        said = f"'ensign-meter processor' said {text[:80]!r}"
        raise InternalError(f"{said}; run 'make setup'") from None
