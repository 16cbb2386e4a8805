"""`compare --revisions`: commits of the repository here, and the study that they are raced by."""

from __future__ import annotations

import glob
import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath

from ensign.experiment.compare.commands import (
    CommandVariant,
    command_variants,
    output_file,
    parse_env,
)
from ensign.experiment.compare.options import (
    DEFAULT_BUDGET_NS,
    DEFAULT_PRECISION,
    Options,
    split_command,
)
from ensign.experiment.compare.workloads import CommandWorkload, workloads_of
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_study
from ensign.experiment.study_file import StudyFile
from ensign.host.temporary import temporary_folder
from ensign.model.errors import InputError, StudyError
from ensign.model.finding_kinds.builds import REVISIONS, UNCOMMITTED
from ensign.model.findings import Finding
from ensign.model.placeholders import PLACES
from ensign.model.study_axes import FIRST_RELINKS
from ensign.model.trials import Metric
from ensign.model.variants import OWN_COMPILER
from ensign.sources.checkouts import Commit, UserRepository, names_of

NAME = "revisions"
# Rounds that were asked for take as long as they take.
_NO_END_NS = 24 * 3600 * 10**9
_BRACES = re.compile(r"\{([A-Za-z][A-Za-z0-9_.+-]*)\}")
_NO_NAME = re.compile(r"(?:[^a-z0-9_.+-]|\.(?=/))+")
_LONGEST_NAME = 60
_OPTIONS_OF_COMMANDS = {
    "setup": "put it into --build",
    "cleanup": "what a checkout holds is removed anyway",
    "max_runs": "--runs is an exact number, --budget and --precision bound the time",
}


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """Request to the repository at `top`: two revisions, the baseline first.

    `inside` is the user's folder below it, empty where it is that. `has` says whether the commits
    both have a path, and `files` are globs of more that the command needs.
    """

    top: str
    names: tuple[str, str]
    inside: str
    has: Callable[[str], bool]
    files: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Folder in which commands of a variant begin."""
        return f"{{files}}/{self.inside}".rstrip("/")

    def placed(self, word: str) -> str:
        """A path below the repository's top folder. InputError where it leads out of it."""
        path = posixpath.normpath(posixpath.join(self.inside, word))
        if path.split("/")[0] == "..":
            raise InputError(f"--revisions: {word} leads out of the repository")
        return path


def study_text(options: Options, at: CheckedOut) -> str:
    """The study as TOML. InputError for an option that a study has no place for."""
    _check(options)
    if options.build is None:
        raise InputError(
            "--revisions needs --build COMMAND, which builds the program that is raced"
        )
    every = [
        (workload, command)
        for workload in workloads_of(options, _commands(options))
        for command in workload.commands
    ]
    first = every[0][1]
    program = _program(first, options, at)
    workloads = [_workload(workload, command, program, at) for workload, command in every]
    tables: dict[str, object] = {
        "name": NAME,
        "title": f"{at.names[1]} against {at.names[0]}",
        "source": {"kind": "git", "url": at.top},
        "build": {
            "commands": [_build(options.build, options.shell, at)],
            "artifact": program,
            "runtime_files": sorted(_files(every, program, at)),
        },
        "axes": {"compiler": [OWN_COMPILER], "revision": list(at.names)},
        "baseline": {"revision": at.names[0]},
        "layouts": {"count": max(2, min(FIRST_RELINKS, runs))}
        if (runs := options.most_runs)
        else {},
        "race": dict(_race(options)),
        "workloads": _uniquely_named(workloads),
    }
    if options.serves:
        if any(command.argv != first.argv for _, command in every):
            raise InputError("--revisions races one server: give what varies to --load")
        tables["server"] = _server(first, options, program, at)
    if options.cpus is not None:
        tables["cpus"] = {"server": list(options.cpus)}
    return "".join(f"{key} = {_toml(value)}\n" for key, value in tables.items())


def _check(options: Options) -> None:
    for name, instead in _OPTIONS_OF_COMMANDS.items():
        if getattr(options, name):
            option = name.replace("_", "-")
            raise InputError(f"--{option} has no place in --revisions: {instead}; leave it out")
    if not options.twin:
        raise InputError("--no-twin has no place in --revisions: the twin is the baseline's check")
    if options.names:
        raise InputError("--name is for commands; with --revisions these are named after them")
    if options.output == "inherit":
        raise InputError("--revisions shows no output of programs; name a file: --output FILE")


def _commands(options: Options) -> tuple[CommandVariant, ...]:
    """Each command once, checked as they are when they are compared with each other."""
    own = ("prepare", "load", "preload")
    several = {part: texts * 2 for part in own if len(texts := getattr(options, part)) > 1}
    twice = command_variants(replace(options, commands=options.commands * 2, **several))
    return twice[: len(options.commands)]


def _words(command: CommandVariant, options: Options) -> tuple[str, ...]:
    """The words of a command, those of what a shell is handed, too."""
    if not options.shell:
        return command.argv
    text = command.argv[-1]
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return tuple(lexer)
    except ValueError as error:
        raise InputError(f"the command '{text}' cannot be split: {error}") from None


def _is_path(word: str) -> bool:
    return "/" in word and not word.startswith(("/", "-", "{")) and "=" not in word


def _program(command: CommandVariant, options: Options, at: CheckedOut) -> str:
    """The first word that names a file which no commit has: what the build makes."""
    for word in filter(_is_path, _words(command, options)):
        if not at.has(path := at.placed(word)):
            return path
    raise InputError(
        f"--revisions races a program that --build makes, and '{command.text}' names none by its "
        "path, as './program input' does; for what is not built, such as a script, run 'git "
        "worktree add' for each commit and compare two commands"
    )


def _files(
    every: Sequence[tuple[CommandWorkload, CommandVariant]], program: str, at: CheckedOut
) -> Iterator[str]:
    """Globs of all that the program runs with: what commands name, and what the user does."""
    known = {program, "."}
    for workload, command in every:
        around = (command.load or (), command.preload or (), command.prepare or ())
        words = _words(command, workload.options)
        # Load generators, and other programs, may be built, too.
        programs = {part[0] for part in (words, *around) if part}
        for word in (*words, *chain(*around), workload.options.input or ""):
            if not word or word.startswith(("/", "-", "{")):
                continue
            path = posixpath.normpath(posixpath.join(at.inside, word))
            taken = at.has(path) or (word in programs and _is_path(word))
            if taken and path not in known and not path.startswith(".."):
                known.add(path)
                yield glob.escape(path)
    if at.inside:
        yield f"{at.inside}/"
    yield from map(at.placed, at.files)


def _build(text: str, shell: str, at: CheckedOut) -> list[str]:
    argv = _escaped(split_command(text, shell=shell), ("jobs",))
    return ["env", "-C", at.inside, *argv] if at.inside else argv


def _escaped(words: Sequence[str], known: Sequence[str]) -> list[str]:
    """Words in which only these braces mean something."""

    def escaped(match: re.Match[str]) -> str:
        return match[0] if match[1] in known else f"{{{match[0]}}}"

    return [_BRACES.sub(escaped, word) for word in words]


def _artifact_first(argv: Sequence[str], program: str, at: CheckedOut) -> list[str]:
    first, *rest = _escaped(argv, PLACES)
    own = _is_path(first) and at.placed(first) == program
    return ["{artifact}" if own else first, *rest]


def _in_files(words: Sequence[str], program: str, at: CheckedOut) -> list[str]:
    """Words of what does not begin in the checkout: paths in it are the variant's own."""

    def one(word: str) -> str:
        if word.startswith(("/", "-", "{")) or not (_is_path(word) or at.has(at.placed(word))):
            return word
        path = at.placed(word)
        return "{artifact}" if path == program else f"{{files}}/{path}"

    return [one(word) for word in _escaped(words, PLACES)]


def _server(
    command: CommandVariant, options: Options, program: str, at: CheckedOut
) -> dict[str, object]:
    kind, _, pattern = options.ready.partition(":")
    ready = {"ready": {"output": pattern}} if kind == "output" else {}
    argv = _artifact_first(command.argv, program, at)
    # A server has a folder of its own; this one's paths begin in its checkout.
    return {"command": ["env", "-C", at.folder, *argv], **ready}


def _workload(
    workload: CommandWorkload, command: CommandVariant, program: str, at: CheckedOut
) -> dict[str, object]:
    options = workload.options
    keys: dict[str, object] = {"name": _name(workload, command), "env": _env(options)}
    if command.prepare is not None:
        keys["prepare"] = _in_files(command.prepare, program, at)
    if options.ignore_failure:
        keys["ignore_failure"] = True
    if options.deadline_ns is not None:
        keys["deadline"] = duration_text(options.deadline_ns)
    keys |= _counted(options)
    if options.drive is not None:
        keys["drive"] = options.drive.model_dump(mode="json", exclude_unset=True)
    elif command.load is not None:
        keys["load"] = _in_files(command.load, program, at)
        keys.setdefault("operations", 1)
    else:
        keys |= _own_run(options, command, program, at)
    if command.preload is not None:
        keys["preload"] = [_in_files(command.preload, program, at)]
    return keys


def _env(options: Options) -> dict[str, str]:
    pairs = parse_env(options.env)
    names, texts = [name for name, _ in pairs], [text for _, text in pairs]
    return dict(zip(names, _escaped(texts, PLACES), strict=True))


def _own_run(
    options: Options, command: CommandVariant, program: str, at: CheckedOut
) -> Iterator[tuple[str, object]]:
    yield "command", _artifact_first(command.argv, program, at)
    yield "folder", at.folder
    if options.input is not None:
        absolute = PurePosixPath(options.input).is_absolute()
        yield "input", options.input if absolute else f"{{files}}/{at.placed(options.input)}"
    file = output_file(options)
    if file is not None:
        yield "output", str(Path(file).absolute())
    elif options.output is not None:
        yield "output", options.output
    if options.expected is not None:
        yield "expected", str(Path(options.expected).absolute())
    if options.expected_sha256 is not None:
        yield "expected_sha256", options.expected_sha256


def _counted(options: Options) -> Iterator[tuple[str, object]]:
    if options.score is not None:
        score = options.score
        yield "score", {"pattern": score.pattern, "unit": score.unit, "better": score.better.value}
    if options.benchmarks:
        yield "benchmarks", options.benchmarks
    if options.operations is not None:
        text = options.operations
        yield "operations", int(text) if text.isdigit() else text


def _race(options: Options) -> Iterator[tuple[str, object]]:
    budget_ns = options.budget_ns or (_NO_END_NS if options.least_runs else DEFAULT_BUDGET_NS)
    precision = options.precision
    if precision is None and options.budget_ns is None and not options.runs:
        precision = DEFAULT_PRECISION
    yield "margin", "none" if options.margin is None else _share(options.margin)
    yield "budget", duration_text(budget_ns)
    if precision is not None and not options.runs:
        yield "precision", _share(precision)
    if options.least_runs:
        yield "rounds", options.least_runs
    if options.warmup:
        yield "warmup", options.warmup
    yield "slice", duration_text(options.slice_ns)
    if options.mode is not None:
        yield "mode", options.mode.value
    if options.metric in (Metric.CPU, Metric.WALL):
        yield "metric", options.metric.value
    yield "level", options.level
    yield "seed", options.seed
    yield "ports", list(options.ports)


def duration_text(ns: float) -> str:
    """A time as options and studies take it."""
    units = (("s", 10**9), ("ms", 10**6), ("us", 10**3))
    whole = round(ns)
    return next(
        (f"{whole // unit_ns}{unit}" for unit, unit_ns in units if whole % unit_ns == 0),
        f"{whole}ns",
    )


def _share(share: float) -> str:
    return f"{share * 100:.6g}%"


def _name(workload: CommandWorkload, command: CommandVariant) -> str:
    told = (workload.name, command.text) if len(workload.commands) > 1 else (workload.name,)
    slug = _NO_NAME.sub("-", " ".join(told).lower()).strip("-_.+")
    return slug[-_LONGEST_NAME:].strip("-_.+") or "command"


def _uniquely_named(workloads: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    seen: dict[object, int] = {}
    named = []
    for workload in workloads:
        name = workload["name"]
        seen[name] = seen.get(name, 0) + 1
        named.append({**workload, "name": f"{name}-{seen[name]}"} if seen[name] > 1 else workload)
    return named


def _toml(value: object) -> str:
    """JSON, but for tables."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, slots=True)
class RevisionStudy:
    """The study, and which commits it is about; its folder is there only as long as it is open."""

    file: StudyFile
    findings: tuple[Finding, ...]


@contextmanager
def revision_study(options: Options, ports: Ports) -> Iterator[RevisionStudy]:
    """The study of the options' two revisions; nothing of it lies in the user's repository.

    InputError where git does not know them, or for what a study has no place for.
    """
    names, confined = names_of(options.revisions or ""), not options.unconfined
    repository = UserRepository(ports.processes(), ports.env, Path.cwd())
    _, inside = repository.place()
    commits = repository.commits(names)
    for commit in commits:
        if inside and not repository.has(commit, inside.rstrip("/")):
            raise InputError(f"--revisions: {commit.name} has no folder {inside}")

    def has(path: str) -> bool:
        return all(repository.has(commit, path) for commit in commits)

    if confined and output_file(options) is not None:
        raise InputError(
            "--output FILE with --revisions needs --unconfined: confined programs write no file "
            "of yours"
        )
    top = repository.top()
    text = study_text(options, CheckedOut(top, names, inside.rstrip("/"), has, options.files))
    with temporary_folder(NAME) as folder:
        path = folder / f"{NAME}.toml"
        path.write_text(text)
        try:
            file = open_study(path, ports)
        except StudyError as error:
            message = re.sub(rf"{re.escape(str(path))}(:\d+)?: ", "", str(error))
            raise InputError(f"--revisions: {message}") from None
        changed = repository.has_changes()
        yield RevisionStudy(
            file if confined else file.unconfined(), tuple(_findings(commits, changed=changed))
        )


def _findings(commits: tuple[Commit, ...], *, changed: bool) -> Iterator[Finding]:
    yield REVISIONS.found("; ".join(commit.said for commit in commits))
    if changed:
        text = "changes of the work tree that are not committed are not part of this"
        yield UNCOMMITTED.found(text)
