"""Values of `{variant}` and `{tmp}`, in the commands around a race, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ensign.experiment.compare.commands import CommandVariant, output_file, parse_env, sink_of
from ensign.experiment.compare.options import DEFAULT_READY_NS, Options
from ensign.experiment.machine import CpuPlan
from ensign.experiment.pilots import TMP
from ensign.host.temporary import temporary_folder
from ensign.meter.requests import (
    DriveLoad,
    Load,
    NamedPattern,
    ProcessSpec,
    Readiness,
    Report,
    VariantSpec,
)
from ensign.model.trials import TWIN, Score

if TYPE_CHECKING:
    from ensign.workloads.benchmarks import Framework


@contextmanager
def lasting_tmp(
    options: Options, commands: tuple[CommandVariant, ...]
) -> Iterator[tuple[Options, tuple[CommandVariant, ...]]]:
    """Folders for `{tmp}` that last from `--setup` to `--cleanup`, where one of these names it.

    Else each execution gets a fresh one from the meter, and nothing is changed here.
    """
    around = [argv for command in commands for argv in (command.setup, command.cleanup) if argv]
    if not any(TMP in word for argv in around for word in argv):
        yield options, commands
        return
    with temporary_folder("tmp") as folder:
        for variant in (*(command.variant for command in commands), TWIN):
            Path(folder, variant).mkdir()
        own = f"{folder}/{{variant}}"
        yield _options(options, own), tuple(_command(command, own) for command in commands)


@contextmanager
def passing_tmp(*texts: str) -> Iterator[str | None]:
    """A folder for `{tmp}` that processes run one after the other share, where one names it."""
    if not any(TMP in text for text in texts):
        yield None
        return
    with temporary_folder("tmp") as folder:
        yield str(folder)


def _options(options: Options, tmp: str) -> Options:
    def filled(text: str | None) -> str | None:
        return None if text is None else text.replace(TMP, tmp)

    return replace(
        options,
        input=filled(options.input),
        output=filled(options.output),
        env=tuple(command.replace(TMP, tmp) for command in options.env),
    )


def _command(command: CommandVariant, tmp: str) -> CommandVariant:
    def filled(argv: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if argv is None else tuple(word.replace(TMP, tmp) for word in argv)

    return replace(
        command,
        argv=tuple(word.replace(TMP, tmp) for word in command.argv),
        setup=filled(command.setup),
        prepare=filled(command.prepare),
        cleanup=filled(command.cleanup),
        load=filled(command.load),
        preload=filled(command.preload),
    )


def program_process(command: CommandVariant, options: Options, cpus: CpuPlan) -> ProcessSpec:
    """The program under test (or the server) as a process, told to write its figures."""
    framework = _framework(options)
    words, env = ((), ()) if framework is None else (framework.options, framework.env)
    return ProcessSpec(
        argv=(*command.argv, *words),
        env=(*env, *parse_env(options.env)),
        cpus=cpus.program or None,
        stdin=options.input,
        stdout=output_file(options),
        sink=sink_of(options),
        ignore_failure=options.ignore_failure,
        # A server runs until it is ended; its load generator has the deadline.
        deadline_ns=None if options.serves else options.run_deadline_ns,
        root=command.root,
    )


def plain_process(argv: tuple[str, ...], options: Options) -> ProcessSpec:
    """A prepare or preload command: not measured, free to use every CPU."""
    return ProcessSpec(
        argv=argv,
        env=parse_env(options.env),
        deadline_ns=options.run_deadline_ns,
    )


def setup_process(argv: tuple[str, ...], options: Options) -> ProcessSpec:
    """A set-up or clean-up command: outside the budget, which does not say how long it takes."""
    return ProcessSpec(argv=argv, env=parse_env(options.env), deadline_ns=options.deadline_ns)


def variant_specs(
    commands: tuple[CommandVariant, ...],
    options: Options,
    cpus: CpuPlan,
    expected_ns: Mapping[str, int],
) -> tuple[VariantSpec, ...]:
    """One variant per command, and the twin of the first one last.

    `expected_ns` maps variants to the running time of one execution, where it is known.
    """
    first, *others = [
        _variant(command, options, cpus, expected_ns.get(command.variant)) for command in commands
    ]
    # Without baseline and twin there is nothing to compare with.
    first = replace(first, required=True)
    if not options.twin:
        return (first, *others)
    twin = replace(first, name=TWIN, expected_ns=expected_ns.get(TWIN, first.expected_ns))
    return (first, *others, twin)


# Some tenths of a second, where nobody says how many.
_OPERATIONS_OF_A_DRIVE = 20_000

# One of so many turns is the command's.
TURNS_BESIDE_A_SLEEPER = 4


def beside_a_sleeper(variant: VariantSpec) -> tuple[VariantSpec, ...]:
    """The variant, once, and one that has all other turns and does nothing with them.

    A run that is cut off may leave a lock behind.
    """
    expected_ns = (TURNS_BESIDE_A_SLEEPER - 1) * (variant.expected_ns or 1)
    process = ProcessSpec(argv=("sleep", f"{expected_ns / 1e9:.6f}"))
    sleeper = VariantSpec(name="sleeper", program=process, expected_ns=expected_ns)
    return (replace(variant, required=True, fills=False), sleeper)


def with_deadline(variant: VariantSpec, deadline_ns: int | None) -> VariantSpec:
    """The variant, of which a run that takes longer is ended: of the load, where there is one."""
    if deadline_ns is None:
        return variant
    if isinstance(variant.load, Load):
        process = replace(variant.load.process, deadline_ns=deadline_ns)
        return replace(variant, load=replace(variant.load, process=process))
    return replace(variant, program=replace(variant.program, deadline_ns=deadline_ns))


def _variant(
    command: CommandVariant, options: Options, cpus: CpuPlan, expected_ns: int | None
) -> VariantSpec:
    count, pattern = (None, None) if options.serves else _operations(options)

    def optional(argv: tuple[str, ...] | None) -> tuple[ProcessSpec, ...]:
        return () if argv is None else (plain_process(argv, options),)

    return VariantSpec(
        name=command.variant,
        program=program_process(command, options, cpus),
        load=_load_of(command, options, cpus),
        ready=_readiness(options) if options.serves else None,
        preload=optional(command.preload),
        prepare=optional(command.prepare),
        copy_program=not options.shell,
        expected_ns=expected_ns,
        **_scored(options),
        operations=count,
        operations_pattern=pattern,
    )


def _framework(options: Options) -> Framework | None:
    if not options.benchmarks:
        return None
    from ensign.workloads.benchmarks import FRAMEWORKS  # noqa: PLC0415  # with all their parsers

    return FRAMEWORKS[options.benchmarks]


class _Scored(TypedDict):
    score: Score | None
    scores: tuple[NamedPattern, ...]
    report: Report | None


def _scored(options: Options) -> _Scored:
    framework, report = _framework(options), None
    if framework is not None and framework.report is not None:
        from ensign.experiment.program_reports import report_of  # noqa: PLC0415  # at first use

        report = report_of(framework.report)
    score = options.score if framework is None else framework.pattern
    if score is None or not score.has_names:
        return {"score": score, "scores": (), "report": report}
    return {"score": None, "scores": (NamedPattern("", score),), "report": report}


def _load_of(command: CommandVariant, options: Options, cpus: CpuPlan) -> Load | DriveLoad | None:
    if options.drive is not None:
        counted = _operations(options)[0]
        operations = options.drive.operations or counted or _OPERATIONS_OF_A_DRIVE
        return DriveLoad(
            options.drive,
            operations,
            options.seed,
            cpus.load or None,
            deadline_ns=options.run_deadline_ns,
        )
    return None if command.load is None else _load(command.load, options, cpus)


def _load(argv: tuple[str, ...], options: Options, cpus: CpuPlan) -> Load:
    process = ProcessSpec(
        argv=argv,
        env=parse_env(options.env),
        cpus=cpus.load or None,
        ignore_failure=options.ignore_failure,
        deadline_ns=options.run_deadline_ns,
    )
    if options.operations is None:
        return Load(process, operations=1)
    return Load(process, *_operations(options))


def _operations(options: Options) -> tuple[int | None, str | None]:
    """Number of operations that one run completes, or the pattern of it in the output."""
    operations = options.operations
    if operations is not None and operations.isdigit():
        return int(operations), None
    return None, operations


def _readiness(options: Options) -> Readiness:
    ready = options.ready
    output = ready.removeprefix("output:") if ready.startswith("output:") else None
    return Readiness(output, min(DEFAULT_READY_NS, options.run_deadline_ns))
