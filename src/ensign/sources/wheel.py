"""A wheel of the Python package index, fetched as data: nothing of it is installed or run."""

from __future__ import annotations

import sys
from pathlib import Path

from ensign.model.errors import InputError
from ensign.sources.archive import check_sha256
from ensign.sources.downloads import Fetcher, last_line


def fetch_wheel(package: str, version: str, sha256: str, fetcher: Fetcher) -> Path:
    """The wheel of that checksum, from the cache where it is. InputError if it cannot be had.

    pip downloads it, so that the user's own index and proxies are used.
    """
    file = fetcher.cached_download(sha256)
    if file is not None:
        return file
    pinned = f"{package}=={version}"
    options = ("--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet")
    outcome = fetcher.run(
        sys.executable, "-m", "pip", "download", *options, "--dest", str(fetcher.work), pinned
    )
    if not outcome.ok:
        raise InputError(f"cannot fetch {pinned}: {last_line(outcome)}")
    wheels = sorted(fetcher.work.glob("*.whl"))
    if len(wheels) != 1:
        raise InputError(f"cannot fetch {pinned}: pip left {len(wheels)} wheels")
    check_sha256(wheels[0], sha256, pinned)
    return fetcher.keep_download(sha256, wheels[0])
