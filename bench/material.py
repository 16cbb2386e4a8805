"""Input files of the calibration: the same bytes on every machine."""

from __future__ import annotations

import random
from pathlib import Path

SIZE_BYTES = 4_000_000
_WORDS = 5000


def text(size_bytes: int, seed: int = 1) -> bytes:
    """Return text of invented words with a natural skew; gzip shrinks it to about a third."""
    source = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = [
        "".join(source.choices(letters, weights=range(26, 0, -1), k=source.randint(2, 10)))
        for _ in range(_WORDS)
    ]
    weights = [1 / (rank + 1) for rank in range(_WORDS)]
    parts: list[str] = []
    length = 0
    while length < size_bytes:
        chosen = source.choices(words, weights=weights, k=10_000)
        line = " ".join(chosen) + "\n"
        parts.append(line)
        length += len(line)
    return "".join(parts).encode()[:size_bytes]


def write_inputs(folder: Path) -> dict[str, Path]:
    """`base` of 4 MB, and `more1`, `more2` that have 1 % and 2 % more of the same text."""
    whole = text(round(SIZE_BYTES * 1.02))
    paths: dict[str, Path] = {}
    for name, factor in (("base", 1.0), ("more1", 1.01), ("more2", 1.02)):
        paths[name] = folder / name
        paths[name].write_bytes(whole[: round(SIZE_BYTES * factor)])
    return paths
