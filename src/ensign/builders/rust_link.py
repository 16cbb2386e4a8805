"""The call of a linker that rustc made by itself, by doing rustc's recorded call once more."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path, PurePosixPath

from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.model.calls import Call
from ensign.proof.link import TreePlace

LINK_ARGS = "link-args"
_LONGEST_BYTES = 1 << 24
_ASSIGNED = re.compile(r"[A-Z_]+=.*", re.DOTALL)
_USED = re.compile(r"# env-dep:(\w+)=(.*)")
_EMIT = re.compile(r"--emit=.*")


def objects_kept(call: Call, folder: str) -> tuple[str, ...]:
    """The same call, which leaves objects in `folder`, and the linker's words in its `LINK_ARGS`.

    The program there has the name `program`.
    """
    words = list(call.ran[1:])
    split = {at for at, pair in enumerate(pairwise(words)) if pair[0] == "--emit"}
    kept = [
        word
        for at, word in enumerate(words)
        if at not in split and at - 1 not in split and not _EMIT.fullmatch(word)
    ]
    keep = ("-Csave-temps", f"--print=link-args={folder}/{LINK_ARGS}", "-o", f"{folder}/program")
    return (call.program, *kept, "--emit=link", *keep)


def used_variables(call: Call, place: TreePlace) -> tuple[str, ...]:
    """What Cargo set for the crate, and what it read (`env!`), by rustc's own list."""
    found = dict(each.split("=", 1) for each in call.variables)
    for output in call.outputs:
        try:
            path = place.find(f"{output.path}.d", call.cwd)
            text = read_foreign(path, _LONGEST_BYTES).decode(errors="replace")
        except HostileFileError:
            continue
        found.update((name, _unescaped(value)) for name, value in _USED.findall(text))
    return tuple(f"{name}={value}" for name, value in found.items())


def linker_words(text: str, recorder: str) -> tuple[str, ...]:
    """The linker's call, of rustc's text. One behind the recorder is called by its own name."""
    words = shlex.split(text)
    while words and _ASSIGNED.fullmatch(words[0]):
        del words[0]
    if words and recorder and words[0].startswith(f"{recorder}/"):
        words[0] = PurePosixPath(words[0]).name
    return tuple(words)


def read_linker_words(folder: Path, recorder: str) -> tuple[str, ...]:
    """What the repeated call left of it; nothing where it left nothing readable."""
    try:
        text = read_foreign(folder / LINK_ARGS, _LONGEST_BYTES).decode()
        return linker_words(text, recorder)
    except (HostileFileError, ValueError):
        return ()


def _unescaped(value: str) -> str:
    return value.replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\")
