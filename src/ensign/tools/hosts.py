"""Whether a build runs on the hosts that it is for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.host.foreign_files import read_foreign
from ensign.host.json_text import read_json
from ensign.host.processor import flags_of_all
from ensign.meter.processor import read_processor
from ensign.model.cpuid import is_named, sets_of
from ensign.model.environment_sheet import PROCESSOR_FLAGS, read_sheet, registers_of
from ensign.model.errors import InputError
from ensign.model.instructions import FIRST_LEVEL, LEVELS, InstructionSets, ProcessorSets
from ensign.model.quoting import visible

_LONGEST_BYTES = 64 << 20  # /proc/cpuinfo of a thousand processors has 2 MiB
_SHOWN = 6
_BY_LEVEL = f"ship a variant with a target by its level ({', '.join(LEVELS)})"
_OWN = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Host:
    """A host by the file that tells of it, and the instructions that all of its processors have."""

    name: str
    sets: ProcessorSets

    def __str__(self) -> str:
        return self.name


def read_host(path: Path) -> Host:
    """By a copy of its /proc/cpuinfo, or what `ensign env show --json` says there. InputError."""
    name = visible(str(path))
    try:
        own = path.resolve() == _OWN  # the kernel's files are no regular ones
        data = path.read_bytes() if own else read_foreign(path, _LONGEST_BYTES)
    except OSError as error:
        raise InputError(f"--host {name}: {error.strerror}") from None
    text = data.decode(errors="replace")
    if text.lstrip().startswith("{"):
        sets = _of_sheet(text)
    else:
        sets = _with(flags_of_all(text), read_processor().registers if own else {})
    if not sets.names:
        raise InputError(
            f"--host {name}: it names no flags of an x86-64 processor; give a copy of the host's "
            "/proc/cpuinfo, or what 'ensign env show --json' prints there"
        )
    return Host(name, sets)


def require_hosts(
    variant: str, instructions: InstructionSets | None, hosts: Sequence[Host]
) -> dict[str, str]:
    """What is not known of hosts, by their names: whether they have all that the variant may use.

    InputError where one of them lacks something, or nothing is known of what it may use.
    """
    if not hosts:
        return {}
    if instructions is None:
        raise InputError(
            f"which instructions {variant} uses is not known, so it cannot be said whether "
            f"it runs on these hosts; leave --host out, or {_BY_LEVEL}"
        )
    lacking = [(each, each.sets.lacking(instructions.sets)) for each in hosts]
    lacking = [(host, sets) for host, sets in lacking if sets]
    if lacking:
        host, sets = lacking[0]
        more = f", and {len(lacking) - 1} more of these hosts" if len(lacking) > 1 else ""
        raise InputError(
            f"{variant} does not run on {host.name}{more}: it may use {_listed(sets)}, which that "
            f"processor lacks; ship a variant with target {_level_of(hosts)}, or leave the host out"
        )
    doubts = {each.name: _doubt(each, instructions) for each in hosts}
    return {name: doubt for name, doubt in doubts.items() if doubt}


def _doubt(host: Host, instructions: InstructionSets) -> str:
    not_known = host.sets.not_known(instructions)
    if not not_known:
        return ""
    named = all(map(is_named, not_known)) and not host.sets.whole
    way = "what 'ensign env show --json' prints there says it" if named else _BY_LEVEL
    return f"whether {host.name} has {_listed(not_known)} is not known; {way}"


def _listed(sets: Collection[str]) -> str:
    names = sorted(sets)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _level_of(hosts: Sequence[Host]) -> str:
    """The highest level that all of them have."""
    common = frozenset.intersection(*(each.sets.names for each in hosts))
    return next((name for name, sets in reversed(LEVELS.items()) if sets <= common), FIRST_LEVEL)


def _of_sheet(text: str) -> ProcessorSets:
    try:
        sheet = read_sheet(read_json(text))
    except ValueError:
        return ProcessorSets(frozenset())
    return _with(sheet.facts.get(PROCESSOR_FLAGS, "").split(), registers_of(sheet))


def _with(flags: Iterable[str], registers: Mapping[str, int]) -> ProcessorSets:
    return ProcessorSets(frozenset(flags) | sets_of(registers), whole=bool(registers))
