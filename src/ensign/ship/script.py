"""The stages of a profiled build as a shell script.

The script does what the stages do: each in a fresh copy of its parent's tree at one path, since
compilers find profiles by path. Programs are called by their names. Of ensign it needs nothing,
or the load generator alone, where the training is sent by that. What all scripts share is
read from `shell/`; the rest is pure.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import PurePosixPath

from ensign.builders.commands import Commands
from ensign.builders.profiles import COUNTS, PROFILE, WORKLOAD, TrainingSteps
from ensign.builders.recorder import Recorded, recorded_programs
from ensign.builders.stages import Plan, Stage
from ensign.host.root_directory import RootDirectory
from ensign.model.drive import Drive, drive_json
from ensign.model.errors import InputError
from ensign.model.placeholders import METER, fill, program_values
from ensign.model.study import Study
from ensign.model.study_workload import DriveStep, Workload
from ensign.toolchains.find import Toolchain, installed_compilers
from ensign.toolchains.places import THIS_MACHINE, ProgramPlace


def watched_programs(
    toolchain: Toolchain, path: str, root: RootDirectory | None = None
) -> tuple[Recorded, ...]:
    """Each name runs what it would run without ensign: `cc` is the system's own compiler."""
    place = root or THIS_MACHINE
    programs = {recorded.name: recorded for recorded in recorded_programs(toolchain, path, place)}
    for name in installed_compilers(path, root):
        driver = name.replace("gcc", "g++").replace("clang", "clang++")
        for recorded_program in (Recorded(name, "cc", ""), Recorded(driver, "cxx", "")):
            programs.setdefault(recorded_program.name, recorded_program)
    # What rustup puts on the path starts the real rustc past the recorder.
    places = (
        (program, "" if program.tool == "rustc" else place.which(program.name, path))
        for program in programs.values()
    )
    return tuple(
        replace(recorded, program=where or recorded.program)
        for recorded, where in places
        if where or recorded.program
    )


def called_by_name(toolchain: Toolchain, path: str, place: ProgramPlace) -> Toolchain:
    """As a user calls it: by a name on the search path, where that is the same program."""

    def name(program: str) -> str:
        short = PurePosixPath(program).name
        found_path = place.which(short, path) if short else ""
        same = found_path != "" and place.real(found_path) == place.real(program)
        return short if same else program

    return replace(
        toolchain,
        cc=name(toolchain.cc),
        cxx=name(toolchain.cxx),
        ar=name(toolchain.ar),
        ranlib=name(toolchain.ranlib),
        nm=name(toolchain.nm),
        ld=name(toolchain.ld),
    )


NAME = "build.sh"
FILES = "training"
TREE = "/ENSIGN-TREE"
# What stands in the script for a path; each is a shell variable.
_VARIABLES = {
    TREE: "$tree",
    COUNTS: "$counts",
    PROFILE: "$profile",
    "{jobs}": "$jobs",
    "{port}": "$port",
    "{tmp}": "$tmp",
    WORKLOAD: "$run",
}
_NO_MARKS: Mapping[str, str] = {}
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")

_ADDRESS = "127.0.0.1:PORT"
_NEEDS_NOTHING = "ensign is not needed."
_NEEDS_DRIVER = "The training is sent by ensign-meter,\n# which is on PATH, or named by DRIVER."


@dataclass(frozen=True, slots=True)
class Steps:
    """Parts of a script: the plan, the last stage, the variant, the epoch of its dates."""

    study: Study
    plan: Plan
    last: Stage
    choices: tuple[tuple[str, str], ...]
    epoch: str

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All that lead to the last one, in order, it included."""
        wanted = {self.last.key}
        for stage in reversed(self.plan.stages):
            if stage.key in wanted:
                wanted |= set(stage.inputs)
        return tuple(stage for stage in self.plan.stages if stage.key in wanted)


def script(steps: Steps) -> str:
    """The script. InputError where the recorder changes calls, which no script can."""
    rewrite = steps.study.build.rewrite
    if rewrite.compile or rewrite.link or rewrite.remove:
        raise InputError(
            "'build.rewrite' changes calls of compilers, which a script cannot do; "
            "let the project listen to its variables, and use 'build.commands'"
        )
    drives = drive_files(steps.study)
    values = {
        "title": f"{steps.study.name}, {steps.last.label}",
        "choices": ", ".join(f"{axis} {value}" for axis, value in steps.choices),
        "needs": _NEEDS_DRIVER if drives else _NEEDS_NOTHING,
        "epoch": steps.epoch,
    }
    parts = [fill(_shell("begin"), values)]
    if steps.study.server is not None:
        parts.append(_shell("serve"))
    if drives:
        parts.append(_shell("drive"))
    numbers = {stage.key: number for number, stage in enumerate(steps.stages, 1)}
    tools: dict[str, str] = {}
    for stage in steps.stages:
        made = f'"$work/{numbers[stage.key]}"'
        tools |= {name: f"{made}/{shlex.quote(path)}" for name, path in stage.tools}
        parts.append("\n".join(_stage(steps.study, stage, numbers, tools)) + "\n")
    last = f'"$work/{numbers[steps.last.key]}"/{shlex.quote(steps.last.artifact)}'
    parts.append(f'mkdir -p "$(dirname "$program")"\ncp {last} "$program"\n')
    return "\n".join(parts)


def _shell(name: str) -> str:
    """A fixed part of such scripts."""
    return files("ensign.ship").joinpath("shell", f"{name}.sh").read_text(encoding="utf-8")


def drive_files(study: Study) -> dict[str, bytes]:
    """Requests of ensign's load generator in the training, by the names of their files."""
    files: dict[str, bytes] = {}
    for workload in study.training_workloads:
        for name, drive, operations in _drives(workload):
            document = drive_json(drive, operations=operations, seed=study.race.seed)
            request = {"schema": 1, "address": _ADDRESS, "drive": document}
            files[name] = json.dumps(request, sort_keys=True).encode() + b"\n"
    return files


def _drives(workload: Workload) -> Iterator[tuple[str, Drive, int | None]]:
    """Name, drive and number of operations of each drive, in the order of the run."""
    for number, step in enumerate(workload.preload):
        if isinstance(step, DriveStep):
            yield f"{workload.name}-preload-{number}.json", step.drive, None
    if workload.drive is not None:
        yield f"{workload.name}.json", workload.drive, workload.requests


def log_of_last_step(log: str) -> str:
    """Output of the last step of a script's run: the log of the stage that it stands for."""
    return re.split(r"^step \d+ of \d+: .*\n", log, flags=re.MULTILINE)[-1]


def _stage(
    study: Study, stage: Stage, numbers: Mapping[str, int], tools: Mapping[str, str]
) -> Iterator[str]:
    number = numbers[stage.key]
    yield f"echo {shlex.quote(f'step {number} of {len(numbers)}: {stage.label}')}"
    parent = f'"$work/{numbers[stage.parent]}"' if stage.parent else '"$source"'
    yield f"fresh {parent}"
    if stage.profile:
        yield f'cp -R "$work/{numbers[stage.profile]}/." "$tree"'
    if stage.training_steps is not None:
        yield f"collect {number}"
        yield from _commands(stage.training_steps.instrument, ())
        yield from _trained(_Training(study, stage.training_steps, stage.artifact, tools))
        yield 'cd "$tree"'
        yield from _commands(stage.training_steps.merge, ())
        return
    yield from _commands(stage.commands, stage.env)
    yield from _commands(stage.tool_commands, stage.env)
    if stage.kind == "dependencies":
        yield f'cd "$work"; mv "$tree" "$work/{number}"'
        return
    if stage.strip:
        yield f"strip {shlex.quote(stage.artifact)}"
    names = dict.fromkeys((stage.artifact, *(path for _, path in stage.tools)))
    yield f"keep {number} {' '.join([*map(shlex.quote, names), *map(_glob, stage.runtime_files)])}"


def _commands(commands: Commands, env: Sequence[tuple[str, str]]) -> Iterator[str]:
    assigned = [f"{name}={_word(text)}" for name, text in env]
    for argv in commands:
        words = [*assigned, *map(_word, argv)]
        yield " ".join(["env", *words] if env else words)


def _word(text: str, more: Mapping[str, str] = _NO_MARKS) -> str:
    """One word for the shell: marks become what stands for them, all else is literal."""
    known = {**{mark: f'"{variable}"' for mark, variable in _VARIABLES.items()}, **more}
    pattern = re.compile("|".join(map(re.escape, known)))
    parts = []
    at = 0
    for match in pattern.finditer(text):
        parts += [_literal(text[at : match.start()]), known[match[0]]]
        at = match.end()
    return "".join((*parts, _literal(text[at:]))) or "''"


def _glob(pattern: str) -> str:
    """A pattern of files for the shell: all but what makes it a pattern is literal."""
    parts = re.split(r"([*?\[\]!-]+)", pattern)
    return "".join(part if index % 2 else _literal(part) for index, part in enumerate(parts))


def _literal(text: str) -> str:
    return text if not text or _PLAIN.fullmatch(text) else shlex.quote(text)


@dataclass(frozen=True, slots=True)
class _Training:
    """All runs of one program, whose path in the tree is `artifact`."""

    study: Study
    training_steps: TrainingSteps
    artifact: str
    tools: Mapping[str, str]

    def program(self, own: Iterable[tuple[str, str]], argv: Iterable[str]) -> str:
        """The environment is the program's alone, not that of what loads it."""
        assigned = [f"{name}={self.words([text])}" for name, text in own]
        assigned += [f"{name}={_word(text)}" for name, text in self.training_steps.env]
        wrapper = map(_word, self.training_steps.wrapper)
        return " ".join(("env", *assigned, *wrapper, self.words(argv)))

    def words(self, argv: Iterable[str], requests: int | None = None) -> str:
        """Words of a command of the study, for the shell."""
        marks = {f"{{{name}}}": path for name, path in self.tools.items()}
        values = {
            "variant": "training",
            METER: "ensign-meter",
            **program_values(f"{TREE}/{self.artifact}"),
        }
        if requests is not None:
            values["requests"] = str(requests)
        return " ".join(_word(fill(word, values), marks) for word in argv)


def _trained(training: _Training) -> Iterator[str]:
    server, serving = training.study.server, ""
    for workload in training.training_steps.workloads:
        if server is not None:
            env = {**server.env, **workload.env}
            serve = f'serve() {{ exec {training.program(env.items(), server.command)} "$@"; }}'
            yield from [serve] if serve != serving else []
            serving = serve
        yield f"begin {workload.name}"
        if server is None or workload.command is not None:
            stdin = "/dev/null" if workload.stdin is None else training.words([workload.stdin])
            command = training.program(workload.env.items(), workload.command or ())
            yield f"{command} < {stdin} > /dev/null"
            continue
        given = training.words(workload.server_args, workload.requests)
        yield f"start {shlex.quote(server.ready.output or '')} {given}".rstrip()
        files = (name for name, _, _ in _drives(workload))
        for step in (*workload.preload, workload.load or workload.drive):
            if isinstance(step, list):
                yield f"{training.words(step, workload.requests)} > /dev/null"
            else:
                yield f"drive {shlex.quote(next(files))}"
        yield "stop"
