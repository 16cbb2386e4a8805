"""What must be built, in which order, under which key. Pure.

The chain is: source tree, then dependencies (once per compiler), then a program per variant. Each
stage runs in a copy of its parent's tree. Its key hashes all that decides its bytes, so equal keys
are the same build, and a changed flag changes the keys of its variants alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from ensign.builders.cache import key_of
from ensign.builders.recorder import NO_CHANGES, Changes, Recorded, recorded_programs
from ensign.model.errors import InputError
from ensign.model.study import Build, Rewrite, Study
from ensign.model.units import parse_duration_ns, parse_size_bytes
from ensign.model.variants import Variant
from ensign.toolchains.find import Toolchain
from ensign.toolchains.table import Flags

Kind = Literal["dependencies", "program"]
Commands = tuple[tuple[str, ...], ...]

_SCHEMA = 3
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")
_OF_VARIANT = ("cflags", "ldflags")
_OF_DEPENDENCIES = ("dependency_cflags", "dependency_ldflags")
_OF_TOOLCHAIN = ("cc", "cxx", "ar", "ranlib", "nm", "ld")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the chain. `parent` is the key of another stage, or empty for the source.

    Commands still hold `{jobs}`; `tool_commands` follow, and are no part of the build time.
    `artefact`, `tools` (name and path) and `keep` (globs) are what is taken out of the tree at the
    end, all relative to it; dependencies keep the tree itself.
    """

    kind: Kind
    key: str
    parent: str
    label: str
    variants: tuple[str, ...]
    commands: Commands
    env: tuple[tuple[str, str], ...]
    deadline_ns: int
    disk_bytes: int
    tool_commands: Commands = ()
    artefact: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    changes: Changes = NO_CHANGES


@dataclass(frozen=True, slots=True)
class Plan:
    """All stages, parents before children; which stage makes which variant, and with what flags."""

    stages: tuple[Stage, ...]
    stage_of: Mapping[str, str]
    flags_of: Mapping[str, Flags]

    def stage(self, key: str) -> Stage:
        """Return the stage of that key; KeyError if there is none."""
        for stage in self.stages:
            if stage.key == key:
                return stage
        raise KeyError(key)


@dataclass(frozen=True, slots=True)
class Place:
    """What is built where: the hash of the source tree, and the path at which commands see it.

    `processor` identifies the one of this machine, for code that is made for it. `path` is the
    builds' PATH; `recorder_path` the folder in which they see recorded programs, empty if nothing
    is recorded.
    """

    source_sha256: str
    build_path: str
    processor: str = ""
    path: str = ""
    recorder_path: str = ""


def plan_builds(
    study: Study,
    variants: Sequence[Variant],
    baseline: str,
    toolchains: Mapping[str, Toolchain],
    place: Place,
) -> Plan:
    """Plan the builds of these variants. InputError for a placeholder that does not exist."""
    stages: dict[str, Stage] = {}
    stage_of: dict[str, str] = {}
    flags_of: dict[str, Flags] = {}
    for variant in variants:
        ground = _Ground(study.build, toolchains[variant.compiler], place)
        flags_of[variant.name] = ground.flags(variant)
        parent = ""
        if study.build.dependencies:
            stage = _dependencies(ground, variant if variant.dependencies == "flags" else None)
            parent = stages.setdefault(stage.key, stage).key
        stage = _program(ground, variant, parent, is_baseline=variant.name == baseline)
        if stage.key in stages:
            joined = stages[stage.key]
            stage = replace(joined, variants=(*joined.variants, variant.name))
        stages[stage.key] = stage
        stage_of[variant.name] = stage.key
    return Plan(tuple(stages.values()), stage_of, flags_of)


def variant_flags(build: Build, toolchain: Toolchain, variant: Variant) -> Flags:
    """What a variant passes; nothing for an allocator that the project itself is told of."""
    if variant.allocator in build.allocators:
        variant = replace(variant, allocator="default")
    return toolchain.flags(variant)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What all stages of one compiler share."""

    build: Build
    toolchain: Toolchain
    place: Place

    def flags(self, variant: Variant) -> Flags:
        return variant_flags(self.build, self.toolchain, variant)

    def values(self, seen: Variant | None) -> dict[str, str]:
        """Of the toolchain, and of the flags that the dependencies see; `seen` is whose."""
        tools = {name: self._called(str(getattr(self.toolchain, name))) for name in _OF_TOOLCHAIN}
        flags = self.flags(seen) if seen is not None else Flags((), ())
        texts = (" ".join(flags.compile), " ".join(flags.link))
        return {**tools, **dict(zip(_OF_DEPENDENCIES, texts, strict=True))}

    def _called(self, program: str) -> str:
        """Through the recorder, where there is one."""
        if not program or not self.place.recorder_path:
            return program
        return f"{self.place.recorder_path}/{PurePosixPath(program).name}"

    def recorded(self) -> tuple[Recorded, ...]:
        return recorded_programs(self.toolchain, self.place.path)

    def key(self, kind: Kind, variant: Variant | None, **inputs: object) -> str:
        """`variant` is whose flags the stage sees, if it sees any."""
        toolchain = self.toolchain
        native = variant is not None and ("native" in (variant.target, *_natives(variant.flags)))
        return key_of(
            {
                "schema": _SCHEMA,
                "kind": kind,
                "source": self.place.source_sha256,
                "build_path": self.place.build_path,
                "toolchain": toolchain.identity
                if variant is None
                else toolchain.identity_for(variant),
                "processor": self.place.processor if native else "",
                **inputs,
            }
        )


def _natives(flags: str) -> tuple[str, ...]:
    return tuple(flag.partition("=")[2] for flag in flags.split() if flag.startswith("-m"))


def _dependencies(ground: _Ground, variant: Variant | None) -> Stage:
    """Once per compiler; for a variant alone where it gives them its flags."""
    build, values = ground.build, ground.values(variant)
    commands = _filled_all(build.dependencies, values, "build.dependencies")
    env = tuple(
        (name, _filled(text, values, "build.env"))
        for name, text in sorted(build.env.items())
        if not any(f"{{{key}}}" in text for key in (*_OF_VARIANT, "allocator"))
    )
    return Stage(
        kind="dependencies",
        key=ground.key("dependencies", variant, commands=commands, env=env),
        parent="",
        label=f"dependencies with {ground.toolchain.name}"
        if variant is None
        else f"dependencies of {variant.name}",
        variants=(),
        commands=commands,
        env=env,
        deadline_ns=parse_duration_ns(build.deadline),
        disk_bytes=parse_size_bytes(build.disk),
        recorded=ground.recorded(),
    )


def _program(ground: _Ground, variant: Variant, parent: str, *, is_baseline: bool) -> Stage:
    build = ground.build
    flags = ground.flags(variant)
    values = {
        **ground.values(variant if variant.dependencies == "flags" else None),
        "cflags": " ".join(flags.compile),
        "ldflags": " ".join(flags.link),
        "allocator": build.allocators.get(variant.allocator, ""),
    }
    commands = _filled_all(build.commands, values, "build.commands")
    tool_commands: Commands = ()
    tools: tuple[tuple[str, str], ...] = ()
    if is_baseline:
        tool_commands = _filled_all(build.tool_commands, values, "build.tool_commands")
        tools = tuple(sorted(build.tools.items()))
    env = tuple(
        (name, _filled(text, values, "build.env")) for name, text in sorted(build.env.items())
    )
    changes = _changes(build.rewrite, flags)
    taken = {
        "changes": [changes.compile, changes.link, changes.remove],
        "tool_commands": tool_commands,
        "artefact": build.artefact,
        "tools": tools,
        "keep": build.keep,
    }
    return Stage(
        kind="program",
        key=ground.key("program", variant, parent=parent, commands=commands, env=env, **taken),
        parent=parent,
        label=variant.name,
        variants=(variant.name,),
        commands=commands,
        env=env,
        deadline_ns=parse_duration_ns(build.deadline),
        disk_bytes=parse_size_bytes(build.disk),
        tool_commands=tool_commands,
        artefact=build.artefact,
        tools=tools,
        keep=tuple(build.keep),
        recorded=ground.recorded(),
        changes=changes,
    )


def _changes(rewrite: Rewrite, flags: Flags) -> Changes:
    """A word that is all of `{cflags}` or `{ldflags}` becomes as many words as there are flags."""
    words = {"{cflags}": flags.compile, "{ldflags}": flags.link}
    return Changes(
        tuple(flag for word in rewrite.compile for flag in words.get(word, (word,))),
        tuple(flag for word in rewrite.link for flag in words.get(word, (word,))),
        tuple(rewrite.remove),
    )


def _filled_all(
    commands: Iterable[Sequence[str]], values: Mapping[str, str], where: str
) -> Commands:
    return tuple(tuple(_filled(word, values, where) for word in argv) for argv in commands)


def _filled(text: str, values: Mapping[str, str], where: str) -> str:
    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name == "jobs":
            return match[0]
        if name == "cxx" and not values.get(name):
            raise InputError(f"{where} uses {{cxx}}, but this compiler's C++ driver is missing")
        if name in values:
            return values[name]
        if name in (*_OF_VARIANT, "allocator"):
            raise InputError(f"{where} uses {{{name}}}, but it is run once for all variants")
        near = difflib.get_close_matches(name, (*values, "jobs"), n=1)
        hint = f"; did you mean {{{near[0]}}}?" if near else ""
        raise InputError(f"{where} has an unknown placeholder {{{name}}}{hint}")

    return _PLACEHOLDER.sub(replace, text)


def with_jobs(commands: Commands, jobs: int) -> Commands:
    """Put the number of parallel jobs into commands."""
    return tuple(tuple(word.replace("{jobs}", str(jobs)) for word in argv) for argv in commands)


def jobs_for(cores: int, stages_at_work: int) -> int:
    """Tell how many jobs a stage may use when so many run or could: all together, the cores."""
    return max(1, cores // max(1, min(cores, stages_at_work)))


def in_order(
    ready: Iterable[Stage], baseline_key: str, expected_s: Mapping[str, float]
) -> list[Stage]:
    """Sort stages that could start now: dependencies, the baseline, then the longest first.

    The baseline is early because nothing can be compared without it.
    """
    return sorted(
        ready,
        key=lambda stage: (
            stage.kind != "dependencies",
            stage.key != baseline_key,
            -expected_s.get(stage.key, 0.0),
            stage.key,
        ),
    )
