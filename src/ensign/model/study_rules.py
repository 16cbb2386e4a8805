"""Rules of a study that no single key can break: placeholders, names, what needs what. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ensign.model import placeholders
from ensign.model.study import Study
from ensign.model.study_axes import Choice
from ensign.model.study_build import CheckSection
from ensign.model.study_environment import HOST
from ensign.model.study_problems import (
    Problem,
    Where,
    suggestion,
    unknown,
    unknown_in_env,
    unknown_in_text,
    uses,
)
from ensign.model.study_source import DebianSource, GitSource, PathSource
from ensign.model.study_workload import Server
from ensign.model.training_choice import read_training_choice
from ensign.model.variants import AXES, OWN_COMPILER

# Also those of CMake: ${sourceDir}, $env{HOME}.
_SHELL_VARIABLE = re.compile(r"\$\w*\{\w*\}")


def broken_rules(study: Study) -> tuple[Problem, ...]:
    """Every rule that a well-shaped study breaks, in the order of the file's sections."""
    return (
        *_repeated_values(study),
        *_environments(study),
        *_by_project(study),
        *_revisions(study),
        *_debian(study),
        *_build(study),
        *_server(study),
        *_some_workload(study),
        *_slice_check(study),
        *_stopping(study),
        *_prefer(study),
        *_check(study),
        *_training(study),
        *_training_choices(study),
        *_ship(study),
    )


def absent_cpus(study: Study, machine_cpus: frozenset[int]) -> tuple[Problem, ...]:
    """CPUs that the study names and the machine has not."""
    have = ", ".join(str(cpu) for cpu in sorted(machine_cpus))
    return tuple(
        Problem(
            ("cpus", role, index),
            f"'{role}': CPU {cpu} is not on this machine, which has CPUs {have}",
        )
        for role in ("server", "load")
        for index, cpu in enumerate(getattr(study.cpus, role) or ())
        if cpu not in machine_cpus
    )


def _stopping(study: Study) -> Iterator[Problem]:
    if study.race.stopping != "sequential":
        return
    where = ("race", "stopping")
    if study.race.confirm is not None:
        yield Problem(where, "'stopping': sequential rounds claim by themselves; leave out confirm")
    if study.layouts.variants == "all":
        yield Problem(
            where,
            "'stopping': with layouts of all variants relinks count, not rounds; leave out one",
        )


def _prefer(study: Study) -> Iterator[Problem]:
    if study.race.prefer == "robust" and study.layouts.variants != "all":
        yield Problem(
            ("race", "prefer"),
            "'prefer': a robust build is chosen by its relinks, which this study does not race; "
            "[layouts] races them, or leave out 'prefer'",
        )


def _repeated_values(study: Study) -> Iterator[Problem]:
    for axis in AXES:
        yield from _repeated(getattr(study.axes, axis), ("axes", axis), f"'{axis}'")
    for role in ("server", "load"):
        cpus = [str(cpu) for cpu in getattr(study.cpus, role) or ()]
        yield from _repeated(cpus, ("cpus", role), f"'{role}'")


def _repeated(values: Sequence[str], where: Where, what: str) -> Iterator[Problem]:
    for index, value in enumerate(values):
        if value in values[:index]:
            yield Problem((*where, index), f"{what}: '{value}' is given twice")


def _environments(study: Study) -> Iterator[Problem]:
    for name, environment in study.environments.items():
        if name == HOST:
            text = f"'{HOST}' is this machine; give the environment another name"
            yield Problem(("environments", name), text)
        for key, text in environment.problems():
            yield Problem(("environments", name, *([key] if key else [])), text)
    named: list[tuple[Where, str]] = [
        (("axes", "compiler", index), compiler.partition("@")[2])
        for index, compiler in enumerate(study.axes.compiler)
    ]
    named += [
        (("include", index, "compiler"), (choice.compiler or "").partition("@")[2])
        for index, choice in enumerate(study.include)
    ]
    named.append((("build", "environment"), study.build.environment or ""))
    for where, name in named:
        if name and name != HOST and name not in study.environments:
            near = suggestion(name, [*study.environments, HOST])
            yield Problem(where, f"there is no environment '{name}' in [environments]{near}")


def _by_project(study: Study) -> Iterator[Problem]:
    """Nothing is asked of a build whose flags are its own."""
    axes, build = study.axes, study.build
    if OWN_COMPILER not in (*axes.compiler, *(choice.compiler for choice in study.include)):
        return
    own = f"compiler '{OWN_COMPILER}' leaves all flags to the project's own commands"
    varied = [axis for axis in AXES if axis in axes.model_fields_set]
    if axes.compiler != [OWN_COMPILER] or study.include:
        yield Problem(("axes", "compiler"), f"{own}, so there is no other compiler beside it")
    for axis in varied:
        if axis not in ("compiler", "revision"):
            yield Problem(("axes", axis), f"{own}, so '{axis}' would say nothing; leave it out")
    if build.system is not None:
        text = f"{own}, and a system hands flags over; write 'commands' instead"
        yield Problem(("build", "system"), text)
    if study.layouts is not None and study.layouts.how == "shuffle":
        text = f"{own}, and 'shuffle' needs one of ours; write how = \"order\""
        yield Problem(("layouts", "how"), text)


def _revisions(study: Study) -> Iterator[Problem]:
    source = study.source
    varied = "revision" in study.axes.model_fields_set
    if isinstance(source, GitSource):
        if varied and "commit" in source.model_fields_set:
            text = "'commit' is not built where axes.revision says which commits; leave out one"
            yield Problem(("source", "commit"), text)
        return
    way_out = "revisions are those of a git repository"
    if isinstance(source, PathSource):
        way_out = (
            f'a folder is built as it is; commits of it are kind = "git" and url = "{source.path}"'
        )
    if varied:
        yield Problem(("axes", "revision"), f"'revision' needs source.kind \"git\": {way_out}")
    for index, choice in enumerate(study.include):
        if choice.revision is not None:
            where = ("include", index, "revision")
            yield Problem(where, f"'revision' needs source.kind \"git\": {way_out}")


def _debian(study: Study) -> Iterator[Problem]:
    source = study.source
    if study.build.system != "debian":
        return
    if isinstance(source, DebianSource) and not source.patches:
        text = "system 'debian' builds by debian/rules, which come with Debian's patches"
        yield Problem(("source", "patches"), f"{text}: source.patches = true")


def _build(study: Study) -> Iterator[Problem]:
    build = study.build
    for name in build.tools:
        if name in placeholders.RESERVED:
            text = f"'{name}' cannot be a tool's name: {{{name}}} means something else"
            yield Problem(("build", "tools", name), text)
    toolchain = (*placeholders.TOOLCHAIN, *placeholders.DEPENDENCY_FLAGS)
    for index, argv in enumerate(build.dependencies):
        yield from unknown(argv, ("build", "dependencies", index), toolchain)
    known = (*toolchain, *placeholders.RUST, *placeholders.FLAGS)
    for key in ("commands", "tool_commands"):
        for index, argv in enumerate(getattr(build, key)):
            yield from unknown(argv, ("build", key, index), known)
    yield from unknown(build.options, ("build", "options"), known)
    yield from _unknown_in_build_env(build.env, toolchain)


def _server(study: Study) -> Iterator[Problem]:
    server = study.server
    if server is None:
        return
    allowed = (*placeholders.PROGRAM, *placeholders.PLACES, *study.build.tools)
    yield from unknown(server.command, ("server", "command"), allowed)
    yield from unknown_in_env(server.env, ("server", "env"), allowed)
    if not uses(_server_texts(server), *placeholders.PROGRAM, "files"):
        text = "'command' has no {artifact}: every variant would run the same program"
        yield Problem(("server", "command"), text)
    if server.ready.output is None and not uses(_server_texts(server), "port"):
        text = "'command' has no {port} to become ready on; add it, or 'ready.output'"
        yield Problem(("server", "command"), text)


def _training(study: Study) -> Iterator[Problem]:
    if study.training is None:
        yield from _untrained(study)
        return
    if not study.training.workloads and not study.training.tests:
        text = "[training] needs [[training.workloads]], or 'tests' of the [suite]"
        yield Problem(("training",), text)
    if study.training.tests and study.suite is None:
        text = "'tests' of the training are tests of a [suite], and there is none"
        yield Problem(("training", "tests"), text)
    bolts = {*study.axes.bolt, *(rule.bolt for rule in study.include)}
    if study.training.runtime_files and "on" in bolts:
        # BOLT instruments what is raced, with the files that it is raced with.
        text = "with BOLT, files for training must be in 'build.runtime_files'"
        yield Problem(("training", "runtime_files"), text)


def _training_choices(study: Study) -> Iterator[Problem]:
    """Workloads and tests that variants name beside their training, where there are none."""
    choices: list[tuple[Where, str]] = [
        (("axes", "training", index), each) for index, each in enumerate(study.axes.training)
    ]
    rules: list[tuple[Where, Choice]] = [
        *((("include", index), each) for index, each in enumerate(study.include)),
        (("baseline",), study.baseline),
    ]
    choices += [((*where, "training"), rule.training or "") for where, rule in rules]
    trained = [] if study.training is None else study.training.workloads
    for where, text in choices:
        choice = read_training_choice(text)
        known = [workload.name for workload in (trained if choice.without else study.workloads)]
        for name in choice.names:
            if name not in known:
                what = "training workload" if choice.without else "workload"
                near = suggestion(name, known)
                yield Problem(where, f"'training': there is no {what} '{name}'{near}")


def _untrained(study: Study) -> Iterator[Problem]:
    """Each place that asks for a profile where there is nothing to train it on."""
    for axis in ("pgo", "bolt"):
        text = f"'{axis}' needs a profile: add [[training.workloads]] to train it on"
        values = getattr(study.axes, axis)
        if "on" in values:
            yield Problem(("axes", axis, values.index("on")), text)
        for index, choice in enumerate(study.include):
            if getattr(choice, axis) == "on":
                yield Problem(("include", index, axis), text)


def _some_workload(study: Study) -> Iterator[Problem]:
    if not study.workloads and study.suite is None:
        yield Problem((), "the study has no [[workloads]], and no [suite] to take them from")


def _slice_check(study: Study) -> Iterator[Problem]:
    names = [workload.name for workload in study.workloads]
    for index, name in enumerate(study.race.slice_check):
        if name not in names and study.suite is None:
            text = f"'slice_check': no workload is called '{name}'{suggestion(name, names)}"
            yield Problem(("race", "slice_check", index), text)
    if study.race.slice_check and study.race.mode == "alternating":
        text = "'slice_check' is for slices, and 'mode' is 'alternating'"
        yield Problem(("race", "slice_check"), text)


def _check(study: Study) -> Iterator[Problem]:
    check = study.check
    if check is None:
        return
    yield from _check_commands(study, check)
    if check.tolerance and check.same_output == []:
        text = "'tolerance' is for the numbers of 'same_output', which names no workload"
        yield Problem(("check", "tolerance"), text)
    known = {workload.name: workload for workload in study.workloads}
    runs = [name for name, workload in known.items() if workload.command is not None]
    named = check.same_output or []
    yield from _repeated(named, ("check", "same_output"), "'same_output'")
    for index, name in enumerate(named):
        where = ("check", "same_output", index)
        if name not in known:
            near = suggestion(name, runs)
            yield Problem(where, f"'same_output': no workload is called '{name}'{near}")
        elif known[name].command is None:
            text = f"workload '{name}' has no 'command', so it has no output of its own"
            yield Problem(where, f"'same_output': {text}")
        elif reason := known[name].race_only:
            text = f"workload '{name}' {reason}, which a check does not have"
            yield Problem(where, f"'same_output': {text}")


def _check_commands(study: Study, check: CheckSection) -> Iterator[Problem]:
    allowed: tuple[str, ...] = (*placeholders.PROGRAM, "tmp", "files", "jobs", *study.build.tools)
    if check.in_build_tree:
        of_build = (placeholders.TOOLCHAIN, placeholders.FLAGS, placeholders.DEPENDENCY_FLAGS)
        allowed += tuple(name for names in of_build for name in names)
        if not check.commands:
            text = "'in_build_tree' is for 'commands', of which there are none"
            yield Problem(("check", "in_build_tree"), text)
    for index, argv in enumerate(check.commands):
        yield from unknown(argv, ("check", "commands", index), allowed)


def _ship(study: Study) -> Iterator[Problem]:
    if study.ship is None:
        return
    named = (
        *placeholders.TOOLCHAIN[:-1],
        *placeholders.FLAGS,
        *placeholders.DEPENDENCY_FLAGS,
    )
    for index, edit in enumerate(study.ship.edits):
        where = ("ship", "edits", index)
        if edit.create and (edit.line, edit.pattern) != (None, None):
            yield Problem(where, "an edit with 'create' makes a file, so it has no place in one")
        elif not edit.create and (edit.line is None) == (edit.pattern is None):
            yield Problem(where, "an edit needs exactly one of 'line' and 'pattern'")
        elif edit.pattern is not None:
            try:
                re.compile(edit.pattern)
            except re.error as error:
                text = f"'pattern' is not a regular expression: {error}"
                yield Problem((*where, "pattern"), text)
        plain = _SHELL_VARIABLE.sub("", edit.replace)
        yield from unknown_in_text(plain, (*where, "replace"), (*named, *placeholders.SHIPPED))
    for index, argv in enumerate(study.ship.commands):
        yield from unknown(argv, ("ship", "commands", index), placeholders.TOOLCHAIN)


def _server_texts(server: Server) -> tuple[str, ...]:
    return (*server.command, *server.env.values())


def _unknown_in_build_env(env: dict[str, str], allowed: Sequence[str]) -> Iterator[Problem]:
    """Flags are no part of it: the dependencies' commands, which see it, too, are run without."""
    for name, text in env.items():
        where = ("build", "env", name)
        flags = [each for each in placeholders.names_in(text) if each in placeholders.FLAGS]
        if flags:
            way_out = f'begin commands of build.commands with "env", "{name}={text}"'
            yield Problem(
                where, f"'{name}': placeholder {{{flags[0]}}} is not known here; {way_out}"
            )
        else:
            yield from unknown_in_text(text, where, allowed)
