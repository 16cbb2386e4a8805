"""What fetching a source needs and gives, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.cache import Cache
from ensign.host.processes import Outcome, Processes, ProcessRequest

_DEADLINE_NS = 15 * 60 * 10**9


@dataclass(frozen=True, slots=True)
class Fetcher:
    """What a source is fetched with: `study` is the study file, `env` the caller's environment.

    `work` is an empty folder for the fetcher's use, `pinned` what the lock file resolved earlier.
    """

    processes: Processes
    cache: Cache
    env: Mapping[str, str]
    study: Path
    work: Path
    pinned: Mapping[str, str]

    def run(self, *argv: str, cwd: Path | None = None) -> Outcome:
        """Run a program of the system, with the caller's environment (proxies, keys)."""
        env = {**self.env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        return self.processes.run(
            ProcessRequest(argv, env, cwd or self.work, deadline_ns=_DEADLINE_NS)
        )

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


def last_line(outcome: Outcome) -> str:
    """Say why a program failed, in one line."""
    lines = [line for line in outcome.tail.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "fatal:", "error:"))]
    return (errors or lines or [outcome.describe()])[-1].strip()
