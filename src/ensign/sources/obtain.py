"""Obtaining the source tree of a study: pinned by its lock file, from the cache where possible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.cache import Cache
from ensign.host.entry import CacheChanged, Entry, Facts
from ensign.host.files import copy_tree, tree_sha256, write_atomically
from ensign.host.json_text import read_json
from ensign.host.processes import Processes
from ensign.model.errors import InputError
from ensign.model.study_source import ArchiveSource, DebianSource, GitSource, PathSource, Source
from ensign.model.units import parse_size_bytes
from ensign.sources.archive import fetch_archive
from ensign.sources.crates import with_crates
from ensign.sources.debian import fetch_debian
from ensign.sources.fetched import Fetched, Fetcher, FetchLimits
from ensign.sources.folder import fetch_folder
from ensign.sources.git import fetch_git
from ensign.sources.patches import patched, request_of

_TREE = "tree"
_UPDATE = "run again with --update-lock if that is intended"


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """The effects that fetching needs; `env` is the caller's environment."""

    processes: Processes
    cache: Cache
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A pristine source tree in the cache. `facts` are ordered pairs for people and the report.

    `left_behind` are files of the folder that git ignores and that are not in it.
    """

    tree: Path
    sha256: str
    facts: tuple[tuple[str, str], ...]
    left_behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """What a lock file says: the request it answers, what was resolved, the tree's hash."""

    request: Mapping[str, object]
    resolved: Mapping[str, str]
    tree_sha256: str

    def as_text(self) -> str:
        """Write it sorted, so that a change is a small diff."""
        content = {
            "schema": 1,
            "request": dict(self.request),
            "resolved": dict(self.resolved),
            "tree_sha256": self.tree_sha256,
        }
        return json.dumps(content, indent=2, sort_keys=True) + "\n"


def lock_path(study: Path) -> Path:
    """Name the lock file beside a study file: `quick.toml` has `quick.lock.json`."""
    return study.with_name(f"{study.stem}.lock.json")


def read_lock(path: Path) -> Lock | None:
    """Read a lock file; None if there is none. InputError if it is not one."""
    try:
        content = read_json(path.read_text())
        return Lock(content["request"], content["resolved"], str(content["tree_sha256"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not a lock file; remove it, and it is written anew") from None


def obtain(source: Source, study: Path, ports: SourcePorts, *, update_lock: bool) -> SourceTree:
    """Give the source tree that the lock file pins, or pin what is fetched if there is no lock.

    InputError if it cannot be had or is no longer what the lock file pins. A tree that is in the
    cache needs no network.
    """
    path = lock_path(study)
    lock = None if update_lock else read_lock(path)
    request = request_of(source, study)
    if lock is not None and lock.request != request:
        raise InputError(f"[source] of {study} is not what {path.name} pins; {_UPDATE}")
    if lock is not None and not isinstance(source, PathSource):
        entry = ports.cache.get("source", lock.tree_sha256, pinned=_TREE)
        if entry is not None:
            return _tree(entry, request, lock)
    with ports.cache.temporary() as work:
        pinned = {} if lock is None else lock.resolved
        limits = FetchLimits(parse_size_bytes(source.limit))
        fetcher = Fetcher(ports.processes, ports.cache, ports.env, study, work, pinned, limits)
        fetched = patched(source, _fetch(source, fetcher), fetcher)
        fetched = with_crates(source, fetched, fetcher)
        digest = tree_sha256(fetched.tree, fetched.exclude)
        if lock is not None and lock.tree_sha256 != digest:
            raise InputError(f"the source has changed since {path} was written; {_UPDATE}")
        entry = ports.cache.get("source", digest, pinned=_TREE)
        entry = entry or _keep(fetched, digest, ports.cache)
    fresh = Lock(request, dict(fetched.resolved), digest)
    if lock is None and read_lock_text(path) != fresh.as_text():
        write_atomically(path, fresh.as_text().encode())
    return _tree(entry, request, lock or fresh, fetched.left_behind)


def read_lock_text(path: Path) -> str:
    """Read the text of a lock file; empty if there is none."""
    return path.read_text() if path.exists() else ""


def _fetch(source: Source, fetcher: Fetcher) -> Fetched:
    match source:
        case DebianSource():
            return fetch_debian(source, fetcher)
        case PathSource():
            return fetch_folder(source, fetcher)
        case GitSource():
            return fetch_git(source, fetcher)
        case ArchiveSource():
            return fetch_archive(source, fetcher)


def _keep(fetched: Fetched, digest: str, cache: Cache) -> Entry[Facts]:
    def fill(folder: Path) -> Mapping[str, object]:
        copy_tree(fetched.tree, folder / _TREE, fetched.exclude)
        if tree_sha256(folder / _TREE) != digest:
            raise InputError(f"the source {fetched.tree} changed while it was copied; run again")
        return {"label": "source"}

    cache.make("source", digest, fill)
    entry = cache.get("source", digest, pinned=_TREE)
    if entry is None:
        raise CacheChanged(f"the source {digest[:12]} was changed as soon as it was in the cache")
    return entry


def _tree(
    entry: Entry[Facts],
    request: Mapping[str, object],
    lock: Lock,
    left_behind: tuple[str, ...] = (),
) -> SourceTree:
    asked = [(name, str(value)) for name, value in request.items()]
    facts = (*asked, *sorted(lock.resolved.items()), ("tree_sha256", entry.key))
    return SourceTree(entry.folder / _TREE, entry.key, facts, left_behind)
