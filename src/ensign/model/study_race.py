"""Keys of a study for its race. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ensign.model.study_values import (
    CpuList,
    Duration,
    GroupSize,
    Level,
    OptionalShare,
    PortRange,
    Share,
    SliceText,
)
from ensign.model.trials import Metric, Mode
from ensign.model.validation import Section


class Cpus(Section):
    """CPUs by their use; sensible defaults come from the machine."""

    server: CpuList | None = Field(default=None, description="of the program under test")
    load: CpuList | None = Field(default=None, description="of the load generators")


class Confirm(Section):
    """The best variants of the rounds are raced again, afresh; claims rest on that alone."""

    finalists: int = Field(default=3, ge=1, le=8, description="most variants that are confirmed")
    extremes: bool = Field(
        default=False,
        description="the best and the worst of each compiler instead, be they faster or slower "
        "than the baseline",
    )
    rounds: int | None = Field(
        default=None, ge=5, le=9999, description="without it as many as the budget holds"
    )

    relinks: bool = Field(
        default=False,
        description="each round on fresh relinks, also where the study's rounds have none",
    )
    attempt: int | None = Field(
        default=None,
        ge=1,
        le=20,
        description="the k-th attempt at one claim: 1 − level shrinks to its 2^k-th part, so that "
        "all attempts together err no more often than one would",
    )


class Race(Section):
    """Keys for measuring. `budget` is for all racing: pilots, rounds, checks, confirmation.

    With `confirm` the rounds explore only; without numbers half of the time is to confirm.
    """

    margin: OptionalShare = Field(
        default="1%", description='a smaller difference does not matter; "none" for no margin'
    )
    budget: Duration = Field(
        default="5m", description="racing time of the whole study, builds and checks excluded"
    )
    precision: Share | None = Field(
        default=None,
        description="half-width of the geometric means that suffices: rounds until it is reached",
    )
    stopping: Literal["fixed", "sequential"] = Field(
        default="fixed",
        description="fixed: rounds until the time is used or widths suffice, judged once; "
        "sequential: looked at as they come, ended when every variant is decided",
    )
    rounds: int | None = Field(
        default=None,
        ge=3,
        le=9999,
        description="executions of every workload: so many, with `precision` at least; without it "
        "as many as the budget holds",
    )
    executions: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="most executions of a workload in one of the `rounds`: the time that these "
        "leave of the budget goes to the workloads with the widest intervals (default: 1, on a "
        "cluster 8)",
    )
    warmup: int = Field(
        default=0, ge=0, le=999, description="unmeasured executions before the rounds"
    )
    prefer: Literal["mean", "robust"] = Field(
        default="mean",
        description="by what a winner is chosen: the mean of its layouts, or the worst of them",
    )
    confirm: Confirm | None = Field(
        default=None, description="explore with the rounds, then confirm the best afresh"
    )
    group_size: GroupSize = Field(
        default="auto",
        description="variants that race at a time, besides the baseline and its twin: so many, "
        "all, or as many as a rule of thumb says",
    )
    slice_check: list[str] = Field(
        default_factory=list,
        description="workloads raced again at four times the slice, to see whether ratios move",
    )
    slice: SliceText = Field(default="5ms", description="how long one variant runs at a time")
    slice_connections: Literal["fit", "all"] = Field(
        default="fit",
        description="of a drive's connections as many send in a slice as fill it, or all",
    )
    mode: Literal["interleaved", "driven", "alternating"] | None = Field(
        default=None,
        description="slices of loads or commands, slices of drives, or whole executions in turn; "
        "without it as the program's behavior asks for",
    )
    metric: Literal["cpu", "wall"] | None = Field(
        default=None,
        description="the cost compared; without it as the program's behavior asks for",
    )
    samples: bool = Field(
        default=False,
        description="look where programs stand at the ends of slices, and report CPU time by "
        "function",
    )
    level: Level = Field(default=0.95, description="confidence level of intervals")
    seed: int = Field(default=1, ge=0, description="decides all random orders")
    ports: PortRange = Field(
        default=(20_000, 29_999), description="first and last port that servers may get"
    )

    @property
    def cost(self) -> Metric:
        """The cost compared, where nothing asks for another."""
        return Metric(self.metric or Metric.CPU)

    @property
    def turns(self) -> Mode:
        """Way in which variants take turns, where nothing asks for another."""
        return Mode(self.mode or Mode.INTERLEAVED)
