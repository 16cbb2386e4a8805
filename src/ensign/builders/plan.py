"""Stages that must be built, in which order, under which key. Pure.

The chain is: source tree, then dependencies (once per compiler), then a program per variant. With
PGO an instrumented program and a profile come before that; with BOLT a profile of the linked
program, and a program that is laid out by it. Each stage runs in a copy of its parent's tree. Its
key hashes all that decides its bytes, so equal keys are the same build, and a changed flag changes
the keys of its variants alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath

from ensign.builders.commands import OF_VARIANT, Commands, filled, filled_all
from ensign.builders.layouts import Relinks, as_inputs, seed_of
from ensign.builders.profiles import (
    TrainingSteps,
    bolt_commands,
    bolt_commands_of_file,
    bolt_training_steps,
    compiler_training_steps,
    training_steps_of,
    uses_tools,
)
from ensign.builders.recorder import (
    NO_CHANGES,
    Changes,
    Recorded,
    UnitChanges,
    identities,
    programs_on_path,
    recorded_programs,
)
from ensign.builders.stages import Kind, Plan, Stage
from ensign.host.cache import key_of
from ensign.host.root_directory import ROOT_PATH, RootDirectory
from ensign.model.placeholders import CARGO_SETTINGS, PROGRAM
from ensign.model.study import Study
from ensign.model.study_build import Build, Rewrite
from ensign.model.unit_choices import read_unit_choices
from ensign.model.units import parse_duration_ns, parse_size_bytes
from ensign.model.variants import OWN_COMPILER, Variant, of_units, trained
from ensign.toolchains.find import Toolchain
from ensign.toolchains.hardening import POSITION_OF_PROGRAMS, beside_libraries
from ensign.toolchains.profiling import instrumenting, using
from ensign.toolchains.rust import cargo_settings
from ensign.toolchains.spelling import beside_cflags, with_separate_functions
from ensign.toolchains.table import Family, Flags

_SCHEMA = 8
_OF_DEPENDENCIES = ("dependency_cflags", "dependency_ldflags")
_OF_TOOLCHAIN = ("cc", "cxx", "ar", "ranlib", "nm", "ld")


@dataclass(frozen=True, slots=True)
class BuildPlace:
    """Source of a build: the hash of its tree, and the path at which commands see it.

    `processor` identifies the one of this machine, for code that is made for it. `path` is the
    builds' PATH; `training_sha256` hashes the files that the training names; `recorder_path` is the
    folder in which builds see recorded programs, empty if nothing is recorded; `sandbox_key` hashes
    what they may reach of the machine, where that is not the usual. `roots` are the environments.
    `revisions` has the hashes of other trees, by the revision that variants name.
    """

    source_sha256: str
    build_path: str
    processor: str = ""
    path: str = ""
    recorder_path: str = ""
    training_sha256: str = ""
    sandbox_key: str = ""
    roots: Mapping[str, RootDirectory] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)


def plan_builds(
    study: Study,
    variants: Sequence[Variant],
    baseline: str,
    toolchains: Mapping[str, Toolchain],
    place: BuildPlace,
) -> Plan:
    """Plan the builds of these variants. InputError for a placeholder that does not exist."""
    stages: dict[str, Stage] = {}
    stage_of: dict[str, str] = {}
    flags_of: dict[str, Flags] = {}
    units_of: dict[str, tuple[Toolchain, Flags]] = {}

    def add(stage: Stage, revision: str) -> None:
        known = stages.get(stage.key, replace(stage, variants=(), revision=revision))
        stages[stage.key] = replace(known, variants=(*known.variants, *stage.variants))

    tools_from = ""
    for variant in variants:
        if variant.name == baseline and _trains(study, variants):
            plain = replace(variant, pgo="off", bolt="off")
            context = _CompilerContext(
                study, toolchains[variant.compiler], place, variant.revision, is_baseline=True
            )
            for stage in _stages(context, plain, ""):
                add(replace(stage, variants=()), variant.revision)
                tools_from = stage.key
    for variant in variants:
        context = _CompilerContext(
            study,
            toolchains[variant.compiler],
            place,
            variant.revision,
            is_baseline=variant.name == baseline,
        )
        other = of_units(variant)
        if other is not None:
            context = context.with_units(other, toolchains[other.compiler])
        if context.units is not None:
            units_of[variant.name] = context.units
        flags_of[variant.name] = context.flags_in_use(variant)
        for stage in _stages(context, variant, tools_from):
            add(stage, variant.revision)
            stage_of[variant.name] = stage.key
    return Plan(tuple(stages.values()), stage_of, flags_of, units_of)


def _trains(study: Study, variants: Iterable[Variant]) -> bool:
    """True if profiles are to be collected with programs of the baseline's build."""
    return uses_tools(study) and any(trained(variant) for variant in variants)


def _stages(context: _CompilerContext, variant: Variant, tools_from: str) -> Iterator[Stage]:
    """The stages of a variant in order, the program itself last."""
    name = variant.name
    shared = training_steps_of(context.study, variant, tools_from, context.place.training_sha256)
    if not trained(variant) or shared is None:
        yield from _built(context, variant, _Use(context.flags(variant)))
        return
    profile = ""
    if variant.pgo == "on":
        # What BOLT needs and where code lies change no count: the profile is the same one.
        plain = replace(variant, bolt="off", strip="no", alignment="default")
        training_steps = compiler_training_steps(
            shared, context.toolchain, context.place.build_path
        )
        *before, instrumented = _built(
            context, plain, _Use(context.flags_instrumented(plain), counts=True)
        )
        yield from (*before, instrumented)
        collected = _profile(instrumented, training_steps, f"profile of {name}")
        yield collected
        profile = collected.key
    linked = variant if variant.bolt == "off" else replace(variant, strip="no")
    *before, program = _built(context, linked, _Use(context.flags_in_use(variant), profile))
    yield from before
    if variant.bolt == "off":
        yield program
    else:
        yield (program := replace(program, variants=(), label=f"{name} before BOLT"))
        training_steps = bolt_training_steps(shared, context.toolchain, program.artifact)
        collected = _profile(program, training_steps, f"BOLT's profile of {name}")
        yield collected
        yield _bolted(context, variant, program, collected.key)


@dataclass(frozen=True, slots=True)
class _Use:
    """The flags of a build, the key of the profile it uses, and whether it makes one."""

    flags: Flags
    profile: str = ""
    counts: bool = False


def _built(context: _CompilerContext, variant: Variant, use: _Use) -> Iterator[Stage]:
    parent = ""
    if context.build.dependencies:
        own = variant.dependencies == "flags"
        stage = _dependencies(context, variant if own else None, use)
        yield stage
        parent = stage.key
    yield _program(context, variant, parent, use)


def _profile(program: Stage, training_steps: TrainingSteps, label: str) -> Stage:
    return replace(
        program,
        kind="profile",
        key=key_of(
            {"schema": _SCHEMA, "program": program.key, "training_steps": training_steps.key}
        ),
        parent=program.key,
        label=label if training_steps.index == 1 else f"{label} ({training_steps.index})",
        variants=(),
        clean=(),
        commands=training_steps.instrument,
        deadline_ns=training_steps.deadline_ns,
        tool_commands=(),
        profile="",
        training_steps=training_steps,
    )


def _bolted(context: _CompilerContext, variant: Variant, program: Stage, profile: str) -> Stage:
    commands = bolt_commands(context.toolchain, program.artifact, variant.alignment)
    file_commands: Commands = ()
    if program.takes_more_than_program:
        file_commands = bolt_commands_of_file(context.toolchain, variant.alignment)
    identity = context.toolchain.profilers.identity
    relinks = context.relinks(variant)
    inputs: list[object] = [program.key, profile, commands, identity, variant.strip]
    if relinks is not None:
        inputs.append(as_inputs(relinks))
    if file_commands:
        inputs.append(file_commands)
    return replace(
        program,
        key=key_of({"schema": _SCHEMA, "bolted": inputs}),
        parent=program.key,
        profile=profile,
        label=variant.name,
        variants=(variant.name,),
        clean=(),
        commands=commands,
        tool_commands=(),
        file_commands=file_commands,
        strip=variant.strip == "yes",
        relinks=relinks,
    )


def variant_flags(build: Build, toolchain: Toolchain, variant: Variant) -> Flags:
    """Words that a variant passes; none for an allocator that the project itself is told of."""
    if variant.allocator in build.allocators:
        variant = replace(variant, allocator="default")
    return toolchain.flags(variant)


@dataclass(frozen=True, slots=True)
class _CompilerContext:
    """Values that all stages of one compiler share."""

    study: Study
    toolchain: Toolchain
    place: BuildPlace
    revision: str
    is_baseline: bool
    units: tuple[Toolchain, Flags] | None = None

    def with_units(self, other: Variant, toolchain: Toolchain) -> _CompilerContext:
        """The context with the compiler and flags of sources with other choices."""
        flags = replace(self, toolchain=toolchain).flags_in_use(other)
        return replace(self, units=(toolchain, flags))

    @property
    def build(self) -> Build:
        return self.study.build

    def flags(self, variant: Variant) -> Flags:
        flags = variant_flags(self.build, self.toolchain, variant)
        rust = self.toolchain.kind.family is Family.RUST  # its functions are separate anyway
        layouts = self.study.layouts
        shuffled = layouts.variants != "none" and layouts.how == "shuffle" and not rust
        return with_separate_functions(flags) if shuffled else flags

    def relinks(self, variant: Variant) -> Relinks | None:
        """The baseline of a race of relinks has as many again, for its twin."""
        layouts = self.study.layouts
        if layouts.variants == "none" or not (self.is_baseline or layouts.variants == "all"):
            return None
        count = layouts.relinks * (2 if self.is_baseline and layouts.variants == "all" else 1)
        return Relinks(
            how=layouts.how,
            seeds=tuple(seed_of(variant.name, layouts.seed, number) for number in range(count)),
            gcc=self.toolchain.kind.family is Family.GCC,
            profiled=variant.pgo == "on",
        )

    def flags_instrumented(self, variant: Variant) -> Flags:
        return self._with(self.flags(variant), instrumenting(self.toolchain.kind))

    def flags_in_use(self, variant: Variant) -> Flags:
        flags = self.flags(variant)
        if variant.pgo == "off":
            return flags
        return self._with(flags, using(self.toolchain.kind, self.place.build_path))

    def _with(self, flags: Flags, more: tuple[str, ...]) -> Flags:
        """Flags with more for the link; not of rustc, which compiles and links in one call."""
        linking = () if self.toolchain.kind.family is Family.RUST else more
        return Flags((*flags.compile, *more), (*flags.link, *linking))

    def values(self, flags: Flags) -> dict[str, str]:
        """Values of the toolchain, and of the flags that the dependencies see."""
        tools = {name: self._called(str(getattr(self.toolchain, name))) for name in _OF_TOOLCHAIN}
        texts = (" ".join(flags.compile), " ".join(flags.link))
        # Build systems ask for a C++ compiler, whether or not the project needs one.
        tools["cxx_if_any"] = tools["cxx"]
        # Cargo asks rustc itself, and is no compiler to be recorded.
        tools |= {"cargo": self.toolchain.cargo, "rust_target": self.toolchain.host}
        tools[CARGO_SETTINGS] = f"{{{CARGO_SETTINGS}}}"
        return {**tools, **dict(zip(_OF_DEPENDENCIES, texts, strict=True))}

    def _called(self, program: str) -> str:
        """Through the recorder, where there is one."""
        if not program or not self.place.recorder_path:
            return program
        return f"{self.place.recorder_path}/{PurePosixPath(program).name}"

    def unit_changes(self, variant: Variant, flags: Flags) -> UnitChanges | None:
        """Changes to calls of sources with other choices, in a build with these flags."""
        if self.units is None:
            return None
        toolchain, other = self.units
        choices = read_unit_choices(variant.units)
        words, changed = other.compile, toolchain.name != self.toolchain.name
        if words == flags.compile and not changed:
            return None
        compilers = {"cc": toolchain.cc, "cxx": toolchain.cxx}
        return UnitChanges(
            self.place.build_path,
            choices.globs,
            choices.inverted,
            told=flags.compile,
            flags=words,
            programs={role: path for role, path in compilers.items() if path and changed},
            functions=choices.functions,
        )

    def laid_over_inputs(self, laid_over: tuple[str, str]) -> tuple[str, str]:
        """The tree that sources come from, by its hash, and which."""
        revision, sources = laid_over
        return self.place.revisions.get(revision, revision), sources

    def unit_inputs(self, changes: UnitChanges) -> Mapping[str, object]:
        """Parts of them that decide bytes, for a stage's key."""
        own = "" if self.units is None else self.units[0].identity
        changed_keys = asdict(changes)
        if not changes.functions:  # keys of before there were any stay
            del changed_keys["functions"]
        return {**changed_keys, "toolchain": own}

    @property
    def by_project(self) -> bool:
        """True if the build calls which compilers it likes."""
        return self.toolchain.name == OWN_COMPILER

    def recorded(self) -> tuple[Recorded, ...]:
        # Rules of Debian, and projects that do not listen, may name the compiler themselves.
        if self.by_project:
            return programs_on_path(self.place.path)
        in_place = self.build.system == "debian" or self.build.flags_by == "recorder"
        root = self.place.roots.get(self.toolchain.environment)
        if root is not None:
            return recorded_programs(self.toolchain, ROOT_PATH, root, in_place_of_others=in_place)
        return recorded_programs(self.toolchain, self.place.path, in_place_of_others=in_place)

    def key(self, kind: Kind, variant: Variant | None, **inputs: object) -> str:
        """`variant` is whose flags the stage sees, if it sees any."""
        toolchain = self.toolchain
        native = variant is not None and ("native" in (variant.target, *_natives(variant.flags)))
        return key_of(
            {
                "schema": _SCHEMA,
                "kind": kind,
                "source": self.place.revisions.get(self.revision, self.place.source_sha256),
                "build_path": self.place.build_path,
                "toolchain": toolchain.identity
                if variant is None
                else toolchain.identity_for(variant),
                "processor": self.place.processor if native else "",
                **(
                    {"compilers": identities(self.recorded(), self.place.path)}
                    if self.by_project
                    else {}
                ),
                **({"sandbox": self.place.sandbox_key} if self.place.sandbox_key else {}),
                **inputs,
            }
        )


def _natives(flags: str) -> tuple[str, ...]:
    named = (flag.rpartition("target-cpu=") for flag in flags.split())
    rust = tuple(value for _, separator, value in named if separator)
    return (*rust, *(flag.partition("=")[2] for flag in flags.split() if flag.startswith("-m")))


def _dependencies(context: _CompilerContext, variant: Variant | None, use: _Use) -> Stage:
    """Once per compiler; for a variant alone where it gives them its flags."""
    build = context.build
    values = context.values(Flags((), ()) if variant is None else use.flags)
    profile = "" if variant is None else use.profile
    label = f"dependencies with {context.toolchain.name}"
    label += f" at {context.revision}" if context.revision else ""
    if variant is not None:
        label = f"dependencies of {variant.name}{' (instrumented)' if use.counts else ''}"
    commands = filled_all(build.dependencies, values, "build.dependencies")
    clean = filled_all(build.clean, values, "build.clean")
    env = tuple(
        (name, filled(text, values, "build.env"))
        for name, text in sorted(build.env.items())
        if not any(f"{{{key}}}" in text for key in OF_VARIANT)
    )
    return Stage(
        kind="dependencies",
        key=context.key(
            "dependencies", variant, clean=clean, commands=commands, env=env, profile=profile
        ),
        parent="",
        label=label,
        variants=(),
        clean=clean,
        commands=commands,
        env=env,
        deadline_ns=parse_duration_ns(build.deadline),
        disk_bytes=parse_size_bytes(build.disk),
        recorded=context.recorded(),
        profile=profile,
        changes=NO_CHANGES if variant is None else Changes(program_only=_program_only(use.flags)),
        environment=context.toolchain.environment,
    )


def _program(context: _CompilerContext, variant: Variant, parent: str, use: _Use) -> Stage:
    build, flags = context.build, use.flags
    if build.system == "debian":
        flags = beside_libraries(context.toolchain.kind, flags)
    linking = flags.link
    if build.system == "autotools":
        linking = beside_cflags(context.toolchain.kind, flags)
    values = {
        **context.values(flags if variant.dependencies == "flags" else Flags((), ())),
        "cflags": " ".join(flags.compile),
        "cppflags": " ".join(flag for flag in flags.compile if flag.startswith(("-D", "-U"))),
        "ldflags": " ".join(linking),
        "allocator": build.allocators.get(variant.allocator, ""),
    }
    commands = _with_settings(filled_all(build.commands, values, "build.commands"), flags)
    clean = () if parent else filled_all(build.clean, values, "build.clean")
    tool_commands: Commands = ()
    tools: tuple[tuple[str, str], ...] = ()
    if context.is_baseline and not use.counts:
        tool_commands = _with_settings(
            filled_all(build.tool_commands, values, "build.tool_commands"), flags
        )
        tools = tuple(sorted(build.tools.items()))
    env = tuple(
        (name, filled(text, values, "build.env")) for name, text in sorted(build.env.items())
    )
    changes = _changes(build.rewrite, flags)
    if not use.counts:
        changes = replace(changes, units=context.unit_changes(variant, flags))
    laid_over = ("", "") if use.counts else _laid_over(variant)
    kind: Kind = "instrumented" if use.counts else "program"
    relinks = None if use.counts or variant.bolt == "on" else context.relinks(variant)
    check = context.study.check
    keeps_tree = check is not None and check.in_build_tree and not use.counts
    later = {name: f"{{{name}}}" for name in (*PROGRAM, "tmp", "files", *build.tools)}
    checking = check.commands if check is not None and keeps_tree else ()
    training = context.study.training
    only_training = training.runtime_files if training is not None and use.counts else []
    runtime_files = [*build.runtime_files, *only_training]
    taken: dict[str, object] = {
        "clean": clean,
        "strip": variant.strip,
        "profile": use.profile,
        "changes": [changes.compile, changes.link, changes.remove],
        **({"program_only": changes.program_only} if changes.program_only else {}),
        **({} if changes.units is None else {"units": context.unit_inputs(changes.units)}),
        **({"laid_over": context.laid_over_inputs(laid_over)} if laid_over[1] else {}),
        "tool_commands": tool_commands,
        "artifact": build.artifact,
        "tools": tools,
        "runtime_files": runtime_files,
        # Their relinks are part of it, too.
        **({"finds_libraries": "relinked"} if context.study.finds_libraries else {}),
        **({} if relinks is None else {"relinks": as_inputs(relinks)}),
        **({"tree": True} if keeps_tree else {}),
    }
    return Stage(
        kind=kind,
        key=context.key(kind, variant, parent=parent, commands=commands, env=env, **taken),
        parent=parent,
        label=f"{variant.name} (instrumented)" if use.counts else variant.name,
        variants=() if use.counts else (variant.name,),
        clean=clean,
        commands=commands,
        env=env,
        deadline_ns=parse_duration_ns(build.deadline),
        disk_bytes=parse_size_bytes(build.disk),
        tool_commands=tool_commands,
        artifact=build.artifact,
        tools=tools,
        runtime_files=tuple(runtime_files),
        finds_libraries=context.study.finds_libraries,
        strip=kind == "program" and variant.bolt == "off" and variant.strip == "yes",
        recorded=context.recorded(),
        changes=changes,
        relinks=relinks,
        profile=use.profile,
        keep_tree=keeps_tree,
        check_commands=filled_all(checking, {**values, **later}, "check.commands"),
        environment=context.toolchain.environment,
        laid_over=laid_over,
    )


def _laid_over(variant: Variant) -> tuple[str, str]:
    """The revision that some sources of a variant come from, and which; nothing twice for none."""
    other = of_units(variant)
    if other is None or other.revision == variant.revision:
        return "", ""
    return other.revision, variant.units


def _with_settings(commands: Commands, flags: Flags) -> Commands:
    """With as many words for Cargo as the flags need, in the place of one."""
    word = f"{{{CARGO_SETTINGS}}}"
    return tuple(
        tuple(
            setting
            for one in argv
            for setting in (cargo_settings(flags) if one == word else (one,))
        )
        for argv in commands
    )


def _changes(rewrite: Rewrite, flags: Flags) -> Changes:
    """A word that is all of `{cflags}` or `{ldflags}` becomes as many words as there are flags."""
    words = {"{cflags}": flags.compile, "{ldflags}": flags.link}
    link = tuple(flag for word in rewrite.link for flag in words.get(word, (word,)))
    # Where the linker lies; libtool drops it from links of libraries.
    folders = (flag for flag in flags.link if flag.startswith("-B") and flag not in link)
    return Changes(
        tuple(flag for word in rewrite.compile for flag in words.get(word, (word,))),
        (*link, *folders),
        tuple(rewrite.remove),
        _program_only(flags),
    )


def _program_only(flags: Flags) -> tuple[str, ...]:
    """A variant asks for programs of fixed or free position; libraries have no choice."""
    every = (*flags.compile, *flags.link)
    return tuple(dict.fromkeys(flag for flag in every if flag in POSITION_OF_PROGRAMS))
