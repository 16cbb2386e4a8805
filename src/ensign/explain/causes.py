"""Splits the difference of two variants into parts, each to be toggled by itself. Pure."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Generic, TypeVar

from ensign.model.traced_execution import is_loader
from ensign.model.training_choice import TrainingChoice
from ensign.model.unit_choices import OF_SOURCES, unit_choices
from ensign.model.variants import AXES, OWN_COMPILER, Variant, trained
from ensign.toolchains.single_flags import SingleFlag

# Words that are a pair with the next one.
_WITH_VALUE = frozenset(("--param", "-mllvm", "-Xclang", "-Xlinker", "-include", "-T", "-I", "-L"))
_TRAINED = ("pgo", "lto")
OTHERS, OTHER_FLAGS = "all other sources", "all other flags"
# Choices that stand for many flags of a compiler.
OF_FLAGS = ("optimization", "target", "floating_point", "pgo")
_TUNABLES, _PRELOAD, _SEARCHED = "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH"
_LOADER_WITH_VALUE = frozenset(
    ("--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath", "--glibc-hwcaps-mask")
)
# Only a loader of its own can load another one of these.
_OF_LOADER = re.compile(r"ld-linux|lib(?:c|m|pthread|dl|rt|resolv)\b")
Point = TypeVar("Point")


@dataclass(frozen=True, slots=True)
class Cause(Generic[Point]):
    """A part of a difference: the first of two with it, and the second without it."""

    name: str
    added: Point
    removed: Point


@dataclass(frozen=True, slots=True)
class _Part:
    """Choices, and words of `flags`, that only one of the variants has."""

    name: str
    axis: str = ""
    words: frozenset[str] = frozenset()


def choice_causes(a: Variant, b: Variant) -> tuple[Cause[Variant], ...]:
    """The axes and single flags in which two variants differ.

    Every point between them is a variant, though it may be that nothing can build it.
    """
    parts = tuple(_parts(a, b))
    every = frozenset(parts)
    return tuple(
        Cause(part.name, _between(a, b, frozenset((part,))), _between(a, b, every - {part}))
        for part in parts
    )


def _parts(a: Variant, b: Variant) -> Iterator[_Part]:
    for axis in AXES:
        before, after = getattr(a, axis), getattr(b, axis)
        if before == after:
            continue
        if axis == "flags" and set(_words(before)) != set(_words(after)):
            yield from _flag_parts(_words(before), _words(after))
        else:
            yield _Part(f"{axis}: {before or 'none'} → {after or 'none'}", axis)


def _flag_parts(before: Sequence[str], after: Sequence[str]) -> Iterator[_Part]:
    gone = [word for word in before if word not in after]
    new = [word for word in after if word not in before]
    for word in gone:
        instead = [other for other in new if _subject(other) == _subject(word)]
        name = f"{word} → {' '.join(instead)}" if instead else f"without {word}"
        yield _Part(name, words=frozenset((word, *instead)))
        new = [other for other in new if other not in instead]
    yield from (_Part(word, words=frozenset((word,))) for word in new)


def _words(flags: str) -> list[str]:
    words: list[str] = []
    for word in flags.split():
        if words and words[-1] in _WITH_VALUE:
            words[-1] = f"{words[-1]} {word}"
        else:
            words.append(word)
    return words


def _subject(word: str) -> str:
    """What a flag is about: `-fx` of `-fno-x`, `-march` of `-march=native`."""
    name = word.partition("=")[0]
    for start in ("-fno-", "-mno-"):
        if name.startswith(start):
            return f"{start[:2]}{name.removeprefix(start)}"
    return f"-D{name[2:]}" if name.startswith(("-D", "-U")) else name


def _between(a: Variant, b: Variant, taken: frozenset[_Part]) -> Variant:
    """The first variant with these parts of the second one."""
    values: dict[str, Any] = {part.axis: getattr(b, part.axis) for part in taken if part.axis}
    if "flags" not in values and set(_words(a.flags)) != set(_words(b.flags)):
        before, after = _words(a.flags), _words(b.flags)
        flipped = {word for part in taken for word in part.words}
        kept = [word for word in before if (word in after) or word not in flipped]
        new = [word for word in after if word in flipped and word not in before]
        values["flags"] = " ".join(word for word in _merged(after, before) if word in {*kept, *new})
    return replace(a, name="", **values)


def _merged(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """All words, in the order of the first, those of the second alone before them."""
    return [*(word for word in second if word not in first), *first]


def can_mix_sources(a: Variant, b: Variant) -> bool:
    """True if sources can be compiled as in either of two variants."""
    return (
        a != b
        and OWN_COMPILER not in (a.compiler, b.compiler)
        and not (a.units or b.units)
        and any(getattr(a, axis) != getattr(b, axis) for axis in OF_SOURCES)
    )


def source_causes(
    a: Variant, b: Variant, groups: Sequence[Sequence[str]], *, are_all: bool = False
) -> tuple[Cause[Variant], ...]:
    """Each group of sources, and all others if there are any, compiled as in the other variant.

    What differs at the link, or in the whole program, is in none of them.
    """
    named = [(" ".join(group), group, False) for group in groups]
    others = (OTHERS, [source for group in groups for source in group], True)
    every = named if are_all else [*named, others]
    return tuple(
        Cause(
            name,
            _mixed(a, b, globs, inverted=inverted),
            _mixed(b, a, globs, inverted=inverted),
        )
        for name, globs, inverted in every
    )


def _mixed(base: Variant, other: Variant, globs: Sequence[str], *, inverted: bool) -> Variant:
    """The base with some sources as in the other variant.

    A profile and LTO can only be taken away from sources, so the one that has them leads.
    """
    if any(getattr(base, axis) == "off" != getattr(other, axis) for axis in _TRAINED):
        base, other, inverted = other, base, not inverted
    units = unit_choices(globs, _other_choices(base, other), inverted=inverted)
    return replace(base, name="", units=units)


def _other_choices(base: Variant, other: Variant) -> list[tuple[str, str]]:
    """Axes of sources in which the other variant differs, and what it has there."""
    differ = [axis for axis in OF_SOURCES if getattr(base, axis) != getattr(other, axis)]
    return [(axis, getattr(other, axis)) for axis in differ]


def can_mix_functions(a: Variant, b: Variant) -> bool:
    """True if functions can be compiled as in either of two variants, the source as in the other.

    Not where objects hold no code of a machine (LTO), nor where one alone has a profile, nor by
    compilers that name what they make in two ways.
    """
    families = {"clang" in variant.compiler for variant in (a, b)}
    same = (a.pgo, a.bolt, a.training, a.revision) == (b.pgo, b.bolt, b.training, b.revision)
    return can_mix_sources(a, b) and same and a.lto == b.lto == "off" and len(families) == 1


def function_causes(
    a: Variant, b: Variant, functions: Sequence[tuple[str, str]]
) -> tuple[Cause[Variant], ...]:
    """Each function of a source, both by name, compiled as in the other variant."""

    def with_one(base: Variant, other: Variant, source: str, name: str) -> Variant:
        units = unit_choices([source], _other_choices(base, other), functions=[name])
        return replace(base, name="", units=units)

    return tuple(
        Cause(f"{name} [{source}]", with_one(a, b, source, name), with_one(b, a, source, name))
        for source, name in functions
    )


def can_split_training(a: Variant, b: Variant) -> bool:
    """True if the second variant alone is trained, on all of the training."""
    return trained(b) and not trained(a) and not b.training


def training_causes(
    b: Variant, groups: Sequence[Sequence[str]], asked: Sequence[str]
) -> tuple[Cause[Variant], ...]:
    """Groups of training workloads, and that there is none that does what is `asked`.

    Each is taken from the second variant, and added to nothing: the first one has no profile.
    """
    choices = [(" ".join(group), TrainingChoice(tuple(group), without=True)) for group in groups]
    choices += (
        [(f"no training on {' '.join(asked)}", TrainingChoice(tuple(asked)))] if asked else []
    )
    points = [(name, replace(b, name="", training=str(choice))) for name, choice in choices]
    return tuple(Cause(name, point, point) for name, point in points)


def with_flags_of(a: Variant, b: Variant, axes: Sequence[str]) -> Variant:
    """The first variant with those choices of the second that stand for many flags."""
    return replace(a, name="", **{axis: getattr(b, axis) for axis in axes})


def flag_start(a: Variant, b: Variant, flags: Sequence[SingleFlag]) -> Variant | None:
    """The variant to which flags of the second one are added, where that is not the first one.

    Where the second alone has a profile, which some flags need, it is that one with all flags as
    in the first.
    """
    return _trained_with(a, b, [flag.opposite for flag in flags]) if _is_trained(a, b) else None


def flag_causes(
    a: Variant, b: Variant, groups: Mapping[str, Sequence[SingleFlag]]
) -> tuple[Cause[Variant], ...]:
    """Groups of single flags by name, set in the one variant as in the other one."""
    every = [flag for group in groups.values() for flag in group]
    return tuple(
        Cause(
            name,
            _trained_with(a, b, [flag.opposite for flag in every if flag not in group])
            if _is_trained(a, b)
            else _with_words(a, [flag.word for flag in group]),
            _trained_with(a, b, [flag.opposite for flag in group]),
        )
        for name, group in groups.items()
    )


def _trained_with(a: Variant, b: Variant, words: Sequence[str]) -> Variant:
    """The second variant with these flags; where it has nothing but its profile, with that one.

    A profile of its own would be another one by chance; flags of levels need it, since they change
    what is counted.
    """
    if not _is_trained(a, b) or replace(a, name=b.name, pgo=b.pgo, profile=b.profile) != b:
        return _with_words(b, words)
    flags = _with_words(b, words).flags
    return replace(b, name="", units=unit_choices(["*"], [("flags", flags)], inverted=False))


def _is_trained(a: Variant, b: Variant) -> bool:
    """True if the second alone has a profile."""
    return a.pgo == "off" != b.pgo


def _with_words(variant: Variant, words: Sequence[str]) -> Variant:
    """The study's own flags come last, so that they overrule."""
    return replace(variant, name="", flags=" ".join((*words, variant.flags)).strip())


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands at a place of both commands: a variable's value, or words. None: not there."""

    name: str
    sides: tuple[Sequence[str] | str | None, Sequence[str] | str | None]
    variable: str = ""

    @property
    def differs(self) -> bool:
        return self.sides[0] != self.sides[1]


def same_form(a: str, b: str) -> tuple[str, str]:
    """Both commands by way of `env` where one is: starting that costs time of its own."""
    one, two = _by_way_of_env(a), _by_way_of_env(b)
    return (one, two) if a == one or b == two else (a, b)


def _by_way_of_env(text: str) -> str:
    return text if text.split(maxsplit=1)[:1] == ["env"] else f"env {text}"


def same_program(a: str, b: str) -> bool:
    """True if both commands start the same one, with other words or variables.

    One may have words before it: another program, such as a loader, starts it.
    """
    both = (_command(t)[1] if _by_env(t) else shlex.split(t) for t in same_form(a, b))
    one, two = (words[len(_loader_words(words)) :] for words in both)
    shorter, longer = sorted((one, two), key=len)
    return one[:1] == two[:1] or (bool(shorter) and longer[-len(shorter) :] == shorter)


def with_libraries(a: str, b: str, mapped: tuple[Iterable[str], Iterable[str]]) -> tuple[str, str]:
    """Both commands, told to load first those libraries that the other one has another file of.

    `mapped` are files that only the one or the other maps. The commands are as they were where the
    C library is another one, or where they say themselves what to load.
    """
    files = [{_stem(path): path for path in own if ".so" in _file_name(path)} for own in mapped]
    shared = sorted(files[0].keys() & files[1].keys())
    started = [_by_way_of_env(text) for text in (a, b)]
    differ = (name for own in files for name in own)
    unable = any(map(_OF_LOADER.match, differ)) or _PRELOAD in a + b
    if not shared or unable or not all(map(_by_env, started)):
        return a, b
    commands = [_command(text) for text in started]
    # What else they look for they both find, where the second one does.
    known = [variables[_SEARCHED] for variables, _ in commands if _SEARCHED in variables]
    where = {_SEARCHED: known[-1]} if known else {}
    loaded = [{f"{_PRELOAD}:{name}": own[name] for name in shared} for own in files]
    one, two = (
        shlex.join(["env", *_assignments([*{**variables, **where}.items(), *own.items()]), *words])
        for (variables, words), own in zip(commands, loaded, strict=True)
    )
    return one, two


def command_causes(a: str, b: str) -> tuple[Cause[str], ...]:
    """The words and variables (before the program, after `env`) in which two commands differ.

    Tunables of the C library, and libraries that are loaded first, count one by one.
    """
    a, b = same_form(a, b)
    by_env = _by_env(a) and _by_env(b)
    start = ["env"] if by_env else []
    one, two = (_command(t) if by_env else ({}, shlex.split(t)) for t in (a, b))
    names = dict.fromkeys((*one[0], *two[0]))
    pieces = [_variable(name, one[0].get(name), two[0].get(name)) for name in names]
    pieces += _program_pieces(one[1], two[1])
    differing = [at for at, piece in enumerate(pieces) if piece.differs]
    every = frozenset(differing)
    named = Counter(pieces[at].name for at in differing)
    for at in differing:
        if named[pieces[at].name] > 1:
            pieces[at] = replace(pieces[at], name=f"{pieces[at].name} (place {at + 1})")
    return tuple(
        Cause(
            pieces[at].name,
            _text(pieces, frozenset((at,)), start),
            _text(pieces, every - {at}, start),
        )
        for at in differing
    )


def _by_env(text: str) -> bool:
    """True if `env` starts it; options of `env` itself are words like any other."""
    return re.match(r"env\s+[^-\s]", text) is not None


def _command(text: str) -> tuple[dict[str, str], list[str]]:
    """Its variables, and its other words."""
    words = shlex.split(text)
    variables: dict[str, str] = {}
    rest = words[1:]
    while rest and re.match(r"[A-Za-z_]\w*=", rest[0]):
        name, _, value = rest.pop(0).partition("=")
        if name == _TUNABLES:
            parted = (tunable.partition("=") for tunable in value.split(":"))
            variables |= {f"{name}:{key}": own for key, _, own in parted}
        elif name == _PRELOAD:
            variables |= {f"{name}:{_stem(path)}": path for path in re.split("[ :]+", value)}
        else:
            variables[name] = value
    return variables, rest


def _stem(path: str) -> str:
    """Name of a library without its versions: `libz` of `/usr/lib/libz.so.1`."""
    return _file_name(path).partition(".so")[0]


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _variable(name: str, before: str | None, after: str | None) -> _Piece:
    told = ["none" if value is None else value or '""' for value in (before, after)]
    return _Piece(f"{name.rpartition(':')[2]}: {' → '.join(told)}", (before, after), name)


def _program_pieces(before: Sequence[str], after: Sequence[str]) -> Iterator[_Piece]:
    """Words that differ; a loader and its options are one piece, and so the C library is."""
    loaders = _loader_words(before), _loader_words(after)
    if loaders[0][:1] == loaders[1][:1]:
        yield from _word_pieces(before, after)
        return
    told = [words[0] if words else "the system's" for words in loaders]
    yield _Piece(f"C library: {' → '.join(told)}", loaders)
    yield from _word_pieces(before[len(loaders[0]) :], after[len(loaders[1]) :])


def _loader_words(words: Sequence[str]) -> Sequence[str]:
    """The loader that a command starts with and its options, before the program."""
    if not words or not is_loader(words[0]):
        return []
    end = 1
    while end < len(words) and words[end].startswith("--"):
        end += 1 + (words[end] in _LOADER_WITH_VALUE)
    return words[:end]


def _word_pieces(before: Sequence[str], after: Sequence[str]) -> Iterator[_Piece]:
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for kind, i1, i2, j1, j2 in blocks:
        if kind == "replace" and i2 - i1 == j2 - j1:
            for old, new in zip(before[i1:i2], after[j1:j2], strict=True):
                yield _Piece(f"{old} → {new}", ([old], [new]))
            continue
        old, new = " ".join(before[i1:i2]), " ".join(after[j1:j2])
        named = {"insert": new, "delete": f"without {old}"}.get(kind, f"{old} → {new}")
        yield _Piece(named, (before[i1:i2], after[j1:j2]))


def _text(pieces: Sequence[_Piece], taken: frozenset[int], start: Sequence[str]) -> str:
    """The first command with these pieces of the second one."""
    variables: list[tuple[str, str]] = []
    words: list[str] = []
    for at, piece in enumerate(pieces):
        value = piece.sides[at in taken]
        if not piece.variable:
            words += value or ()
        elif isinstance(value, str):
            variables.append((piece.variable, value))
    return shlex.join([*start, *_assignments(variables), *words])


def _assignments(variables: Iterable[tuple[str, str]]) -> list[str]:
    """Words for `env`; parts of one variable make one word."""
    parts: dict[str, list[str]] = {}
    for variable, value in variables:
        name, _, key = variable.partition(":")
        parts.setdefault(name, []).append(f"{key}={value}" if name == _TUNABLES else value)
    return [f"{name}={':'.join(values)}" for name, values in parts.items()]
