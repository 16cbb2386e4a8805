"""Needs and results of fetching a source, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.cache import Cache
from ensign.host.disk_watch import DiskLimit
from ensign.host.processes import Outcome, Processes, ProcessRequest
from ensign.model.errors import InputError
from ensign.model.units import format_size

# Variables by which git works on another repository than the one it is told.
OF_A_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_ALLOW_PROTOCOL",
)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of fetching: bytes on disk, and seconds for each program or download."""

    size_bytes: int = 4 << 30
    total_s: float = 3600.0


NO_OTHER_LIMITS = FetchLimits()


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Context of fetching: `study` is the study file, `env` the caller's environment.

    `work` is an empty folder for the fetcher's use, `pinned` what the lock file resolved earlier.
    """

    processes: Processes
    cache: Cache
    env: Mapping[str, str]
    study: Path
    work: Path
    pinned: Mapping[str, str]
    limits: FetchLimits = NO_OTHER_LIMITS

    def run(self, *argv: str, env: Mapping[str, str] | None = None) -> Outcome:
        """Run a program of the system, with the caller's environment (proxies, keys), and `env`.

        Nobody is asked for a password. InputError where it wrote more than the source may have.
        """
        own = {name: text for name, text in self.env.items() if name not in OF_A_REPOSITORY}
        unasked = {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never"}
        outcome = self.processes.run(
            ProcessRequest(
                argv,
                {**own, "LC_ALL": "C", **unasked, **(env or {})},
                self.work,
                deadline_ns=round(self.limits.total_s * 1e9),
                disk=DiskLimit((self.work,), self.limits.size_bytes, 0),
            )
        )
        if outcome.reason == "disk":
            raise too_large(f"what '{argv[0]}' fetched", self.limits)
        return outcome

    def cached_download(self, sha256: str) -> Path | None:
        """Return a file of that content that was downloaded earlier."""
        entry = self.cache.get("download", sha256, pinned="file")
        return None if entry is None else entry.folder / "file"

    def keep_download(self, sha256: str, file: Path) -> Path:
        """Move a downloaded file, whose content was checked, into the cache."""

        def fill(folder: Path) -> dict[str, object]:
            file.rename(folder / "file")
            return {"label": file.name}

        return self.cache.make("download", sha256, fill).folder / "file"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A source tree, and what was resolved on the way (revision, commit): pairs for the lock.

    `exclude` has glob patterns of what in `tree` does not belong to the source; `left_behind` are
    files among it that git ignores.
    """

    tree: Path
    resolved: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    left_behind: tuple[str, ...] = ()


def too_large(what: str, limits: FetchLimits) -> InputError:
    """Message where more came than a source may have."""
    most = format_size(limits.size_bytes)
    return InputError(f"{what} is larger than {most}, which is what 'source.limit' allows")


def last_line(outcome: Outcome) -> str:
    """Say why a program failed, in one line."""
    lines = [line for line in outcome.tail.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "fatal:", "error:"))]
    return (errors or lines or [outcome.describe()])[-1].strip()
