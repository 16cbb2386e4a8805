"""Commands that run the same program on the same input: there is nothing to compare."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.experiment.compare.options import CommandVariant, Options
from ensign.experiment.tracing import Identities, first_few
from ensign.model.finding_kinds.builds import SAME_BYTES, SAME_PROGRAM
from ensign.model.findings import Finding
from ensign.model.traced_execution import TracedExecution
from ensign.proof.program_content import content_sha256

_SHOWN = 2
_PLACE = "{variant}"
_AROUND = ("setup", "prepare", "cleanup", "load", "preload")


@dataclass(frozen=True, slots=True)
class SamePrograms:
    """Which commands run what an earlier one runs (variant to variant), and what is said of it."""

    of: Mapping[str, str]
    findings: tuple[Finding, ...] = ()


def may_be_same(
    options: Options, commands: Sequence[CommandVariant], identities: Identities
) -> bool:
    """Whether a command's program and arguments are those of an earlier one. Nothing is run."""
    if own_input(options):
        return False
    programs: dict[object, list[str]] = {}
    for command in commands:
        if program := _program_of(command):
            programs.setdefault((command.argv[1:], _around(command)), []).append(program)
    for alike in programs.values():
        # Files are read only where the rest is equal.
        held = {path: _content(path, identities) for path in alike} if len(alike) > 1 else {}
        known = [held[path] for path in alike if held and held[path]]
        if len(set(known)) < len(known):
            return True
    return False


def own_input(options: Options) -> str:
    """What may give each variant another input, which no trace of it shows; empty if nothing."""
    texts = {"input": (options.input or "",), "env": options.env}
    texts |= {part: getattr(options, part) for part in _AROUND}
    found = [f"--{name}" for name, said in texts.items() if any(_PLACE in one for one in said)]
    return f"{', '.join(found)} gives each its own by {_PLACE}" if found else ""


def same_programs(
    commands: Sequence[CommandVariant],
    seen: Mapping[str, TracedExecution],
    content: Callable[[str], str],
    own: str = "",
) -> SamePrograms:
    """By all files that ran, whatever their paths, the arguments, and the files that were read.

    `content` identifies what a path holds, and is empty where that cannot be told; `own` is what
    gives each an input of its own. Of what was not seen in full nothing is said. Where the programs
    are the same and the rest is not, a finding names what differs.
    """
    found: dict[str, str] = {}
    findings: list[Finding] = []
    known: list[CommandVariant] = []
    for command in commands:
        trace = seen.get(command.variant)
        if trace is None or trace.identities is None:
            continue
        alike = (each for each in known if _ran_the_same(seen[each.variant], trace, content))
        earlier = next(alike, None)
        if earlier is None:
            known.append(command)
            continue
        differs = _differences(earlier, command) or own
        differs = differs or _other_files(seen[earlier.variant], trace, content)
        if differs:
            text = f"the same program and libraries as {earlier.name}; {differs}"
            findings.append(SAME_PROGRAM.found(text, command.name))
        else:
            found[command.variant] = earlier.variant
            text = (
                f"the same program and libraries as {earlier.name}, with equal arguments and "
                "equal files to read"
            )
            findings.append(SAME_BYTES.found(text, command.name))
    return SamePrograms(found, tuple(findings))


def content_of(path: str, identities: Identities) -> str:
    """What identifies a file's content; of a folder its names; empty where it is gone."""
    try:
        if not Path(path).is_dir():
            return _content(path, identities)
        names = sorted(os.fsencode(each.name) for each in os.scandir(path))
        return hashlib.sha256(b"\0".join(names)).hexdigest()
    except OSError:
        return ""


def _content(path: str, identities: Identities) -> str:
    return content_sha256(Path(path)) or identities.of(path)


def _ran_the_same(
    first: TracedExecution, second: TracedExecution, content: Callable[[str], str]
) -> bool:
    mine, its = ({each.sha256: each.path for each in trace.mapped} for trace in (first, second))
    own = Counter(content(path) for sha256, path in mine.items() if sha256 not in its)
    others = Counter(content(path) for sha256, path in its.items() if sha256 not in mine)
    return own == others and "" not in own


def _program_of(command: CommandVariant) -> str:
    name = command.argv[0]
    if command.root is not None or "{" in name:
        return ""
    if os.sep in name:
        return name
    return shutil.which(name) or ""


def _around(command: CommandVariant) -> tuple[object, ...]:
    return tuple(getattr(command, part) for part in _AROUND)


def _differences(first: CommandVariant, second: CommandVariant) -> str:
    if first.argv[1:] != second.argv[1:]:
        return "the arguments differ"
    parts = zip(_AROUND, _around(first), _around(second), strict=True)
    other = [f"--{part}" for part, one, another in parts if one != another]
    return f"{', '.join(other)} differs" if other else ""


def _other_files(
    first: TracedExecution, second: TracedExecution, content: Callable[[str], str]
) -> str:
    """What the executions read that is not the same; files that one wrote itself do not count."""
    if first.read_in_part or second.read_in_part:
        return "they read more files than are compared"
    mine, its = _read(first) - _read(second), _read(second) - _read(first)
    held = {path: content(path) for path in sorted(mine | its)}
    contents, others = (Counter(held[path] for path in paths) for paths in (mine, its))
    if contents == others and "" not in contents:
        return ""
    one_sided = [path for path in held if not (contents[held[path]] and others[held[path]])]
    return f"they read other files: {first_few(one_sided or held, _SHOWN)}"


def _read(trace: TracedExecution) -> frozenset[str]:
    return frozenset(trace.read) - frozenset(trace.written)
