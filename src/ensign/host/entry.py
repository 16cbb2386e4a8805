"""An entry of the cache, and what is recorded of it in its `meta.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from ensign.host.files import tree_size_bytes, write_atomically
from ensign.host.json_text import read_json
from ensign.host.regular_file import read_regular
from ensign.host.seal import Contents, contents_of, make_read_only, seal_of
from ensign.model.errors import CommandFailed

Facts = Mapping[str, object]
F = TypeVar("F")

META = "meta.json"
USED = "used"
OWN_FILES = (META, USED)
_LARGEST_META_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Entry(Generic[F]):
    """Something in the cache. `facts` is what its maker recorded, `folder` where its files are.

    `contents` has the SHA-256 of each file and tree in it, as they were when they were made.
    """

    kind: str
    key: str
    folder: Path
    facts: F
    size_bytes: int
    contents: Contents = field(default_factory=dict)


class CacheChanged(CommandFailed):
    """Something else wrote to an entry between two uses of it; made again, it is as it was."""


@dataclass(frozen=True, slots=True)
class Meta(Generic[F]):
    """What is recorded of an entry; see `Entry`."""

    facts: F
    size_bytes: int
    contents: Contents


def finish(folder: Path, kind: str, key: str, facts: Facts) -> Contents:
    """Make what was put into a folder an entry: read-only, with its hashes on record."""
    size_bytes = tree_size_bytes(folder)
    make_read_only(folder, OWN_FILES)
    contents = contents_of(folder, OWN_FILES)
    said: dict[str, object] = {
        "kind": kind,
        "key": key,
        "size_bytes": size_bytes,
        "contents": contents,
        "facts": facts,
    }
    text = json.dumps({**said, "seal": seal_of(said)}, indent=1, sort_keys=True) + "\n"
    write_atomically(folder / META, text.encode())
    write_atomically(folder / USED, b"")
    return contents


def read_meta(folder: Path, read: Callable[[Facts], F]) -> Meta[F] | None:
    """What is recorded of an entry; None where that is damaged, or `read` raises ValueError."""
    try:
        content = _content(folder)
        if content.pop("seal") != seal_of(content):
            return None
        return Meta(read(content["facts"]), int(content["size_bytes"]), content["contents"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def size_of(folder: Path) -> int:
    """The size in bytes that is on record. OSError, ValueError, KeyError, TypeError."""
    return int(_content(folder)["size_bytes"])


def _content(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(
        read_regular(folder / META, _LARGEST_META_BYTES, follow=False)
    )
    return found
