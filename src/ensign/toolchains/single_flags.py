"""Single flags behind levels and targets: GCC says its own, of Clang there is a table. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

# What it prints of flags, parameters and instructions, each beside its value.
QUESTION = ("-Q", "--help=optimizers", "--help=params", "--help=target")
_LINE = re.compile(r"^  (--param=[\w-]+|-[fm][\w.+-]+)(=?)(?:[\[<]\S*)?\s+(\S+)$", re.MULTILINE)
_SWITCHED = {"[enabled]": True, "[disabled]": False}
_CHOICE_ITSELF = "-march"
# Without a profile they mean nothing, so they cannot be given to the end that has none.
_NO_PROFILE = {"-fno-branch-probabilities", "-fno-vpt", "-fno-profile-reorder-functions"}
_NEGATED = ("-fno-", "-mno-")
# By setting and level: the option that sets it at that level, and its value there (LLVM's
# InlineCost.h and LoopUnrollPass.cpp, `shouldEnableVectorizerAtOLevel` of Clang's driver).
_INLINE, _UNROLL = "-mllvm -inline-threshold=", "-mllvm -unroll-threshold-"
_OF_CLANG: tuple[dict[str, tuple[str, str]], ...] = (
    {"-O2": (_INLINE, "225"), "-O3": (_INLINE, "250")},
    {
        "-O1": (f"{_UNROLL}default=", "150"),
        "-O2": (f"{_UNROLL}default=", "150"),
        "-O3": (f"{_UNROLL}aggressive=", "300"),
    },
    {"-O1": ("-f", "no-vectorize"), "-O2": ("-f", "vectorize"), "-O3": ("-f", "vectorize")},
    {
        "-O1": ("-f", "no-slp-vectorize"),
        "-O2": ("-f", "slp-vectorize"),
        "-O3": ("-f", "slp-vectorize"),
    },
)


@dataclass(frozen=True, slots=True)
class SingleFlag:
    """A flag in which two settings differ: the word for the second, and the one for the first."""

    word: str
    opposite: str


def single_flags(before: str, after: str) -> tuple[SingleFlag, ...]:
    """Flags in which two answers to `QUESTION` differ, if both values can be given as words."""
    one, two = _words(before), _words(after)
    return tuple(
        SingleFlag(word, one[name])
        for name, word in two.items()
        if word != one.get(name, word) and word not in _NO_PROFILE
    )


def single_flags_of_clang(before: str, after: str) -> tuple[SingleFlag, ...]:
    """Flags in which two of its levels differ; what else they differ in obeys no flag."""
    known = [by_level for by_level in _OF_CLANG if before in by_level and after in by_level]
    pairs = [(by_level[before], by_level[after]) for by_level in known]
    return tuple(
        SingleFlag(one + new, other + old) for (one, old), (other, new) in pairs if old != new
    )


def _words(text: str) -> dict[str, str]:
    """The word that sets each flag as it is, by its name."""
    values: dict[str, str] = {}
    for name, equals, value in _LINE.findall(text):
        if name == _CHOICE_ITSELF or name.startswith(_NEGATED):
            continue
        if equals and not value.startswith("["):
            values[name + equals] = f"{name}={value}"
        elif not equals and value in _SWITCHED:
            values[name] = name if _SWITCHED[value] else f"{name[:2]}no-{name[2:]}"
    return values
