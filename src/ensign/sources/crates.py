"""The crates that a Rust program is built from: fetched with its source, by its Cargo.lock.

Cargo holds each against its checksum in Cargo.lock. It is run outside of the tree, whose own
configuration says nothing then, and runs nothing of what it fetches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ensign.host.files import copy_tree, is_file
from ensign.host.regular_file import read_regular
from ensign.model.errors import InputError
from ensign.model.study_source import VENDORED, Source
from ensign.sources.downloads import Fetched, Fetcher, last_line

WITH_CRATES = "with-crates"
_KIND = "crates"
_MOST_BYTES = 16 << 20
_FROM_ELSEWHERE = re.compile(rb'^source = "', re.MULTILINE)
_REPLACED = re.compile(rb"^\s*replace-with\s*=", re.MULTILINE)
_CONFIGURATIONS = (".cargo/config.toml", ".cargo/config")


def with_crates(source: Source, fetched: Fetched, fetcher: Fetcher) -> Fetched:
    """The tree with the crates that its Cargo.lock names, where the source asks for them.

    InputError where there is no lock file, or a crate cannot be had. A project that brings its
    crates along is left as it is.
    """
    if source.crates is None:
        return fetched
    tree = fetcher.work / WITH_CRATES
    copy_tree(fetched.tree, tree, fetched.exclude)
    folder = tree / source.crates
    if not is_file(folder / "Cargo.toml"):
        raise InputError(f"the source has no {Path(source.crates) / 'Cargo.toml'} (build.folder)")
    # A member of a workspace has that of its workspace.
    above = (tree, *(tree / parent for parent in reversed(Path(source.crates).parents)), folder)
    lock = next(filter(None, (_text(path / "Cargo.lock") for path in reversed(above))), b"")
    if not lock:
        left = " (git ignores it: source.ignored = true takes it along)" * (
            "Cargo.lock" in fetched.left_behind
        )
        raise InputError(
            f"the source has no Cargo.lock, so the versions of its crates are not fixed{left}; "
            "run 'cargo generate-lockfile' in it, or add the file by a patch (source.apply)"
        )
    digest = hashlib.sha256(lock).hexdigest()
    place = tree / VENDORED
    if place.exists():
        raise InputError(f"the source has a '{VENDORED}' of its own, which ensign needs")
    own = any(_REPLACED.search(_text(tree / name)) for name in _CONFIGURATIONS)
    if own or not _FROM_ELSEWHERE.search(lock):
        place.mkdir()
        (place / "config.toml").write_text("")
    else:
        copy_tree(_fetched(folder, digest, fetcher), place)
    resolved = (*fetched.resolved, ("cargo_lock_sha256", digest))
    return replace(fetched, tree=tree, resolved=resolved, exclude=())


def _text(path: Path) -> bytes:
    """Content of a file; nothing where it is none, or a link."""
    try:
        return read_regular(path, _MOST_BYTES, follow=False)
    except OSError:
        return b""


def _fetched(folder: Path, digest: str, fetcher: Fetcher) -> Path:
    """The crates of a lock file of that hash, with the configuration that says where they are."""

    def fill(made: Path) -> Mapping[str, object]:
        crates, config = fetcher.work / VENDORED, fetcher.work / "config.toml"
        # Through a file, because the last bytes of what is printed are returned alone.
        outcome = fetcher.run(
            "sh", "-c", 'to=$1; shift; exec "$@" > "$to"', "sh", str(config),
            "cargo", "vendor", "--locked", "--versioned-dirs",
            "--manifest-path", str(folder / "Cargo.toml"), str(crates),
        )  # fmt: skip
        if outcome.exit == 127:  # noqa: PLR2004  # what a shell says of what is not there
            raise InputError(
                "the source's crates are fetched by cargo; run 'apt-get install cargo'"
            )
        if not outcome.ok:
            raise InputError(f"cargo cannot fetch the source's crates: {last_line(outcome)}")
        text = _text(config).decode(errors="replace").replace(str(crates), VENDORED)
        if f'"{VENDORED}"' not in text:
            raise InputError("cargo fetched the source's crates, but did not say where they are")
        copy_tree(crates, made / _KIND)
        (made / _KIND / "config.toml").write_text(text)
        return {"label": "crates"}

    entry = fetcher.cache.get(_KIND, digest)
    return (entry or fetcher.cache.make(_KIND, digest, fill)).folder / _KIND
