"""Ends of a workload: programs that work together, and the network between them. Pure."""

from __future__ import annotations

from pydantic import Field

from ensign.model.study_values import Argv, CpuList, Rate
from ensign.model.units import parse_rate_bits
from ensign.model.validation import Section


class End(Section):
    """One of several programs that work together, and begin in their order.

    Their CPU time counts together. `{address}` is where the first end is reached.
    """

    command: Argv = Field(description="the program and its arguments")
    cpus: CpuList | None = Field(
        default=None, description="its CPUs; without it those of the program under test"
    )
    listens: str | None = Field(
        default=None,
        description="port on which it listens before the next end begins: {port}, or with a "
        "network a number",
    )
    serves: bool = Field(default=False, description="it is asked to end when all others have ended")


class Network(Section):
    """A network between two ends: each is in a namespace of its own, as on two hosts.

    A pair of virtual devices joins them, whose rate a token bucket limits in both directions.
    """

    rate: Rate | None = Field(
        default=None, description="such as 1Gbit/s; without it as fast as the machine can"
    )
    mtu: int = Field(default=1500, ge=68, le=65_535, description="bytes of the largest packet")

    @property
    def shown(self) -> str:
        """`over a network of 1Gbit/s, packets of 1500 B, segments offloaded`."""
        rate = "" if self.rate is None else f" of {self.rate}"
        return f"over a network{rate}, packets of {self.mtu} B, segments offloaded"

    @property
    def rate_bits(self) -> int:
        """Bits per second; 0 where nothing limits them."""
        return 0 if self.rate is None else parse_rate_bits(self.rate)
