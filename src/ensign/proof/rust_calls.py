"""Calls of rustc, as what they say of code. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ensign.model.calls import Call
from ensign.proof.evidence import BuildEvidence

_VALUES = ("-C", "--codegen")
_ADDS_UP = "llvm-args"
# What a call comes to that does not say it, where it is compiled without debug assertions.
_UNSAID = {"opt-level": "0", "lto": "off", "panic": "unwind"}
_OFF = {"no": "off", "n": "off", "false": "off", "off": "off"}
_ON = {"yes": "fat", "y": "fat", "true": "fat", "": "fat"}


@dataclass(frozen=True, slots=True)
class Crate:
    """A crate that a call compiled: its name, its root file, and its options, the last of each.

    `links` says that the call made a program or a shared library of it.
    """

    name: str
    source: str
    options: dict[str, str]
    links: bool
    call: Call

    @property
    def path(self) -> str:
        """Its root file, as the build saw it."""
        return posixpath.join(self.call.cwd, self.source)

    def value(self, option: str) -> str:
        """Value of an option of code generation; empty where nobody said."""
        return self.options.get(option, _UNSAID.get(option, ""))

    def has(self, option: str, wanted: str) -> bool:
        """True if an option comes to that; words for LLVM may have others beside them."""
        there = self.value(option)
        return there == wanted or (option == _ADDS_UP and {*wanted.split()} <= {*there.split()})


def crates_of(seen: BuildEvidence) -> tuple[Crate, ...]:
    """The crates that were compiled into the artifact; not build scripts, nor what macros run."""
    crates = [crate_of(call) for call in seen.calls if call.is_rust and call.exit == 0]
    compiled = [crate for crate in crates if crate.call.line.compiles]
    if seen.took:
        return tuple(crate for crate in compiled if _taken(crate.call, seen.took))
    # Cargo names the target in no call that is for this machine's own use.
    named = [crate for crate in compiled if "target" in crate.options]
    return tuple(named or compiled)


def linked_crates(seen: BuildEvidence) -> tuple[Crate, ...]:
    """The crates of a program that a known call of rustc linked; none of what nobody recorded."""
    crates = crates_of(seen) if seen.took else ()
    return crates if any(crate.links for crate in crates) else ()


def _taken(call: Call, took: frozenset[str]) -> bool:
    return any(output.sha256 in took for output in call.outputs)


def crate_of(call: Call) -> Crate:
    """Content of a call of rustc."""
    options = last_options(options_of(call.ran[1:]))
    if "lto" in options:
        options["lto"] = _lto(options["lto"])
    source = next(iter(call.line.sources), "")
    return Crate(options.get("crate-name", source), source, options, call.line.links, call)


def last_options(said: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The last value of each option; of words for LLVM all of them."""
    options: dict[str, str] = {}
    for name, value in said:
        before = options.get(name) if name == _ADDS_UP else None
        options[name] = value if before is None else f"{before} {value}"
    return options


def externs(call: Call) -> dict[str, str]:
    """The crates that a call is given, by the names that its source has for them."""
    given = [value for name, value in pairwise(call.ran) if name == "--extern"]
    given += [word[9:] for word in call.ran if word.startswith("--extern=")]
    pairs = (option.rpartition(":")[2].partition("=") for option in given)
    return {name: path for name, equals, path in pairs if equals}


def options_of(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options of code generation, and names of crate and target, as the words say them."""
    waiting = ""
    for word in words:
        if waiting:
            yield _pair(waiting, word)
            waiting = ""
        elif word in (*_VALUES, "--crate-name", "--target"):
            waiting = word
        elif word == "-O":
            yield "opt-level", "3"
        elif word.startswith("-C"):
            yield _pair("-C", word[2:])
        elif word.startswith(("--codegen=", "--crate-name=", "--target=")):
            name, _, value = word.partition("=")
            yield _pair(name, value)


def _pair(option: str, text: str) -> tuple[str, str]:
    if option not in _VALUES:
        return option.removeprefix("--"), text
    name, _, value = text.partition("=")
    return name.replace("_", "-"), value


def _lto(value: str) -> str:
    return _OFF.get(value, _ON.get(value, value))
