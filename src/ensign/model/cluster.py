"""Where a study is raced on many hosts: the table `[cluster]` of a study, or a file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ensign.model.study_values import Duration, SizeText
from ensign.model.validation import Section

# They become lines of a batch script.
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,@:+-]*$", max_length=200)]
Features = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9(\[!][A-Za-z0-9_.,:=@+&|()\[\]*!-]*$", max_length=200)
]
NodeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
KindName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.+-]*$", max_length=60)]


class Placement(Section):
    """Where jobs go, in Slurm's words; what is not said here, the whole cluster's table says."""

    partition: Word | None = Field(default=None, description="Slurm's partition")
    account: Word | None = Field(default=None, description="whom the time is charged to")
    qos: Word | None = Field(default=None, description="quality of service")
    constraint: Features | None = Field(
        default=None, description="features of a node (sbatch --constraint)"
    )


class BuildJobs(Placement):
    """Builds: they run anywhere, and fill the cache that all nodes share."""

    jobs: int = Field(default=1, ge=1, le=1000, description="jobs among which builds are dealt")
    cpus: int | None = Field(default=None, ge=1, description="CPUs of each; else the whole node")
    memory: SizeText | None = Field(default=None, description="memory of each")
    time_limit: Duration = Field(default="4h", description="most that one may take")

    def parts(self, variants: int) -> int:
        """Number of jobs among which so many variants are dealt; each builds the baseline, too."""
        return max(1, min(self.jobs, variants - 1))


class HostGroup(Placement):
    """Hosts of one kind: named nodes, or how many, wherever Slurm has them."""

    nodes: list[NodeName] = Field(default_factory=list, description="these nodes")
    count: int | None = Field(default=None, ge=1, le=1000, description="so many different nodes")
    share: float | None = Field(
        default=None, gt=0, description="share of the fleet; shares count relative to each other"
    )

    @property
    def size(self) -> int:
        """Number of hosts."""
        return len(self.nodes) or self.count or 0

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if bool(self.nodes) == (self.count is not None):
            raise ValueError("say one of 'nodes', which names them, and 'count'")
        return self


@dataclass(frozen=True, slots=True)
class HostSlot:
    """One host of a kind: its node, or `KIND-NUMBER` where Slurm chooses that at the first job."""

    name: str
    kind: str
    node: str


class Cluster(Placement):
    """Hosts on which a study is raced, and jobs that do it."""

    time_limit: Duration = Field(
        default="8h", description="most that a job may race; another one goes on from there"
    )
    patience: Duration = Field(
        default="1h", description="wait so long for a host after all others have ended"
    )
    on_interrupt: Literal["leave", "cancel"] = Field(
        default="leave", description="what Ctrl-C does with jobs"
    )
    builds: BuildJobs = Field(default=BuildJobs(), description="jobs that build")
    hosts: dict[KindName, HostGroup] = Field(
        min_length=1, description="kinds of hosts, and hosts of each"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        names = [slot.name for slot in self.slots]
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise ValueError(f"'{twice}' is two hosts")
        have_share = [group.share is not None for group in self.hosts.values()]
        if any(have_share) and not all(have_share):
            raise ValueError("give each kind a 'share', or none")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """Share of each kind; none where they are equal."""
        return {name: group.share for name, group in self.hosts.items() if group.share is not None}

    @property
    def slots(self) -> tuple[HostSlot, ...]:
        """Every host, in the order of kinds."""
        return tuple(
            HostSlot(node or f"{kind}-{number}", kind, node)
            for kind, group in self.hosts.items()
            for number, node in enumerate(group.nodes or [""] * group.size, start=1)
        )

    def placement(self, of: Placement) -> dict[str, str]:
        """Slurm's words for jobs of a group: its own, else the cluster's."""
        names = ("partition", "account", "qos", "constraint")
        merged = {name: getattr(of, name) or getattr(self, name) for name in names}
        return {name: value for name, value in merged.items() if value}


class ClusterFile(Section):
    """A file that has the table `[cluster]`, or is one."""

    cluster: Cluster
