"""Which CPUs the programs, their load and the meter get."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.host.topology import allowed_cpus, default_cpus, read_topology
from ensign.model.errors import InputError
from ensign.model.findings import Finding
from ensign.model.study_race import Cpus


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """CPUs of the programs under test, of load generators, and of the meter; empty: any.

    `wide` are those of the programs and of load generators where a program needs several; empty
    where these are no others.
    """

    program: tuple[int, ...] = ()
    load: tuple[int, ...] = ()
    meter: tuple[int, ...] = ()
    wide: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def widened(self) -> CpuPlan:
        """Those for programs with several busy tasks."""
        program, load = self.wide
        return replace(self, program=program or self.program, load=load or self.load)


def cpus_of_options(
    asked: tuple[int, ...] | None, *, servers: bool
) -> tuple[CpuPlan, tuple[Finding, ...]]:
    """CPUs for `compare`. InputError where the user asked for some that cannot be had."""
    allowed = allowed_cpus()
    if asked is not None and not allowed.issuperset(asked):
        missing = ", ".join(str(cpu) for cpu in asked if cpu not in allowed)
        raise InputError(f"--cpus: this machine lets ensign use no CPU {missing}")
    choice = default_cpus(allowed, read_topology())
    program = asked or choice.variants
    free = tuple(sorted(allowed.difference(program)))
    load = choice.load if asked is None else (free[-1:] or program)
    meter = choice.meter if asked is None else (free[:1] or program)
    return CpuPlan(program, load, meter), choice.findings if servers else ()


def cpus_of_study(asked: Cpus) -> tuple[CpuPlan, tuple[Finding, ...]]:
    """CPUs for a study; what its table leaves open comes from the machine."""
    allowed = allowed_cpus()
    choice = default_cpus(allowed, read_topology())
    every = tuple(sorted(allowed))
    program = tuple(asked.server or choice.variants)
    load = tuple(asked.load or choice.load)
    own = asked.server is not None or asked.load is not None
    wide = (tuple(asked.server or every), tuple(asked.load or every))
    return CpuPlan(program, load, choice.meter, wide), () if own else choice.findings
