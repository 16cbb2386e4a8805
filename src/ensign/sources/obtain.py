"""Obtaining the source tree of a study: pinned by its lock file, from the cache where possible."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import Any

from ensign.host.cache import Cache
from ensign.host.entry import CacheChanged, Entry, Facts
from ensign.host.files import (
    copy_tree,
    file_sha256,
    remove_tree,
    tree_entries,
    tree_sha256,
    write_atomically,
)
from ensign.host.processes import Processes
from ensign.host.regular_file import read_json
from ensign.model.errors import InputError
from ensign.model.study_source import (
    VENDORED,
    ArchiveSource,
    DebianSource,
    GitSource,
    PathSource,
    Source,
)
from ensign.model.units import parse_size_bytes
from ensign.sources.archive import fetch_archive
from ensign.sources.checkouts import RUN_NOTHING, fetch_git
from ensign.sources.crates import WITH_CRATES, with_crates
from ensign.sources.debian import fetch_debian
from ensign.sources.downloads import Fetched, Fetcher, FetchLimits, last_line
from ensign.sources.environments import environments_in, read_pins

_TREE = "tree"
_UPDATE = "run again with --update-lock if that is intended"
_NEVER = (".git", ".ensign")


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
class Pin:
    """Resolution of a tree (its commit, its revision), and the tree's hash."""

    resolved: Mapping[str, str]
    tree_sha256: str

    def as_json(self) -> dict[str, object]:
        """The two keys of a lock file."""
        return {"resolved": dict(self.resolved), "tree_sha256": self.tree_sha256}


@dataclass(frozen=True, slots=True)
class Lock:
    """Content of a lock file: the request it answers, and a pin for each revision of the source.

    The revision "" is the source as its own table says it.
    """

    request: Mapping[str, object]
    pins: Mapping[str, Pin] = field(default_factory=dict)
    environments: Mapping[str, object] = field(default_factory=dict)

    def as_text(self) -> str:
        """Write it sorted, so that a change is a small diff."""
        plain = self.pins[""].as_json() if "" in self.pins else {}
        named = {name: pin.as_json() for name, pin in self.pins.items() if name}
        revisions = {"revisions": named} if named else {}
        environments = {"environments": dict(self.environments)} if self.environments else {}
        content = {
            "schema": 1,
            "request": dict(self.request),
            **plain,
            **revisions,
            **environments,
        }
        return json.dumps(content, indent=2, sort_keys=True) + "\n"


def lock_path(study: Path) -> Path:
    """Name the lock file beside a study file: `quick.toml` has `quick.lock.json`."""
    return study.with_name(f"{study.stem}.lock.json")


def read_lock(path: Path) -> Lock | None:
    """Read a lock file; None if there is none. InputError if it is not one."""
    try:
        content = read_json(path.read_text())
        environments = environments_in(content)
        if "request" not in content and environments:
            return None  # environments come before the source
        pins = {name: _pin(table) for name, table in content.get("revisions", {}).items()}
        if "tree_sha256" in content or not pins:
            pins[""] = _pin(content)
        return Lock(content["request"], pins, environments)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is not a lock file; remove it, and it is written anew") from None


def _pin(content: Mapping[str, Any]) -> Pin:
    return Pin(content["resolved"], str(content["tree_sha256"]))


def obtain(source: Source, study: Path, ports: SourcePorts, *, update_lock: bool) -> SourceTree:
    """Give the source tree that the lock file pins, or pin what is fetched if there is no lock.

    InputError if it cannot be had or is no longer what the lock file pins. A tree that is in the
    cache needs no network.
    """
    return obtain_revisions(source, ("",), study, ports, update_lock=update_lock)[""]


def obtain_revisions(
    source: Source,
    revisions: Sequence[str],
    study: Path,
    ports: SourcePorts,
    *,
    update_lock: bool,
) -> dict[str, SourceTree]:
    """The same for several revisions of a git source; "" is the commit that it names itself.

    A revision that the lock file does not know yet is pinned; pins of others stay.
    """
    path = lock_path(study)
    lock = None if update_lock else read_lock(path)
    request = request_of(source, study)
    if lock is not None and lock.request != request:
        raise InputError(f"[source] of {study} is not what {path.name} pins; {_UPDATE}")
    pins = {} if lock is None else dict(lock.pins)
    trees: dict[str, SourceTree] = {}
    with ports.cache.temporary() as work:
        for revision in revisions:
            asked = _at(source, revision)
            pin = pins.get(revision)
            entry = None
            if pin is not None and not isinstance(source, PathSource):
                entry = ports.cache.get("source", pin.tree_sha256, pinned=_TREE)
            left: tuple[str, ...] = ()
            if entry is None:
                limits = FetchLimits(parse_size_bytes(source.limit))
                resolved = {} if pin is None else pin.resolved
                fetcher = Fetcher(
                    ports.processes, ports.cache, ports.env, study, work, resolved, limits
                )
                entry, pins[revision], left = _fetched(asked, fetcher, pin)
            told = request if not revision else {**request, "commit": revision}
            trees[revision] = _tree(entry, told, pins[revision], left)
    fresh = Lock(request, pins, read_pins(path))
    changed = lock is None or dict(lock.pins) != pins
    if changed and read_lock_text(path) != fresh.as_text():
        write_atomically(path, fresh.as_text().encode())
    return trees


def _at(source: Source, revision: str) -> Source:
    if not revision:
        return source
    if not isinstance(source, GitSource):
        raise InputError(f"a source of kind {source.kind} has no revision '{revision}'")
    return source.model_copy(update={"commit": revision})


def _fetched(
    source: Source, fetcher: Fetcher, pin: Pin | None
) -> tuple[Entry[Facts], Pin, tuple[str, ...]]:
    """The tree in the cache, its pin, and what was left behind."""
    for name in ("tree", "patched", WITH_CRATES, VENDORED):
        remove_tree(fetcher.work / name)
    fetched = patched(source, _fetch(source, fetcher), fetcher)
    fetched = with_crates(source, fetched, fetcher)
    digest = tree_sha256(fetched.tree, fetched.exclude)
    if pin is not None and pin.tree_sha256 != digest:
        written = lock_path(fetcher.study)
        raise InputError(f"the source has changed since {written} was written; {_UPDATE}")
    entry = fetcher.cache.get("source", digest, pinned=_TREE)
    entry = entry or _keep(fetched, digest, fetcher.cache)
    return entry, pin or Pin(dict(fetched.resolved), digest), fetched.left_behind


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
    pin: Pin,
    left_behind: tuple[str, ...] = (),
) -> SourceTree:
    asked = [(name, str(value)) for name, value in request.items()]
    facts = (*asked, *sorted(pin.resolved.items()), ("tree_sha256", entry.key))
    return SourceTree(entry.folder / _TREE, entry.key, facts, left_behind)


def fetch_folder(source: PathSource, fetcher: Fetcher) -> Fetched:
    """Name the folder; it is hashed and copied by the caller. InputError if there is none.

    The study file and its lock are no part of the source, so that they may lie in it.
    """
    tree = (fetcher.study.parent / source.path).resolve()
    if not tree.is_dir():
        raise InputError(f"the source folder {tree} is not there (source.path, from the study)")
    cache = fetcher.cache.folder.resolve()
    if cache.is_relative_to(tree):
        raise InputError(
            f"the cache {cache} lies in the source {tree}: set ENSIGN_CACHE to a folder elsewhere"
        )
    own = (fetcher.study.name, f"{fetcher.study.stem}.lock.json")
    named = (*_NEVER, *own, *source.exclude)
    left = () if source.ignored else tuple(_ignored(tree, fetcher))
    return Fetched(tree, exclude=(*named, *(f"/{escape(name)}" for name in left)), left_behind=left)


def _ignored(tree: Path, fetcher: Fetcher) -> Iterator[str]:
    """Files and folders that git ignores, also those of repositories below; none without git."""
    repositories = [tree]
    repositories += [path.parent for _, path in tree_entries(tree) if path.name == ".git"]
    for root in dict.fromkeys(repositories):
        output = fetcher.work / "ignored"
        listing = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
        git = (*RUN_NOTHING, "-C", str(root), *listing)
        command = 'to=$1; shift; exec git "$@" > "$to"'
        outcome = fetcher.run("sh", "-c", command, "sh", str(output), *git)
        names = os.fsdecode(output.read_bytes()).split("\0") if outcome.ok else []
        # A folder that is itself ignored by a repository around it is not that one's source.
        if "./" not in names:
            yield from (str((root / name).relative_to(tree)) for name in names if name)


def request_of(source: Source, study: Path) -> dict[str, object]:
    """The source as it is asked for, with the content of its patches: what a lock file pins.

    InputError where a patch is not there.
    """
    request = source.model_dump(mode="json", exclude={"apply", "limit"})
    if not request.get("ignored", True):
        del request["ignored"]  # locks were written before there was such a key
    if request.get("crates") is None:
        request.pop("crates", None)
    return {**request, "apply": dict(_hashes(source, study))} if source.apply else request


def _hashes(source: Source, study: Path) -> Mapping[str, str]:
    hashes = {}
    for name in source.apply:
        path = study.parent / name
        if not path.is_file():
            raise InputError(f"source.apply: there is no patch {path}")
        hashes[name] = file_sha256(path)
    return hashes


def patched(source: Source, fetched: Fetched, fetcher: Fetcher) -> Fetched:
    """The tree with the study's patches, in their order; InputError where one does not fit."""
    if not source.apply:
        return fetched
    tree = fetcher.work / "patched"
    copy_tree(fetched.tree, tree, fetched.exclude)
    for name in source.apply:
        path = (fetcher.study.parent / name).resolve()
        outcome = fetcher.run(
            "patch", "--batch", "--forward", "--no-backup-if-mismatch", "--fuzz=0", "-p1",
            "-d", str(tree), "-i", str(path),
        )  # fmt: skip
        if outcome.reason == "not-found":
            raise InputError("source.apply needs patch; run 'apt-get install patch'")
        if not outcome.ok:
            raise InputError(f"the patch {name} does not fit the source: {last_line(outcome)}")
    return replace(fetched, tree=tree, exclude=())
