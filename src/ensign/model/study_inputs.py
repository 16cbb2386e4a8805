"""Files that a study's workloads read, and that are not beside it: made or fetched. Pure."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from ensign.model.study_axes import Section
from ensign.model.study_values import Argv, Duration, Sha256, SizeText


class InputFile(Section):
    """A file that a command prints, or that is at an address, pinned by its checksum.

    It is put below the study's folder, where the key of its table says, before anything is built;
    workloads name it by that path. A command runs in the study's folder, confined as a build is.
    """

    command: Argv | None = Field(default=None, description="prints the file's content")
    url: str | None = Field(
        default=None, description="https address, file address, or a path relative to the study"
    )
    sha256: Sha256 = Field(description="of the file")
    limit: SizeText = Field(default="1GiB", description="most that it may have, or making it write")
    deadline: Duration = Field(default="10m", description="most that the command may take")

    @model_validator(mode="after")
    def _comes_from_somewhere(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("say 'command', which prints it, or 'url', where it is")
        return self
