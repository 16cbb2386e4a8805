"""Whether a build runs on the hosts that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.host.foreign_files import read_foreign
from ensign.host.json_text import read_json
from ensign.host.processor import flags_of_all
from ensign.model.environment_sheet import PROCESSOR_FLAGS, read_sheet
from ensign.model.errors import InputError
from ensign.model.instructions import FIRST_LEVEL, LEVELS, InstructionSets
from ensign.model.quoting import visible

_LONGEST_BYTES = 64 << 20  # /proc/cpuinfo of a thousand processors has 2 MiB
_SHOWN = 6
_OWN = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Host:
    """A host by the file that tells of it, and the instructions that all of its processors have."""

    name: str
    flags: frozenset[str]

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
    flags = _of_sheet(text) if text.lstrip().startswith("{") else flags_of_all(text)
    if not flags:
        raise InputError(
            f"--host {name}: it names no flags of an x86-64 processor; give a copy of the host's "
            "/proc/cpuinfo, or what 'ensign env show --json' prints there"
        )
    return Host(name, flags)


def require_hosts(
    variant: str, instructions: InstructionSets | None, hosts: Sequence[Host]
) -> None:
    """InputError where the variant does not run on one of them, or that is not known."""
    if not hosts:
        return
    if instructions is None or instructions.unknown:
        named = "" if instructions is None else f" ({', '.join(instructions.unknown[:_SHOWN])})"
        raise InputError(
            f"which instructions {variant} uses is not known{named}, so it cannot be said whether "
            "it runs on these hosts; leave --host out, or ship a variant with a target by its "
            f"level ({', '.join(LEVELS)})"
        )
    lacking = [(each, instructions.sets - each.flags) for each in hosts]
    lacking = [(host, sets) for host, sets in lacking if sets]
    if lacking:
        host, sets = lacking[0]
        more = f", and {len(lacking) - 1} more of these hosts" if len(lacking) > 1 else ""
        raise InputError(
            f"{variant} does not run on {host.name}{more}: it may use {_listed(sets)}, which that "
            f"processor lacks; ship a variant with target {_level_of(hosts)}, or leave the host out"
        )


def _listed(sets: frozenset[str]) -> str:
    names = sorted(sets)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _level_of(hosts: Sequence[Host]) -> str:
    """The highest level that all of them have."""
    common = frozenset.intersection(*(each.flags for each in hosts))
    return next((name for name, sets in reversed(LEVELS.items()) if sets <= common), FIRST_LEVEL)


def _of_sheet(text: str) -> frozenset[str]:
    try:
        sheet = read_sheet(read_json(text))
    except ValueError:
        return frozenset()
    return frozenset(sheet.facts.get(PROCESSOR_FLAGS, "").split())
