"""The stages of a profiled build as a shell script that needs no ensign. Pure.

The script does what the stages do: each in a fresh copy of its parent's tree at one path, since
compilers find profiles by path. Programs are called by their names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ensign.builders.commands import Commands
from ensign.builders.profiles import COUNTS, PROFILE, WORKLOAD, Learning
from ensign.builders.stages import Plan, Stage
from ensign.model.errors import InputError
from ensign.model.placeholders import fill
from ensign.model.study import Study

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

_HEAD = """\
#!/bin/bash
# Builds {title}: {choices}.
# The steps are those of the build that was measured. ensign is not needed.
#
#   bash build.sh SOURCE PROGRAM [FOLDER]
#
# SOURCE is the pristine source, which is copied; PROGRAM is the file to make. FOLDER is a new one
# for trees and profiles; without it they are made in a temporary folder, and removed. Trained
# programs listen on ports above PORT; JOBS is how many commands make may run at once.
set -euo pipefail
shopt -s globstar
[ $# -ge 2 ] || {{ echo "usage: bash build.sh SOURCE PROGRAM [FOLDER]" >&2; exit 2; }}
here=$(cd "$(dirname "$0")" && pwd)
files=$here/training
[ -d "$files" ] || files=$here
source=$(cd "$1" && pwd)
program=$(realpath -m "$2")
jobs=${{JOBS:-$(nproc)}} port=${{PORT:-7411}} server=
if [ $# -ge 3 ]; then
    work=$(realpath -m "$3")
    mkdir "$work"
else
    work=$(realpath "$(mktemp -d)")
fi
tree=$work/tree
leave() {{
    [ -z "$server" ] || kill -KILL "$server" || true
    [ -n "${{3:-}}" ] || rm -rf "$work"
}}
trap 'leave "$@"' EXIT
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH={epoch}

# fresh FROM: the tree anew, as a copy.
fresh() {{ cd "$work"; rm -rf "$tree"; cp -a "$1" "$tree"; cd "$tree"; }}
# keep TO NAME...: what the next steps need of the tree.
keep() {{ to=$work/$1; shift; mkdir -p "$to"; cp -a --parents "$@" "$to"; }}
# begin RUN: a run of the program, in the folder of the files that it reads.
begin() {{ run=$1; echo "training: $run"; tmp=$(mktemp -d -p "$work"); cd "$files"; }}
# learn TO: folders for what is counted, and for the profile that is made of it.
learn() {{ counts=$work/counts profile=$work/$1; rm -rf "$counts"; mkdir "$counts" "$profile"; }}
"""
_SERVER = """\
# await PATTERN: until the server listens, or until its output has the pattern.
await() {
    for _ in $(seq 600); do
        kill -0 "$server" || { echo "the server ended:" >&2; cat "$tmp/log" >&2; exit 1; }
        if [ -n "$1" ]; then
            ! grep -Eq "$1" "$tmp/log" || return 0
        elif (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
            return 0
        fi
        sleep 0.1
    done
    echo "the server was not ready after a minute" >&2
    exit 1
}
# start PATTERN: the server, on a port that none before it had.
start() {
    port=$((port + 1))
    ( cd "$tmp"; serve > "$tmp/log" 2>&1 ) & server=$!
    await "$1"
}
# A server writes its counts when it ends, so it is asked to.
stop() { kill -TERM "$server"; wait "$server" || true; server=; }
"""


@dataclass(frozen=True, slots=True)
class Steps:
    """What a script is made of: the plan, the last stage, the variant, the epoch of its dates."""

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
    title = f"{steps.study.name}, {steps.last.label}"
    choices = ", ".join(f"{axis} {value}" for axis, value in steps.choices)
    parts = [_HEAD.format(title=title, choices=choices, epoch=steps.epoch)]
    if steps.study.server is not None:
        parts.append(_SERVER)
    numbers = {stage.key: number for number, stage in enumerate(steps.stages, 1)}
    tools: dict[str, str] = {}
    for stage in steps.stages:
        tools |= {name: f'"$work/{numbers[stage.key]}/{path}"' for name, path in stage.tools}
        parts.append("\n".join(_stage(steps.study, stage, numbers, tools)) + "\n")
    last = f'"$work/{numbers[steps.last.key]}/{steps.last.artefact}"'
    parts.append(f'mkdir -p "$(dirname "$program")"\ncp {last} "$program"\n')
    return "\n".join(parts)


def log_of_last_step(log: str) -> str:
    """What the last step of a script's run printed: the log of the stage that it stands for."""
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
    if stage.learning is not None:
        yield f"learn {number}"
        yield from _commands(stage.learning.instrument, ())
        yield from _trained(_Training(study, stage.learning, stage.artefact, tools))
        yield 'cd "$tree"'
        yield from _commands(stage.learning.merge, ())
        return
    yield from _commands(stage.commands, stage.env)
    yield from _commands(stage.tool_commands, stage.env)
    if stage.kind == "dependencies":
        yield f'cd "$work"; mv "$tree" "$work/{number}"'
        return
    if stage.strip:
        yield f"strip {shlex.quote(stage.artefact)}"
    names = dict.fromkeys((stage.artefact, *(path for _, path in stage.tools)))
    yield f"keep {number} {' '.join([*map(shlex.quote, names), *stage.keep])}"


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


def _literal(text: str) -> str:
    return text if not text or _PLAIN.fullmatch(text) else shlex.quote(text)


@dataclass(frozen=True, slots=True)
class _Training:
    """All runs of one program, whose path in the tree is `artefact`."""

    study: Study
    learning: Learning
    artefact: str
    tools: Mapping[str, str]

    def program(self, own: Iterable[tuple[str, str]], argv: Iterable[str]) -> str:
        """The environment is the program's alone, not that of what loads it."""
        assigned = [f"{name}={self.words([text])}" for name, text in own]
        assigned += [f"{name}={_word(text)}" for name, text in self.learning.env]
        wrapper = map(_word, self.learning.wrapper)
        return " ".join(("env", *assigned, *wrapper, self.words(argv)))

    def words(self, argv: Iterable[str], requests: int | None = None) -> str:
        """Words of a command of the study, for the shell."""
        marks = {f"{{{name}}}": path for name, path in self.tools.items()}
        values = {"arm": "training", "artefact": f"{TREE}/{self.artefact}"}
        if requests is not None:
            values["requests"] = str(requests)
        return " ".join(_word(fill(word, values), marks) for word in argv)


def _trained(training: _Training) -> Iterator[str]:
    server = training.study.server
    if server is not None:
        yield f"serve() {{ exec {training.program(server.env.items(), server.command)}; }}"
    for workload in training.learning.workloads:
        if workload.drive is not None or len(workload.preload_commands) < len(workload.preload):
            raise InputError(
                f"training '{workload.name}' is sent by ensign's own load generator, which a "
                "script without ensign lacks: to ship a profiled build, train it with 'load'"
            )
        yield f"begin {workload.name}"
        if server is None or workload.load is None:
            stdin = "/dev/null" if workload.input is None else training.words([workload.input])
            yield f"{training.program((), workload.command or ())} < {stdin} > /dev/null"
            continue
        yield f"start {shlex.quote(server.ready.output or '')}"
        for argv in (*workload.preload_commands, workload.load):
            yield f"{training.words(argv, workload.requests)} > /dev/null"
        yield "stop"
