"""The commands that `ensign compare` races, from its options, which are checked. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from ensign.experiment.compare.options import PER_COMMAND, Options, require_group, split_command
from ensign.meter.requests import Sink
from ensign.model.errors import CommandFailed, InputError
from ensign.model.quoting import distinct_short
from ensign.model.trials import (
    LONGEST_SLICE_NS,
    SHORTEST_SLICE_NS,
    TWIN,
    Metric,
    Mode,
    Score,
    VariantFailure,
    better_by,
    contradiction,
)
from ensign.model.units import format_duration
from ensign.stats.looks import LEVELS

LONGEST = 20
_KEY = re.compile(r"([\w-]+)=[^=]*$")
_ENV = "env"

Words = Sequence[str]


def command_names(commands: Sequence[str]) -> tuple[str, ...]:
    """A name for each, of 20 characters at most; equal commands have equal names.

    Commands that are all short are their own names.
    """
    if all(len(command) <= LONGEST for command in commands):
        return tuple(commands)
    different = tuple(dict.fromkeys(commands))
    if len(different) == 1:
        (program, *_) = [*_words(commands[0]), commands[0]]
        return distinct_short((PurePosixPath(program).name or program,), LONGEST) * len(commands)
    names = _by_what_differs(different)
    if len(set(names)) < len(different) or not all(names):
        names = different
    short = dict(zip(different, distinct_short(names, LONGEST), strict=True))
    return tuple(short[command] for command in commands)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _by_what_differs(texts: Sequence[str]) -> tuple[str, ...]:
    own = _own_words([_words(text) for text in texts])
    if len({*map(len, own)}) == 1:
        places = _without_repeats([*zip(*own, strict=True)])
        return tuple(" ".join(filter(None, parts)) for parts in zip(*places, strict=True))
    named = [" ".join(map(_assigned, _without_env(words))) for words in own]
    keys = {_key(words[0]) for words in map(_without_env, own) if words}
    nothing = f"no {keys.pop()}" if len(keys) == 1 else "none"
    return tuple(name or nothing for name in named)


def _without_repeats(places: Sequence[Words]) -> list[Words]:
    """The part of each that differs, but for paths that tell it again: a loader's libraries."""
    kept: list[Words] = []
    told: list[Words] = []
    for words in places:
        parts = _refined(words)
        if all("/" in word for word in words):
            if any(_tells_again(parts, others) for others in told):
                continue
            if len({*parts}) == len(parts):
                told.append(parts)
        kept.append(parts)
    return kept


def _tells_again(parts: Words, others: Words) -> bool:
    return all(other and other in part for part, other in zip(parts, others, strict=True))


def _own_words(commands: Sequence[Words]) -> list[list[str]]:
    """The words of each that are not, in the same order, in all of them."""
    common = list(commands[0])
    for words in commands[1:]:
        blocks = SequenceMatcher(None, common, words, autojunk=False).get_matching_blocks()
        common = [word for block in blocks for word in common[block.a : block.a + block.size]]
    return [_without(words, common) for words in commands]


def _without(words: Words, common: Words) -> list[str]:
    left = list(common)
    own = []
    for word in words:
        if left and word == left[0]:
            left.pop(0)
        else:
            own.append(word)
    return own


def _refined(words: Words) -> Sequence[str]:
    """The part of each word in which they differ: of scripts their words, of paths their parts."""
    if len({*words}) == 1:
        return [""] * len(words)
    if any(re.search(r"\s", word.strip()) for word in words):
        inner = _by_what_differs(words)
        return inner if all(inner) else words
    if all("/" in word for word in words):
        parts = _middles([word.split("/") for word in words])
        return ["/".join(part) for part in parts] if all(parts) else words
    return list(map(_assigned, words))


def _middles(paths: Sequence[Words]) -> list[Words]:
    """Without the parts that all begin with, and those that all end with."""
    shortest = min(map(len, paths))
    first = _equal(paths, shortest, lambda path, index: path[index])
    last = _equal(paths, shortest - first, lambda path, index: path[-1 - index])
    return [path[first : len(path) - last] for path in paths]


def _equal(paths: Sequence[Words], most: int, part: Callable[[Words, int], str]) -> int:
    differing = (n for n in range(most) if len({part(path, n) for path in paths}) > 1)
    return next(differing, most)


def _without_env(words: Words) -> Words:
    return words[1:] if len(words) > 1 and words[0] == _ENV else words


def _assigned(word: str) -> str:
    """Last name and value of a long setting such as `GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2`."""
    match = _KEY.search(word)
    return word if match is None or len(word) <= LONGEST else match[0].lstrip("-")


def _key(word: str) -> str:
    match = _KEY.search(word)
    return word if match is None else match[1]


_FEWEST_COMMANDS = 2
_LARGEST_SEED = 2**32 - 1
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class CommandVariant:
    """One command of the user, ready to be run. `variant` is its name inside the race.

    The program itself runs in the directory `root`, if there is one.
    """

    variant: str
    name: str
    text: str
    argv: tuple[str, ...]
    setup: tuple[str, ...] | None
    prepare: tuple[str, ...] | None
    cleanup: tuple[str, ...] | None
    load: tuple[str, ...] | None
    preload: tuple[str, ...] | None
    root: str | None = None


def command_variants(options: Options) -> tuple[CommandVariant, ...]:
    """The commands in the user's order, the baseline first. InputError where they are wrong."""
    if len(options.commands) < _FEWEST_COMMANDS:
        raise InputError("compare needs two commands or more; the first is the baseline")
    _check(options)
    names = _names(options)

    def part(texts: tuple[str, ...], index: int) -> tuple[str, ...] | None:
        if not texts:
            return None
        text = texts[index] if len(texts) > 1 else texts[0]
        return split_command(text, shell=options.shell)

    return tuple(
        CommandVariant(
            variant=str(index + 1),
            name=names[index],
            text=command,
            argv=split_command(command, shell=options.shell),
            setup=part(options.setup, index),
            prepare=part(options.prepare, index),
            cleanup=part(options.cleanup, index),
            load=part(options.load, index),
            preload=part(options.preload, index),
            root=(options.roots[index] or None) if options.roots else None,
        )
        for index, command in enumerate(options.commands)
    )


def parse_env(assignments: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Assignments `NAME=VALUE` as pairs. InputError for any other text."""
    pairs: list[tuple[str, str]] = []
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise InputError(f"--env '{assignment}' is not of the form NAME=VALUE")
        pairs.append((name, value))
    return tuple(pairs)


def sink_of(options: Options) -> Sink:
    """Sink of standard output that has no file."""
    return Sink(options.output) if options.output in set(Sink) else Sink.PIPE


def output_file(options: Options) -> str | None:
    """The file for standard output, if it is to be one."""
    return None if options.output in set(Sink) else options.output


def completed(options: Options) -> Options:
    """The options with what several of them say together. InputError where they contradict."""
    if options.show_output and options.output is not None:
        raise InputError("--show-output is --output inherit; leave out one of them")
    output = Sink.INHERIT.value if options.show_output else options.output
    return replace(options, output=output, score=_score(options))


def _score(options: Options) -> Score | None:
    """Score of a program's own speed. InputError where that is said by halves."""
    unit, better = options.unit, options.better
    if options.score is None:
        if unit or better is not None:
            raise InputError("--unit and --better say more of a --score PATTERN; give that, too")
        return None
    better = better or better_by(unit)
    if better is None:
        raise InputError(
            "--score needs --better higher or --better lower, or a --unit that is a time or a rate"
        )
    wrong = contradiction(unit, better)
    if wrong:
        raise InputError(f"--better {better}: --unit {wrong}; leave --better out")
    require_group("--score", options.score.pattern, "[0-9.]+")
    return Score(options.score.pattern, unit, better)


def _check(options: Options) -> None:
    count = len(options.commands)
    for option in PER_COMMAND:
        given = len(getattr(options, option))
        if given not in (0, 1, count):
            raise InputError(
                f"--{option} is given {given} times for {count} commands; "
                "give it once, or once per command"
            )
    _check_numbers(options)
    if options.serves:
        _check_servers(options)
    else:
        _check_programs(options)


def _check_numbers(options: Options) -> None:
    for option, value_ns in (("budget", options.budget_ns), ("deadline", options.deadline_ns)):
        if value_ns is not None and value_ns <= 0:
            raise InputError(f"--{option} must be above 0")
    if not SHORTEST_SLICE_NS <= options.slice_ns <= LONGEST_SLICE_NS:
        raise InputError(
            "--slice must be from 0.1ms (a stop alone costs some 0.02 ms) to 1m; "
            "--mode alternating races whole executions"
        )
    if options.seed > _LARGEST_SEED:
        raise InputError(f"--seed must be at most {_LARGEST_SEED}")
    if options.group_size is not None and not options.twin:
        raise InputError("--group-size needs the twin, which is in each group; leave out --no-twin")
    _check_operations(options.operations)
    _check_metric(options)
    _check_runs(options)
    if options.level not in LEVELS:
        raise InputError(f"--level {options.level:g} must be one of {', '.join(map(str, LEVELS))}")


def _check_operations(said: str | None) -> None:
    if said is None or (said.isdigit() and int(said)):
        return
    if said.isdigit():
        raise InputError("--operations must be above 0, or a pattern")
    require_group("--operations", said, "[0-9]+")


def _check_runs(options: Options) -> None:
    for name in ("runs", "min_runs", "max_runs"):
        number = getattr(options, name)
        if number is not None and number < 1:
            raise InputError(f"--{name.replace('_', '-')} must be above 0")
    least, most = options.min_runs, options.max_runs
    if options.runs is not None and (least, most) != (None, None):
        raise InputError("--runs is an exact number; leave out --min-runs and --max-runs")
    if least is not None and most is not None and least > most:
        raise InputError(f"--min-runs {least} is above --max-runs {most}")


def _check_metric(options: Options) -> None:
    if options.metric is Metric.SCORE and not options.scored:
        raise InputError("--metric score needs --score PATTERN: where the score stands")
    if not options.scored:
        return
    asked = "--benchmarks" if options.benchmarks else "--score"
    if options.score is not None and options.benchmarks:
        raise InputError("--benchmarks and --score cannot be combined")
    if options.metric not in (None, Metric.SCORE):
        raise InputError(f"{asked} is compared instead of {options.metric} time; leave out one")
    if options.mode is Mode.INTERLEAVED:
        raise InputError(
            f"{asked} needs whole executions; slices would change it: no --mode interleaved"
        )
    _check_benchmarks(options)


def _check_benchmarks(options: Options) -> None:
    if not options.benchmarks:
        return
    from ensign.model.study_problems import suggestion  # noqa: PLC0415  # few ask for them
    from ensign.workloads.benchmarks import FRAMEWORKS  # noqa: PLC0415
    from ensign.workloads.kind import PrintedReport  # noqa: PLC0415

    framework = FRAMEWORKS.get(options.benchmarks)
    if framework is None:
        raise InputError(
            f"--benchmarks '{options.benchmarks}' is none of {', '.join(FRAMEWORKS)}"
            f"{suggestion(options.benchmarks, list(FRAMEWORKS))}"
        )
    if options.serves or options.operations is not None:
        other = "--operations" if options.operations is not None else "--load or --drive"
        raise InputError(f"--benchmarks is for programs that say their own times; no {other}")
    if options.shell:
        raise InputError(
            "--benchmarks adds options to the commands, which a shell would not pass on: no --shell"
        )
    if isinstance(framework.report, PrintedReport | None) and sink_of(options) is not Sink.PIPE:
        raise InputError(
            f"--benchmarks {options.benchmarks} reads what is printed: no --output {options.output}"
        )


def _check_programs(options: Options) -> None:
    if options.preload:
        raise InputError(
            "--preload needs --load or --drive: it fills a server before the load runs"
        )
    if options.ready != "port":
        raise InputError("--ready needs --load or --drive: it says when a server is ready")
    _check_expected(options)
    if any("{port}" in command for command in options.commands):
        raise InputError(
            "a command contains {port} but there is no --load or --drive for the server"
        )


def _check_expected(options: Options) -> None:
    if options.expected is None and options.expected_sha256 is None:
        return
    if options.expected_sha256 is not None and not _SHA256.fullmatch(options.expected_sha256):
        raise InputError("--expected-sha256 is 64 digits from 0-9 and a-f, as sha256sum prints")
    if options.output in (Sink.NULL, Sink.INHERIT):
        raise InputError(
            f"--expected is held against what is printed: no --output {options.output}"
        )


def _check_servers(options: Options) -> None:
    if options.expected is not None or options.expected_sha256 is not None:
        raise InputError("--expected is for batch programs, not for servers")
    for command in options.commands:
        if "{port}" not in command:
            raise InputError(
                f"the server '{command}' must contain {{port}}: the servers are alive together, "
                "each on a port of its own"
            )
    for load in options.load:
        if "{port}" not in load:
            raise InputError(f"the load '{load}' must contain {{port}} to find its server")
    if options.load and options.drive is not None:
        raise InputError("--drive is ensign's own load generator; leave out --load")
    if options.ready != "port" and not options.ready.startswith("output:"):
        raise InputError("--ready is 'port', or 'output:PATTERN'")
    if options.input is not None or options.output is not None:
        raise InputError("--input and --output are for batch programs, not for servers")


def _names(options: Options) -> tuple[str, ...]:
    if len(options.names) > len(options.commands):
        raise InputError(f"{len(options.names)} names for {len(options.commands)} commands")
    made = command_names(options.commands)
    given = [*options.names, *made[len(options.names) :]]
    # The baseline's copy has a name, too.
    seen = {TWIN: 1}
    names: list[str] = []
    for name in given:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class FailedCommand:
    """A command, and what ended it."""

    command: CommandVariant
    failure: VariantFailure


def failed_commands(
    commands: Sequence[CommandVariant], failures: Sequence[VariantFailure]
) -> tuple[FailedCommand, ...]:
    """The commands that failed, in the order of failing."""
    by_variant = {command.variant: command for command in commands}
    return tuple(
        FailedCommand(by_variant[failure.variant], failure)
        for failure in failures
        if failure.variant in by_variant
    )


def require_rest(commands: Sequence[CommandVariant], failures: Sequence[VariantFailure]) -> None:
    """CommandFailed where nothing is left to compare with the baseline (the first of them)."""
    out = {failure.variant for failure in failures}
    if commands[0].variant in out or all(command.variant in out for command in commands[1:]):
        raise failure_of(failed_commands(commands, failures))


def failure_of(commands: Sequence[FailedCommand]) -> CommandFailed:
    """The error to raise for them at the end."""
    texts = (
        f"'{command.command.name}' failed {command.failure.where}: {command.failure.text}"
        for command in commands
    )
    return CommandFailed("; ".join(texts))


def deadline_hint(deadline_ns: int) -> str:
    """Remedy for a deadline that the user did not set."""
    took = format_duration(deadline_ns)
    return (
        f"what takes {took}, far longer than every run before the race, hangs; if not: --deadline"
    )
