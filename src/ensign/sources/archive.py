"""Archives by address or path, pinned by checksum."""

from __future__ import annotations

import shutil
import urllib.parse
import urllib.request
from pathlib import Path

from ensign.host.files import file_sha256, storage_errors
from ensign.model.errors import InputError
from ensign.model.study_source import ArchiveSource
from ensign.sources.download import download
from ensign.sources.fetched import Fetched, Fetcher, too_large
from ensign.sources.unpack import unpack


def fetch_archive(source: ArchiveSource, fetcher: Fetcher) -> Fetched:
    """Fetch, check and unpack an archive. InputError if it is not what the checksum says."""
    file = fetch_file(source.url, source.sha256, fetcher)
    tree = fetcher.work / "tree"
    unpack(file, tree, source.strip, source.url)
    return Fetched(tree)


def fetch_file(url: str, sha256: str, fetcher: Fetcher) -> Path:
    """A file of that content in the cache. InputError if it is not what the checksum says."""
    file = fetcher.cached_download(sha256)
    if file is not None:
        return file
    file = fetcher.work / (Path(urllib.parse.urlsplit(url).path).name or "archive")
    _get(url, fetcher, file)
    check_sha256(file, sha256, url)
    return fetcher.keep_download(sha256, file)


def check_sha256(file: Path, wanted: str, title: str) -> None:
    """InputError if a file has another SHA-256."""
    found = file_sha256(file)
    if found != wanted:
        raise InputError(f"{title} has the SHA-256 {found}, but the study wants {wanted}")


def _get(url: str, fetcher: Fetcher, target: Path) -> None:
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme == "https":
        download(url, target, fetcher.limits)
        return
    if scheme not in ("", "file"):
        raise InputError(f"{url}: only https and file addresses, and paths, can be fetched")
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)) if scheme else None
    path = path or fetcher.study.parent / url
    if not path.is_file():  # a device has no end, a pipe no beginning
        raise InputError(f"the archive {path} is not there")
    if path.stat().st_size > fetcher.limits.size_bytes:
        raise too_large(str(path), fetcher.limits)
    with storage_errors(target):
        shutil.copyfile(path, target)
