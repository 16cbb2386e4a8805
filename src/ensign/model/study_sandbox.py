"""What programs of a study may reach of the machine. Pure."""

from __future__ import annotations

from pydantic import Field

from ensign.model.study_axes import Section
from ensign.model.study_values import PathText, SizeText, VariableName


class SandboxSection(Section):
    """What builds, checks, training and races may reach of the machine.

    They see it read-only, without home folders, `/tmp`, `/run`, network and other processes; what
    they need of that is named here. Paths are relative to the study's folder. An environment is
    made for them; of the caller's variables they get PATH and those that are named.
    """

    read: list[PathText] = Field(
        default_factory=list, description="files and folders that they may read besides"
    )
    write: list[PathText] = Field(
        default_factory=list, description="files and folders that they may change"
    )
    network: bool = Field(default=False, description="they may use the machine's network")
    env: list[VariableName] = Field(
        default_factory=list, description="the caller's variables that they get"
    )
    memory: SizeText | None = Field(
        default=None,
        description="most that one command may use, with all that it starts; without it 90 % of "
        "the machine's",
    )
    processes: int = Field(
        default=4096, ge=16, le=4_000_000, description="most of them at a time, per command"
    )
    disk: SizeText = Field(
        default="4GiB", description="most that one program may write below `{tmp}` in a race"
    )
    confined: bool = Field(
        default=True, description="false: they run as they are, with all rights of the caller"
    )
