"""Rules of a study that no single key can break: placeholders, names, what needs what. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ensign.model import placeholders
from ensign.model.study import CheckSection, DriveStep, Server, Study, Workload, counts_itself
from ensign.model.study_problems import Problem, Where, suggestion
from ensign.model.units import parse_duration_ns
from ensign.model.variants import AXES

_LATENCY_SLICE_NS = 250_000_000
_SHELL_VARIABLE = re.compile(r"\$\{\w*\}")


def broken_rules(study: Study) -> tuple[Problem, ...]:
    """Every rule that a well-shaped study breaks, in the order of the file's sections."""
    return (
        *_repeated_values(study),
        *_build(study),
        *_server(study),
        *_workload_names(study.workloads, ("workloads",)),
        *_some_workload(study),
        *_slice_check(study),
        *_mode(study),
        *_stopping(study),
        *_latency(study),
        *_check(study),
        *(
            problem
            for index, workload in enumerate(study.workloads)
            for problem in _workload(study, workload, ("workloads", index))
        ),
        *_training(study),
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
    if study.layouts is not None and study.layouts.variants == "all":
        yield Problem(
            where,
            "'stopping': with layouts of all variants relinks count, not rounds; leave out one",
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


def _build(study: Study) -> Iterator[Problem]:
    build = study.build
    for name in build.tools:
        if name in placeholders.RESERVED:
            text = f"'{name}' cannot be a tool's name: {{{name}}} means something else"
            yield Problem(("build", "tools", name), text)
    toolchain = (*placeholders.TOOLCHAIN, *placeholders.DEPENDENCY_FLAGS)
    for index, argv in enumerate(build.dependencies):
        yield from _unknown(argv, ("build", "dependencies", index), toolchain)
    for key in ("commands", "tool_commands"):
        for index, argv in enumerate(getattr(build, key)):
            yield from _unknown(argv, ("build", key, index), (*toolchain, *placeholders.FLAGS))
    yield from _unknown_in_build_env(build.env, toolchain)


def _server(study: Study) -> Iterator[Problem]:
    server = study.server
    if server is None:
        return
    allowed = ("artifact", *placeholders.PLACES, *study.build.tools)
    yield from _unknown(server.command, ("server", "command"), allowed)
    yield from _unknown_in_env(server.env, ("server", "env"), allowed)
    if not _uses(_server_texts(server), "artifact"):
        text = "'command' has no {artifact}: every variant would run the same program"
        yield Problem(("server", "command"), text)
    if server.ready.output is None and not _uses(_server_texts(server), "port"):
        text = "'command' has no {port} to become ready on; add it, or 'ready.output'"
        yield Problem(("server", "command"), text)


def _workload_names(workloads: Sequence[Workload], where: Where) -> Iterator[Problem]:
    names = [workload.name for workload in workloads]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem((*where, index, "name"), f"'name': two workloads are called '{name}'")


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
    where = ("training", "workloads")
    yield from _workload_names(study.training.workloads, where)
    for index, workload in enumerate(study.training.workloads):
        yield from _workload(study, workload, (*where, index))
        preloads = (word for argv in workload.preload_commands for word in argv)
        if workload.requests is None and _uses([*(workload.load or ()), *preloads], "requests"):
            text = f"training workload '{workload.name}' uses {{requests}}: add 'requests'"
            yield Problem((*where, index), text)
        if workload.drive is not None and workload.fixed_requests is None:
            text = f"training workload '{workload.name}' has a 'drive': add 'requests'"
            yield Problem((*where, index), text)


def _untrained(study: Study) -> Iterator[Problem]:
    """Each place that asks for a profile where there is nothing to learn from."""
    for axis in ("pgo", "bolt"):
        text = f"'{axis}' needs a profile: add [[training.workloads]] to learn from"
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
        elif _uses((*(known[name].command or ()), known[name].input or ""), "port", "variant"):
            text = f"workload '{name}' uses {{port}} or {{variant}}, which a check has not"
            yield Problem(where, f"'same_output': {text}")


def _check_commands(study: Study, check: CheckSection) -> Iterator[Problem]:
    allowed: tuple[str, ...] = ("artifact", "tmp", "files", "jobs", *study.build.tools)
    if check.in_build_tree:
        of_build = (placeholders.TOOLCHAIN, placeholders.FLAGS, placeholders.DEPENDENCY_FLAGS)
        allowed += tuple(name for names in of_build for name in names)
        if not check.commands:
            text = "'in_build_tree' is for 'commands', of which there are none"
            yield Problem(("check", "in_build_tree"), text)
    for index, argv in enumerate(check.commands):
        yield from _unknown(argv, ("check", "commands", index), allowed)


def _ship(study: Study) -> Iterator[Problem]:
    if study.ship is None:
        return
    named = (*placeholders.TOOLCHAIN[:-1], *placeholders.FLAGS, *placeholders.DEPENDENCY_FLAGS)
    for index, edit in enumerate(study.ship.edits):
        where = ("ship", "edits", index)
        if (edit.line is None) == (edit.pattern is None):
            yield Problem(where, "an edit needs exactly one of 'line' and 'pattern'")
        elif edit.pattern is not None:
            try:
                re.compile(edit.pattern)
            except re.error as error:
                text = f"'pattern' is not a regular expression: {error}"
                yield Problem((*where, "pattern"), text)
        plain = _SHELL_VARIABLE.sub("", edit.replace)
        yield from _unknown_in_text(plain, (*where, "replace"), (*named, *placeholders.SHIPPED))
    for index, argv in enumerate(study.ship.commands):
        yield from _unknown(argv, ("ship", "commands", index), placeholders.TOOLCHAIN)


def _workload(study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
    called = f"workload '{workload.name}'"
    kinds = [each for each in (workload.load, workload.drive, workload.command) if each is not None]
    if len(kinds) != 1:
        yield Problem(where, f"{called} needs exactly one of 'load', 'drive' and 'command'")
        return
    yield from _workload_placeholders(study, workload, where)
    yield from _preload_drives(workload, where)
    if workload.drive is not None:
        yield from _drive(study, workload, where)
        return
    if workload.load is not None:
        yield from _load(study, workload, where)
        if workload.output is not None:
            text = f"'output' of {called} is for commands only, not for loads"
            yield Problem((*where, "output"), text)
        return
    if workload.output == "inherit":
        text = f"'output' of {called}: a study's programs write into a pipe, null or a file"
        yield Problem((*where, "output"), text)
    if not _uses(workload.command or (), "artifact"):
        text = (
            f"'command' of {called} has no {{artifact}}: every variant would run the same program"
        )
        yield Problem((*where, "command"), text)
    for key in ("preload", "requests", "rounding", "server_args"):
        if key in workload.model_fields_set:
            yield Problem((*where, key), f"'{key}' of {called} is for loads only, not for commands")


def _preload_drives(workload: Workload, where: Where) -> Iterator[Problem]:
    for index, step in enumerate(workload.preload):
        if isinstance(step, DriveStep) and step.drive.operations is None:
            text = f"a drive in 'preload' of workload '{workload.name}' needs 'operations'"
            yield Problem((*where, "preload", index, "drive"), text)


def _drive(study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
    called = f"workload '{workload.name}'"
    if study.server is None:
        yield Problem((*where, "drive"), f"{called} has a 'drive', but there is no [server]")
    for key in ("input", "deadline", "output", "score", "operations"):
        if key in workload.model_fields_set:
            yield Problem((*where, key), f"'{key}' of {called} means nothing to a drive")
    drive = workload.drive
    if workload.requests is not None and drive is not None and drive.operations is not None:
        text = f"{called} has both 'requests' and 'operations' of its drive; one is enough"
        yield Problem((*where, "requests"), text)


def _mode(study: Study) -> Iterator[Problem]:
    """Slices of drives and slices of processes are raced by different modes."""
    mode = study.race.turns.value
    for index, workload in enumerate(study.workloads):
        called, has = f"workload '{workload.name}'", workload.drive is not None
        if mode == "driven" and not has:
            text = f"{called} has no 'drive', which 'mode' = \"driven\" needs of every workload"
            yield Problem(("workloads", index), text)
        if mode == "interleaved" and has:
            text = f"{called} has a 'drive': set 'mode' in [race] to \"driven\" or \"alternating\""
            yield Problem(("workloads", index, "drive"), text)


def _latency(study: Study) -> Iterator[Problem]:
    """Short slices measure how caches fill, and nothing can queue in them."""
    race = study.race
    if race.mode != "driven" or parse_duration_ns(race.slice) >= _LATENCY_SLICE_NS:
        return
    for index, workload in enumerate(study.workloads):
        if workload.drive is not None and workload.drive.latency:
            text = (
                f"'latency' of workload '{workload.name}' needs slices of 250ms or more, or "
                "whole executions: set 'slice' or 'mode' in [race]"
            )
            yield Problem(("workloads", index, "drive", "latency"), text)


def _load(study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
    called = f"workload '{workload.name}'"
    load = workload.load or []
    if study.server is None:
        yield Problem((*where, "load"), f"{called} has a 'load', but there is no [server]")
    elif not (_uses(load, "port") or _uses(load, "tmp")):
        text = f"'load' of {called} has no {{port}}: it would not reach the variant's own server"
        yield Problem((*where, "load"), text)
    says = workload.operations is not None or workload.score is not None
    asked = _uses(load, "requests") or workload.requests is not None
    if not counts_itself(load) and not asked and not says:
        text = (
            f"'load' of {called} has no {{requests}} and there is no 'requests', 'operations' or "
            "'score': nothing says how many operations it completes"
        )
        yield Problem((*where, "load"), text)


def _workload_placeholders(study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
    common = ("artifact", *placeholders.PLACES, *study.build.tools)
    with_requests = (*common, "requests")
    yield from _unknown(workload.load or (), (*where, "load"), with_requests)
    yield from _unknown(workload.command or (), (*where, "command"), common)
    for index, step in enumerate(workload.preload):
        argv = step if isinstance(step, list) else ()
        yield from _unknown(argv, (*where, "preload", index), with_requests)
    yield from _unknown(workload.server_args, (*where, "server_args"), common)
    for key in ("input", "output"):
        if getattr(workload, key) is not None:
            named = getattr(workload, key)
            yield from _unknown_in_text(named, (*where, key), placeholders.PLACES)


def _server_texts(server: Server) -> tuple[str, ...]:
    return (*server.command, *server.env.values())


def _uses(texts: Iterable[str], *names: str) -> bool:
    return any(name in placeholders.names_in(text) for text in texts for name in names)


def _unknown(argv: Sequence[str], where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    for index, text in enumerate(argv):
        yield from _unknown_in_text(text, (*where, index), allowed)


def _unknown_in_env(env: dict[str, str], where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    for name, text in env.items():
        yield from _unknown_in_text(text, (*where, name), allowed)


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
            yield from _unknown_in_text(text, where, allowed)


def _unknown_in_text(text: str, where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    key = next(str(step) for step in reversed(where) if isinstance(step, str))
    for name in placeholders.names_in(text):
        if name not in allowed:
            near = suggestion(name, allowed).replace("'", "{", 1).replace("'", "}", 1)
            known = "is not known here" if name in placeholders.RESERVED else "is unknown"
            yield Problem(where, f"'{key}': placeholder {{{name}}} {known}{near}")
