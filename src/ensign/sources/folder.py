"""Source trees of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import escape
from pathlib import Path

from ensign.host.files import tree_entries
from ensign.model.errors import InputError
from ensign.model.study_source import PathSource
from ensign.sources.checkouts import RUN_NOTHING
from ensign.sources.fetched import Fetched, Fetcher

_NEVER = (".git", ".ensign")


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
        found = fetcher.work / "ignored"
        listing = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
        git = (*RUN_NOTHING, "-C", str(root), *listing)
        command = 'to=$1; shift; exec git "$@" > "$to"'
        outcome = fetcher.run("sh", "-c", command, "sh", str(found), *git)
        names = os.fsdecode(found.read_bytes()).split("\0") if outcome.ok else []
        # A folder that is itself ignored by a repository around it is not that one's source.
        if "./" not in names:
            yield from (str((root / name).relative_to(tree)) for name in names if name)
