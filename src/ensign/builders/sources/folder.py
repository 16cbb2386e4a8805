"""Source trees of this machine."""

from __future__ import annotations

from ensign.builders.sources.fetched import Fetched, Fetcher
from ensign.model.errors import InputError
from ensign.model.study import PathSource

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
    return Fetched(tree, exclude=(*_NEVER, *own, *source.exclude))
