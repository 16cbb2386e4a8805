"""Names of commands by what differs between them: `-6` and `-5`, `v1.0.1` and `v1.0.0`. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from ensign.model.quoting import distinct_short

LONGEST = 20
_KEY = re.compile(r"([\w-]+)=[^=]*$")
_ENV = "env"

Words = Sequence[str]


def command_names(commands: Sequence[str]) -> tuple[str, ...]:
    """A name for each, of 20 characters at most; equal commands have equal names.

    Commands that are all short are their own names.
    """
    if all(len(each) <= LONGEST for each in commands):
        return tuple(commands)
    different = tuple(dict.fromkeys(commands))
    if len(different) == 1:
        (program, *_) = [*_words(commands[0]), commands[0]]
        return distinct_short((PurePosixPath(program).name or program,), LONGEST) * len(commands)
    found = _by_what_differs(different)
    if len(set(found)) < len(different) or not all(found):
        found = different
    short = dict(zip(different, distinct_short(found, LONGEST), strict=True))
    return tuple(short[each] for each in commands)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _by_what_differs(texts: Sequence[str]) -> tuple[str, ...]:
    own = _own_words([_words(each) for each in texts])
    if len({*map(len, own)}) == 1:
        places = [_refined(words) for words in zip(*own, strict=True)]
        return tuple(" ".join(filter(None, parts)) for parts in zip(*places, strict=True))
    named = [" ".join(map(_assigned, _without_env(words))) for words in own]
    keys = {_key(words[0]) for words in map(_without_env, own) if words}
    nothing = f"no {keys.pop()}" if len(keys) == 1 else "none"
    return tuple(each or nothing for each in named)


def _own_words(commands: Sequence[Words]) -> list[list[str]]:
    """The words of each that are not, in the same order, in all of them."""
    common = list(commands[0])
    for words in commands[1:]:
        blocks = SequenceMatcher(None, common, words, autojunk=False).get_matching_blocks()
        common = [word for block in blocks for word in common[block.a : block.a + block.size]]
    return [_without(words, common) for words in commands]


def _without(words: Words, common: Words) -> list[str]:
    left = list(common)
    own = []
    for word in words:
        if left and word == left[0]:
            left.pop(0)
        else:
            own.append(word)
    return own


def _refined(words: Words) -> Sequence[str]:
    """The part of each word in which they differ: of scripts their words, of paths their parts."""
    if len({*words}) == 1:
        return [""] * len(words)
    if any(re.search(r"\s", each.strip()) for each in words):
        inner = _by_what_differs(words)
        return inner if all(inner) else words
    if all("/" in each for each in words):
        parts = _middles([each.split("/") for each in words])
        return ["/".join(each) for each in parts] if all(parts) else words
    return list(map(_assigned, words))


def _middles(paths: Sequence[Words]) -> list[Words]:
    """Without the parts that all begin with, and those that all end with."""
    shortest = min(map(len, paths))
    first = _equal(paths, shortest, lambda path, index: path[index])
    last = _equal(paths, shortest - first, lambda path, index: path[-1 - index])
    return [path[first : len(path) - last] for path in paths]


def _equal(paths: Sequence[Words], most: int, part: Callable[[Words, int], str]) -> int:
    differing = (n for n in range(most) if len({part(path, n) for path in paths}) > 1)
    return next(differing, most)


def _without_env(words: Words) -> Words:
    return words[1:] if len(words) > 1 and words[0] == _ENV else words


def _assigned(word: str) -> str:
    """Of a long setting, `GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2`, its last name and the value."""
    found = _KEY.search(word)
    return word if found is None or len(word) <= LONGEST else found[0].lstrip("-")


def _key(word: str) -> str:
    found = _KEY.search(word)
    return word if found is None else found[1]
