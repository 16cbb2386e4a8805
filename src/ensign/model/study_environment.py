"""Environments of a study: root directories in which programs are built, or run. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ensign.model.study_values import Sha256, SizeText
from ensign.model.validation import Section

HOST = "host"
_PLACE = "@"

EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.+-]*$", max_length=60)]
Suite = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=60)]
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$", max_length=100)]
_KINDS = ("debian", "directory", "archive")


class Environment(Section):
    """A root directory, one of three: a release of Debian, a directory, or an archive of one."""

    debian: Suite | None = Field(
        default=None, description="a release of Debian, such as bullseye; made once, then cached"
    )
    packages: list[Package] = Field(
        default_factory=list, description="Debian packages besides the minimal system"
    )
    directory: str | None = Field(
        default=None, min_length=1, description="a root directory, relative to the study file"
    )
    archive: str | None = Field(
        default=None, min_length=1, description="a tar archive of one, relative to the study file"
    )
    sha256: Sha256 | None = Field(default=None, description="of the archive")
    limit: SizeText = Field(default="8GiB", description="most that the root directory may have")

    @property
    def kind(self) -> str:
        """The first of the three keys that is named."""
        return next((kind for kind in _KINDS if getattr(self, kind) is not None), "")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Keys that are missing or contradict each other: the key, and what is wrong."""
        named = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if not named:
            yield "", "an environment needs 'debian', 'directory' or 'archive'"
        elif len(named) > 1:
            yield named[1], f"'{named[0]}' and '{named[1]}' are two environments; name them apart"
        if self.packages and self.debian is None:
            yield "packages", "'packages' are installed in a 'debian' alone"
        if self.archive is not None and self.sha256 is None:
            yield "archive", "'archive' needs its 'sha256', by which it is pinned"
        if self.sha256 is not None and self.archive is None:
            yield "sha256", "'sha256' is of an 'archive'"


def environment_of(compiler: str, usual: str) -> str:
    """Environment of a compiler such as gcc-9@bullseye; `usual` where it does not say.

    Empty for this machine.
    """
    name = compiler.partition(_PLACE)[2] or usual
    return "" if name == HOST else name


def program_of(compiler: str) -> str:
    """The name of the program: gcc-9 of gcc-9@bullseye."""
    return compiler.partition(_PLACE)[0]
