"""Bodies of `explain` and `repair`: a first look, and races of builds between two variants."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ensign.cli.compare_run import raced_commands
from ensign.cli.experiment import machine_lock, tell
from ensign.cli.options import FailOn, Outputs
from ensign.cli.output import say, write
from ensign.cli.study_run import raced_study, tell_study
from ensign.experiment.causes import with_causes
from ensign.experiment.compare.options import Options
from ensign.experiment.ports import Ports
from ensign.experiment.study.causes import is_shown, study_text, with_only_choice, with_relinks
from ensign.experiment.study.opened import open_study
from ensign.experiment.study.proofs import proofs
from ensign.experiment.study.repair import losers, repair_study, repairs_of
from ensign.experiment.study.stored import stored_result
from ensign.experiment.study_file import RunOptions
from ensign.explain.causes import Cause, command_causes, same_form, same_program, with_libraries
from ensign.host.files import check_writable, write_atomically
from ensign.host.signals import signals_deferred
from ensign.model.errors import EnsignError
from ensign.model.results import Result
from ensign.model.study_explain import Explain, ToggledCause
from ensign.model.units import duration_option
from ensign.report import as_plan
from ensign.report.confirmation import confirmed
from ensign.report.words import listed

_ENDS = 2
_LOOK, _MOST_LOOKED_AT = "60s", 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is to be explained: two variants on some workloads, within two budgets.

    `study_file` is where the studies go that prove the causes, `-choices` and `-sources` in their
    names.
    """

    path: Path
    pair: tuple[str, str]
    workloads: Sequence[str]
    look: str
    proof_ns: int
    redo: Sequence[str]
    study_file: Path | None = None


def variants(
    asked: Explanation,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
    share_machine: bool,
) -> int:
    """See `ensign.cli.explain.explain`. Returns the exit status; errors pass.

    The first answer is told before anything is proven.
    """
    outputs.check()
    if asked.study_file is not None:
        check_writable(asked.study_file)
    ports = Ports(race_lock=machine_lock(share=share_machine))
    file = open_study(asked.path, ports).with_workloads(asked.workloads)
    pair = file.with_pair(*asked.pair, asked.look)
    pair = with_only_choice(with_relinks(pair)) if asked.proof_ns else pair
    told = partial(_with_redo, shlex.join(asked.redo))
    outcome, raced = raced_study(pair, ports, told=told), pair
    results, rounds = [outcome.result], Counter[str]()
    with _known_so_far(outputs, results):
        for question, budget_ns in proofs(file, pair, results, asked.proof_ns, ports):
            if not outputs.to_standard_output:
                tell_study(outcome, raced, Outputs(), FailOn(()), details=False)
            write(sys.stderr, as_plan.before_proof(question.by, len(question.causes), budget_ns))
            derived = question.asked_of(file, duration_option(budget_ns))
            rounds[question.by] += 1
            if asked.study_file is not None:
                file_name = _named_after(asked.study_file, question.by, rounds[question.by])
                write_atomically(file_name, study_text(derived).encode())
            outcome, raced = raced_study(derived, ports, told=told), derived
            causes = (*results[-1].causes, *outcome.result.causes)
            outcome = replace(outcome, result=replace(outcome.result, causes=causes))
            results.append(outcome.result)
    return tell_study(outcome, raced, outputs, fail_on, details=details)


@contextmanager
def _known_so_far(outputs: Outputs, results: Sequence[Result]) -> Iterator[None]:
    """Writes the files of the last result where the proof after it fails or is interrupted."""
    try:
        yield
    except (EnsignError, KeyboardInterrupt):
        with signals_deferred():
            outputs.write(results[-1])
        raise


def _named_after(file: Path, by: str, times: int) -> Path:
    """The study file of a question: `why-flags-2.toml` of its second round."""
    return file.with_stem("-".join((file.stem, *by.split(), *([str(times)] * (times > 1)))))


@dataclass(frozen=True, slots=True)
class Repair:
    """A variant of a study that loses somewhere, and the budget of its repairs."""

    path: Path
    variant: str
    budget: str | None
    study_file: Path | None


def repair(
    asked: Repair, outputs: Outputs, fail_on: FailOn, *, details: bool, share_machine: bool
) -> int:
    """See `ensign.cli.repair.repair`. Returns the exit status; errors pass."""
    outputs.check()
    ports = Ports(race_lock=machine_lock(share=share_machine))
    file = open_study(asked.path, ports).with_options(RunOptions(budget=asked.budget))
    stored = stored_result(file)
    lost = losers(confirmed(stored) or stored, asked.variant)
    baseline = file.variants[0]
    pair = file.with_pair(baseline.name, asked.variant, _LOOK)
    if not lost:
        say(f"{asked.variant} is shown to be no slower on any workload: nothing to repair.\n")
        return 0
    say(f"{asked.variant} may lose on {listed(lost)}; first, which functions there?\n")
    first = raced_study(pair.with_workloads(lost[:_MOST_LOOKED_AT]), ports)
    variant = pair.variants[1]
    gcc = variant.compiler.startswith(("gcc", "g++"))
    tried = repairs_of(baseline, variant, first.result, lost, gcc=gcc)
    if not tried:
        say("No change is known that would help: no source is guilty, and no choice can be left.\n")
        return 0
    derived = repair_study(file, (baseline, variant), tried, file.study.race.budget)
    if asked.study_file is not None:
        write_atomically(asked.study_file, study_text(derived).encode())
    outcome = raced_study(derived, ports)
    return tell_study(outcome, derived, outputs, fail_on, details=details)


def _with_redo(redo: str, result: Result) -> Result:
    return replace(result, extra={**result.extra, "redo": redo})


def commands(
    options: Options,
    proof_ns: int,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    redo: str,
    details: bool,
) -> int:
    """See `ensign.cli.explain.explain`, of two commands. Returns the exit status; errors pass."""
    outputs.check()
    if not options.shell and len(options.commands) == _ENDS:
        options = replace(options, commands=same_form(*options.commands))
    outcome = raced_commands(options, redo=redo)
    result = outcome.result
    options = _told_libraries(options, result)
    causes = _causes_between(options)
    if proof_ns and len(causes) == 1 and same_program(*options.commands):
        only = ToggledCause(name=causes[0].name)
        explain = Explain(variant=result.commands[1][0], causes=[only])
        outcome = replace(outcome, result=with_causes(result, explain))
    if outcome.error is None and proof_ns and len(causes) > 1 and is_shown(result):
        if not outputs.to_standard_output:
            tell(outcome, Outputs(), FailOn(()), details=False)
        write(sys.stderr, as_plan.before_proof("choices", len(causes), proof_ns))
        ends = (name for name, _ in result.commands)
        cells = dict(zip(options.commands, ends, strict=True))
        for cause in causes:
            cells.setdefault(cause.added, f"with {cause.name} alone")
            cells.setdefault(cause.removed, f"without {cause.name}")
        asked = replace(
            options, commands=tuple(cells), names=tuple(cells.values()), budget_ns=proof_ns
        )
        with _known_so_far(outputs, [result]):
            outcome = raced_commands(asked, redo=redo)
        names = {text: name for name, text in outcome.result.commands}
        parts = [
            ToggledCause(name=c.name, added=names[c.added], removed=names[c.removed])
            for c in causes
        ]
        both = (outcome.result.baseline, names[options.commands[1]])
        explain = Explain(variant=both[1], causes=parts)
        died = {failure.variant for failure in outcome.result.failures}
        # A toggle that dies proves nothing, and is told; the ends are there.
        error = outcome.error if died.isdisjoint(cells.values()) or died & {*both} else None
        outcome = replace(outcome, result=with_causes(outcome.result, explain), error=error)
    return tell(outcome, outputs, fail_on, details=details)


def _told_libraries(options: Options, result: Result) -> Options:
    """With libraries as causes of their own, where both map other files of them."""
    if len(options.commands) != _ENDS or options.shell or options.environments is not None:
        return options
    known = [result.facts_of(name) for name, _ in result.commands]
    ran = [() if facts is None else facts.ran for facts in known]
    hashes = [{file.sha256 for file in files} for files in ran]
    mapped = [
        [file.path for file in files if file.sha256 not in other]
        for files, other in zip(ran, reversed(hashes), strict=True)
    ]
    one, two = options.commands
    return replace(options, commands=with_libraries(one, two, (mapped[0], mapped[1])))


def _causes_between(options: Options) -> tuple[Cause[str], ...]:
    """Words and variables that differ; nothing where a shell or an environment reads them."""
    if len(options.commands) != _ENDS or options.shell or options.environments is not None:
        return ()
    return command_causes(*options.commands)
