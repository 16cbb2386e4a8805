"""What a project's own configuration of Cargo gives to rustc, which RUSTFLAGS take the place of."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ensign.host.regular_file import read_regular

# Cargo reads those of the folder that it is started in, and of those above.
_FILES = (".cargo/config.toml", ".cargo/config")
_MOST_BYTES = 1 << 20
_LONGEST = 200


def own_rustflags(tree: Path) -> tuple[str, ...]:
    """Each place with its flags, such as `.cargo/config.toml: build.rustflags = -C lto=off`."""
    return tuple(line for name in _FILES for line in _of_file(tree, name))


def _of_file(tree: Path, name: str) -> Iterator[str]:
    try:
        text = read_regular(tree / name, _MOST_BYTES, follow=False).decode()
        content = tomllib.loads(text)
    except (OSError, ValueError, RecursionError):  # Cargo itself says what is wrong with it
        return
    build, target = content.get("build"), content.get("target")
    sections = {"build": build}
    if isinstance(target, Mapping):
        sections |= {f"target.{key}": section for key, section in target.items()}
    for key, section in sections.items():
        flags = section.get("rustflags") if isinstance(section, Mapping) else None
        words = flags if isinstance(flags, list) else [flags] if flags else []
        if words:
            said = " ".join(map(str, words))[:_LONGEST]
            yield f"{name}: {key}.rustflags = {said}"
