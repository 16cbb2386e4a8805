"""Keys of a study for building, checking and shipping its program. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ensign.model.study_values import (
    AllocatorWords,
    Argv,
    Duration,
    Inside,
    Name,
    PathText,
    Reference,
    SizeText,
    VariableName,
)
from ensign.model.validation import Section


class SandboxSection(Section):
    """Parts of the machine that builds, checks, training and races may reach.

    They see it read-only, without home folders, `/tmp`, `/run`, network and other processes; what
    they need of that is named here. Paths are relative to the study's folder. An environment is
    made for them; of the caller's variables they get PATH and those that are named. `/dev` and
    `/proc` are their own, also where something in them is named; `/dev/shm` has 256 MiB.
    """

    read: list[PathText] = Field(
        default_factory=list, description="files and folders that they may read besides"
    )
    write: list[PathText] = Field(
        default_factory=list, description="files and folders that they may change"
    )
    network: bool = Field(default=False, description="they may use the machine's network")
    env: list[VariableName] = Field(
        default_factory=list, description="the caller's variables that they get"
    )
    memory: SizeText | None = Field(
        default=None,
        description="most that one command may use, with all that it starts; without it 90 % of "
        "the machine's",
    )
    processes: int = Field(
        default=4096, ge=16, le=4_000_000, description="most of them at a time, per command"
    )
    disk: SizeText = Field(
        default="4GiB", description="most that one program may write below `{tmp}` in a race"
    )
    confined: bool = Field(
        default=True, description="false: they run as they are, with all rights of the caller"
    )


SystemName = Literal["cmake", "autotools", "meson", "make", "cargo", "debian"]
FlagsBy = Literal["variables", "environment", "recorder"]


class Rewrite(Section):
    """The recorder's changes of calls, for projects that do not listen to their variables.

    `{cflags}` and `{ldflags}` stand for the variant's flags. `compile` is added at the end of
    calls that compile, `link` of calls that link; `remove` drops flags that match a glob pattern.
    """

    compile: list[str] = Field(default_factory=list, description="flags added when compiling")
    link: list[str] = Field(default_factory=list, description="flags added when linking")
    remove: list[str] = Field(default_factory=list, description="flags dropped (glob patterns)")


class Build(Section):
    """The build of a variant: by a build `system`, or by `commands` of the study's own.

    A `system` builds in the folder `ensign-build` of the source folder, so `artifact` begins with
    that: `ensign-build/src/program`. Make and debian/rules build where the project does; what
    Cargo makes lies in `ensign-build` itself.

    Commands are argument lists, run in the source folder.

    Placeholders: `{cc}` `{cxx}` `{ar}` `{ranlib}` `{nm}` `{ld}` (the variant's toolchain),
    `{cflags}` `{ldflags}` (one argument each, flags joined by blanks), `{allocator}`, `{jobs}`;
    of Rust `{cargo}`, `{rust_target}` (such as x86_64-unknown-linux-gnu) and `{cargo_settings}`,
    as a word of its own after `env`: the flags as settings of Cargo's release profile.
    `dependencies` sees the toolchain and is run once per compiler. Its `{dependency_cflags}` and
    `{dependency_ldflags}` are empty, but for variants whose `dependencies` are `flags`.
    `tool_commands` is run after `commands` for the baseline alone, and makes `tools`.
    """

    system: SystemName | None = Field(
        default=None, description="the project's build system, which needs no commands here"
    )
    folder: Inside = Field(
        default=".", description="where the system's file is, such as CMakeLists.txt"
    )
    options: list[str] = Field(
        default_factory=list,
        description="more words for cmake, configure or meson setup; variables for make or "
        "debian/rules",
    )
    targets: list[Reference] = Field(
        default_factory=list, description="what the system is to build (default: all)"
    )
    in_source: bool = Field(
        default=False, description="build in the source folder, where a project insists on that"
    )
    flags_by: FlagsBy = Field(
        default="variables",
        description="how flags arrive: by the system's variables, by the environment (make, "
        "autotools), or by the recorder, for projects that do not listen",
    )
    environment: str | None = Field(
        default=None,
        min_length=1,
        description="of [environments]: where compilers without @NAME live, and builds take place",
    )
    clean: list[Argv] = Field(
        default_factory=list,
        description="commands run before all others, to remove what was built in the tree earlier",
    )
    prebuilt: list[Inside] = Field(
        default_factory=list,
        description="objects and libraries of the source that are linked as they are (globs)",
    )
    own_flags: list[Inside] = Field(
        default_factory=list,
        description="sources that the project compiles with flags of its own, on purpose (globs)",
    )
    dependencies: list[Argv] = Field(
        default_factory=list, description="commands run once per compiler, without {cflags}"
    )
    commands: list[Argv] = Field(
        default_factory=list, description="commands run for each variant, without a system"
    )
    tool_commands: list[Argv] = Field(
        default_factory=list, description="run for the baseline alone, to build its tools"
    )
    artifact: Inside = Field(description="the program, relative to the source folder")
    tools: dict[Name, Inside] = Field(
        default_factory=dict,
        description="other programs of the baseline's build, usable as {NAME} in workloads",
    )
    allocators: AllocatorWords = Field(
        default_factory=dict, description="the project's own words for allocators: {allocator}"
    )
    rewrite: Rewrite = Field(
        default=Rewrite(), description="changes to recorded compiler and linker calls"
    )
    runtime_files: list[Inside] = Field(
        default_factory=list,
        description="more files that the program needs when it runs (globs); one that ends with a "
        "slash is a folder without what is in it",
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="environment of all build commands, without {cflags}"
    )
    deadline: Duration = Field(default="30m", description="for one variant's build")
    disk: SizeText = Field(default="4GiB", description="most that one build may write")


class CheckSection(Section):
    """A test that a variant must pass to be allowed to win.

    `commands` run in a copy of the source folder that has the variant's program and the baseline's
    tools at their places (or, `in_build_tree`, in a copy of the tree in which the variant was
    built, with the environment and the placeholders of its build); each must exit with 0.
    `same_output` names workloads with a `command` whose standard output must equal the baseline's,
    up to `tolerance` in its numbers; without it, all whose output the baseline prints twice alike.
    """

    commands: list[Argv] = Field(default_factory=list, description="the program's own tests")
    package: bool = Field(
        default=False,
        description="the tests that debian/rules runs in a build (dh_auto_test), in the tree of "
        "each build, for build.system 'debian'",
    )
    in_build_tree: bool = Field(
        default=False,
        description="commands run in the tree of each build, as it was afterwards",
    )
    same_output: list[str] | None = Field(
        default=None,
        description="workloads whose output must be the baseline's (default: all with a command)",
    )
    tolerance: float = Field(
        default=0.0, ge=0.0, lt=1.0, description="relative difference of numbers that is allowed"
    )
    deadline: Duration = Field(default="10m", description="for all checks of one variant")


class Edit(Section):
    """One change of a file of the source, at the one place where `line` or `pattern` matches.

    With `create` the file is a new one, such as CMakePresets.json or a native file of Meson.

    In `replace` stand `{cc}` `{cxx}` `{ar}` `{ranlib}` `{nm}` `{ld}` (names of programs), `{opt}`
    (the level), `{cflags}`, `{ldflags}`, `{link_only}` (of the latter those that are not in
    `{cflags}`), `{lto}` and `{allocator}`; `${NAME}` and `$env{NAME}` are left as they are.
    `{cflags_list}`, `{ldflags_list}` and `{link_only_list}` are flags as a list of Meson has them:
    `'-O3', '-flto'`.

    `{sources}` are lines for sources with flags of their own (the axis `units`), none where there
    are no such sources. Each is `each_source`, in which stand `{source}` (its path below the source
    folder), `{stem}` (that without its suffix), `{name}` (the last part of `{stem}`) and
    `{source_flags}` (what it gets besides `{cflags}`).
    """

    file: Inside = Field(description="the file, relative to the source folder")
    line: str | None = Field(default=None, min_length=1, description="a whole line, literally")
    pattern: str | None = Field(default=None, min_length=1, description="a regular expression")
    create: bool = Field(default=False, description="the file is new, and `replace` all its text")
    replace: str = Field(description="what comes in its place; \\1 is a group of `pattern`")
    each_source: str | None = Field(
        default=None, min_length=1, description="a line of `{sources}`, such as `{stem}.o: …`"
    )


class Ship(Section):
    """Shipping of a build that won: a change of the project's files, and its plain build.

    `commands` are what the project's users type; they know the toolchain, but get no flags.
    """

    edits: list[Edit] = Field(min_length=1, description="the change of the project's files")
    commands: list[Argv] = Field(
        min_length=1, description="the project's own build, without {cflags}, to verify the change"
    )
