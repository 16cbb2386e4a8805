"""Sources of a study's program. Pure."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ensign.model.study_values import Argv, Duration, Inside, Reference, Sha256, SizeText
from ensign.model.validation import Section


class InputFile(Section):
    """A file that a command prints, that is at an address, or a wheel, pinned by its checksum.

    It is put below the study's folder, where the key of its table says, before anything is built;
    workloads name it by that path. A command runs in the study's folder, confined as a build is.
    """

    command: Argv | None = Field(default=None, description="prints the file's content")
    url: str | None = Field(
        default=None, description="https address, file address, or a path relative to the study"
    )
    wheel: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!_]+$",
        description="of the Python package index: NAME==VERSION, which pip fetches",
    )
    sha256: Sha256 = Field(description="of the file")
    limit: SizeText = Field(default="1GiB", description="most that it may have, or making it write")
    deadline: Duration = Field(default="10m", description="most that the command may take")

    @model_validator(mode="after")
    def _comes_from_somewhere(self) -> Self:
        if sum(way is not None for way in (self.command, self.url, self.wheel)) != 1:
            raise ValueError("say one of 'command', which prints it, 'url' and 'wheel'")
        return self


# Where a source tree has the crates that were fetched for it.
VENDORED = "ensign-crates"


class _Origin(Section):
    """Keys that all sources have."""

    apply: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="the study's own patches (patch -p1), relative to the study file",
    )
    crates: Inside | None = Field(
        default=None,
        description="folder of a Cargo.toml: the crates of its Cargo.lock are fetched, too "
        "(build.system 'cargo' asks for them by itself)",
    )
    limit: SizeText = Field(default="4GiB", description="most that fetching it may write")


class DebianSource(_Origin):
    """A Debian source package, pinned by the checksum of its upstream (`orig`) archive.

    A native package has one archive, which is pinned then, and its whole version.
    """

    kind: Literal["debian"] = Field(description="a Debian source package")
    package: Reference = Field(description="name of the source package")
    version: str = Field(description="upstream version; any Debian revision that carries it")
    sha256: Sha256 = Field(description="of the orig archive (or of a native package's own)")
    patches: bool = Field(default=False, description="apply Debian's patches")


class PathSource(_Origin):
    """A folder of this machine; its content is hashed, it is copied before it is built.

    Of a git work tree the files that git ignores are left out: they are what was built there.
    """

    kind: Literal["path"] = Field(description="a folder of this machine")
    path: str = Field(min_length=1, description="relative to the study file")
    exclude: list[str] = Field(default_factory=list, description="glob patterns left out")
    ignored: bool = Field(
        default=False, description="take files, too, that git ignores; else they stay behind"
    )


class GitSource(_Origin):
    """A git repository at a commit; `axes.revision` compares several."""

    kind: Literal["git"] = Field(description="a git repository")
    url: Reference = Field(description="address or path of the repository")
    commit: Reference = Field(
        default="HEAD",
        description="commit, tag or branch, whose commit the lock file pins (default: the one that "
        "the repository itself has checked out)",
    )


class ArchiveSource(_Origin):
    """An archive by address or path, pinned by its checksum."""

    kind: Literal["archive"] = Field(description="an archive")
    url: Reference = Field(
        description="https address, file address, or a path relative to the study"
    )
    sha256: Sha256 = Field(description="of the archive")
    strip: int = Field(default=1, ge=0, description="leading path components to drop")


Source = Annotated[
    DebianSource | PathSource | GitSource | ArchiveSource, Field(discriminator="kind")
]
