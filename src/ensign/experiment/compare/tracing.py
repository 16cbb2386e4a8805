"""Commands that run the same program on the same input: there is nothing to compare."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG

from ensign.experiment.compare.commands import CommandVariant
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.variants import variant_specs
from ensign.experiment.machine import CpuPlan
from ensign.experiment.self_timed import CLOCK_RATE
from ensign.experiment.traced_files import (
    ExpectedFiles,
    compare_files,
    shared_files,
    shared_finding,
    summarize,
)
from ensign.experiment.tracing import (
    SAMPLE_US,
    Identities,
    TraceOptions,
    Tracer,
    first_few,
)
from ensign.meter.requests import VariantSpec
from ensign.model.finding_kinds.builds import SAME_BYTES, SAME_PROGRAM
from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.finding_kinds.ran import ENVIRONMENT_FILES, RAN_SOMETHING_ELSE, SHARED_FILES
from ensign.model.findings import Finding
from ensign.model.traced_execution import TracedExecution, nothing_seen
from ensign.model.trials import TWIN, Mode, Trial, seen_in_race
from ensign.proof.loaded_bytes import content_sha256, loader_name

_SHOWN = 2
_PLACE = "{variant}"
_AROUND = ("setup", "prepare", "cleanup", "load", "preload")


@dataclass(frozen=True, slots=True)
class SamePrograms:
    """Commands that run what an earlier one runs (variant to variant), and findings on it."""

    of: Mapping[str, str]
    findings: tuple[Finding, ...] = ()


def may_be_same(
    options: Options, commands: Sequence[CommandVariant], identities: Identities
) -> bool:
    """True if a command's program and arguments are those of an earlier one. Nothing is run."""
    if own_input(options):
        return False
    programs: dict[object, list[str]] = {}
    for command in commands:
        if program := _program_of(command):
            programs.setdefault((command.argv[1:], _around(command)), []).append(program)
    for alike in programs.values():
        # Files are read only where the rest is equal.
        held = {path: _content(path, identities) for path in alike} if len(alike) > 1 else {}
        known = [held[path] for path in alike if held and held[path]]
        if len(set(known)) < len(known):
            return True
    return False


def own_input(options: Options) -> str:
    """Sources of another input for each variant, which no trace shows; empty if none."""
    texts = {"input": (options.input or "",), "env": options.env}
    texts |= {part: getattr(options, part) for part in _AROUND}
    giving = [f"--{name}" for name, words in texts.items() if any(_PLACE in one for one in words)]
    return f"{', '.join(giving)} gives each its own by {_PLACE}" if giving else ""


def same_programs(
    commands: Sequence[CommandVariant],
    seen: Mapping[str, TracedExecution],
    content: Callable[[str], str],
    own: str = "",
) -> SamePrograms:
    """Same programs, by all files that ran, whatever their paths, arguments, and files read.

    `content` identifies what a path holds, and is empty where that cannot be told; `own` is what
    gives each an input of its own. Of what was not seen in full nothing is said. Where the programs
    are the same and the rest is not, a finding names what differs.
    """
    same: dict[str, str] = {}
    findings: list[Finding] = []
    known: list[CommandVariant] = []
    for command in commands:
        trace = seen.get(command.variant)
        if trace is None or trace.identities is None:
            continue
        alike = (
            variant for variant in known if _ran_the_same(seen[variant.variant], trace, content)
        )
        earlier = next(alike, None)
        if earlier is None:
            known.append(command)
            continue
        differs = _differences(earlier, command) or own
        differs = differs or _other_files(seen[earlier.variant], trace, content)
        if differs:
            text = f"the same program and libraries as {earlier.name}; {differs}"
            findings.append(SAME_PROGRAM.found(text, command.name))
        else:
            same[command.variant] = earlier.variant
            text = (
                f"the same program and libraries as {earlier.name}, with equal arguments and "
                "equal files to read"
            )
            findings.append(SAME_BYTES.found(text, command.name))
    return SamePrograms(same, tuple(findings))


def content_of(path: str, identities: Identities) -> str:
    """Identity of a file's content; of a folder its names; empty where it is gone."""
    try:
        if not Path(path).is_dir():
            return _content(path, identities)
        names = sorted(os.fsencode(item.name) for item in os.scandir(path))
        return hashlib.sha256(b"\0".join(names)).hexdigest()
    except OSError:
        return ""


def _content(path: str, identities: Identities) -> str:
    return content_sha256(Path(path)) or identities.of(path)


def _ran_the_same(
    first: TracedExecution, second: TracedExecution, content: Callable[[str], str]
) -> bool:
    mine, its = ({file.sha256: file.path for file in trace.mapped} for trace in (first, second))
    own = Counter(content(path) for sha256, path in mine.items() if sha256 not in its)
    others = Counter(content(path) for sha256, path in its.items() if sha256 not in mine)
    return own == others and "" not in own


def _program_of(command: CommandVariant) -> str:
    name = command.argv[0]
    if command.root is not None or "{" in name:
        return ""
    if os.sep in name:
        return name
    return shutil.which(name) or ""


def _around(command: CommandVariant) -> tuple[object, ...]:
    return tuple(getattr(command, part) for part in _AROUND)


def _differences(first: CommandVariant, second: CommandVariant) -> str:
    if first.argv[1:] != second.argv[1:]:
        return "the arguments differ"
    parts = zip(_AROUND, _around(first), _around(second), strict=True)
    other = [f"--{part}" for part, one, another in parts if one != another]
    return f"{', '.join(other)} differs" if other else ""


def _other_files(
    first: TracedExecution, second: TracedExecution, content: Callable[[str], str]
) -> str:
    """Files read that are not the same; those that an execution wrote itself do not count."""
    if first.read_in_part or second.read_in_part:
        return "they read more files than are compared"
    mine, its = _read(first) - _read(second), _read(second) - _read(first)
    held = {path: content(path) for path in sorted(mine | its)}
    contents, others = (Counter(held[path] for path in paths) for paths in (mine, its))
    if contents == others and "" not in contents:
        return ""
    one_sided = [path for path in held if not (contents[held[path]] and others[held[path]])]
    return f"they read other files: {first_few(one_sided or held, _SHOWN)}"


def _read(trace: TracedExecution) -> frozenset[str]:
    return frozenset(trace.read) - frozenset(trace.written)


# Of the user's budget: what one command may take so that all are traced, and what that may take.
_ONE_SHARE = 0.2
_ALL_SHARE = 0.5
TOO_LONG = "the budget is too short to trace an execution besides"


@dataclass(frozen=True, slots=True)
class Traces:
    """Observations of each command (by variant; of the twin too, where that says more).

    `same` has the variants that run the same program on the same input as an earlier one.
    """

    by_variant: Mapping[str, TracedExecution] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    apart: bool = False
    same: Mapping[str, str] = field(default_factory=dict)

    def of(self, variant: str) -> TracedExecution:
        """Observations of one variant."""
        return self.by_variant.get(variant) or nothing_seen("no execution was traced")

    @property
    def shared(self) -> tuple[Finding, ...]:
        """Findings on files that variants share."""
        return tuple(finding for finding in self.findings if finding.is_a(SHARED_FILES))

    @property
    def for_lack_of_time(self) -> bool:
        """True if a command was not followed because the budget is too short for that."""
        return any(trace.not_judged == TOO_LONG for trace in self.by_variant.values())


@dataclass(frozen=True, slots=True)
class Tracing:
    """Traces the commands of one comparison within its budget."""

    options: Options
    commands: tuple[CommandVariant, ...]
    tracer: Tracer
    clock_ns: Callable[[], int]
    identities: Identities = field(default_factory=Identities)

    def trace(self, expected_ns: Mapping[str, int] | None = None) -> Traces:
        """One execution of each command. `expected_ns` is how long each takes, where it is known.

        The twin is traced, too, where the baseline writes files that may have other names in
        another run.
        """
        if self._too_long(expected_ns or {}):
            return self._judged(
                {command.variant: nothing_seen(TOO_LONG) for command in self.commands}
            )
        free = CpuPlan(self.options.cpus or ())
        paired = replace(self.options, twin=True)
        *variants, twin = variant_specs(self.commands, paired, free, {})
        # Where nothing is known, a long one must not take the time of all.
        end_ns, longest_ns = self._end_ns(), None if expected_ns else self._longest_ns()
        seen: dict[str, TracedExecution] = {}
        for variant in variants:
            seen[variant.name] = self._trace(variant, end_ns, longest_ns)
        baseline = variants[0].name
        shared = shared_files(seen, self._outputs(variants))
        written = self.options.twin and seen[baseline].written
        if written and not any(baseline in file.variants for file in shared):
            seen[TWIN] = self._trace(twin, end_ns, longest_ns)
        return self._judged(seen, self._outputs((*variants, twin)))

    def _too_long(self, expected_ns: Mapping[str, int]) -> bool:
        budget = self.options.budget_ns
        if budget is None:
            return False
        longest = max(expected_ns.values(), default=0)
        return longest > _ONE_SHARE * budget or sum(expected_ns.values()) > _ALL_SHARE * budget / 2

    def _end_ns(self) -> int | None:
        budget = self.options.budget_ns
        return None if budget is None else self.clock_ns() + round(_ALL_SHARE * budget)

    def _longest_ns(self) -> int | None:
        budget = self.options.budget_ns
        return None if budget is None else round(_ONE_SHARE * budget)

    def _trace(
        self, variant: VariantSpec, end_ns: int | None, longest_ns: int | None
    ) -> TracedExecution:
        left_ns = None if end_ns is None else end_ns - self.clock_ns()
        if left_ns is not None and left_ns <= 0:
            return nothing_seen(TOO_LONG)
        limits = [limit_ns for limit_ns in (left_ns, longest_ns) if limit_ns is not None]
        # One execution serves two questions: the files are the same, whatever its CPU clock says.
        rate = 1 if self.options.serves else CLOCK_RATE
        deadline_ns = min(limits, default=None)
        wish = TraceOptions(self.options.ports, rate, deadline_ns, SAMPLE_US)
        return self.tracer.trace(variant, wish)

    def _outputs(self, variants: Iterable[VariantSpec]) -> dict[str, str]:
        """The files that get the commands' standard output."""
        outputs = {}
        for variant in variants:
            if variant.program.stdout is not None and variant.load is None:
                path = variant.program.stdout.replace("{variant}", variant.name)
                if "{tmp}" not in path and _is_plain(Path(path)):
                    outputs[variant.name] = str(Path(path).resolve())
        return outputs

    def _judged(
        self, seen: Mapping[str, TracedExecution], outputs: Mapping[str, str] | None = None
    ) -> Traces:
        names = {command.variant: command.name for command in self.commands}
        names[TWIN] = f"{self.commands[0].name} (twin)"
        shared = shared_files(seen, outputs)
        apart = bool(shared) and self.options.mode in (None, Mode.ALTERNATING)
        same = same_programs(self.commands, seen, self._content, own_input(self.options))
        findings = (
            *same.findings,
            *environment_files(self.commands, seen),
            *shared_finding(shared, names, apart=apart),
            *_not_judged(seen, names),
        )
        return Traces(seen, findings, apart, same.of)

    def _content(self, path: str) -> str:
        return content_of(path, self.identities)


def raced_findings(
    traces: Traces, trials: Sequence[Trial], names: Mapping[str, str], baseline: str
) -> tuple[Finding, ...]:
    """`ran-something-else`, an error, for each command of which the race ran other bytes.

    `names` are those of all variants, the twin's too.
    """
    identities = Identities()
    findings: list[Finding] = []
    for variant, name in names.items():
        trace = traces.of(baseline if variant == TWIN else variant)
        if not trace.followed:
            continue
        seen = compare_files(_looked_at(trace), seen_in_race(trials, variant), identities)
        changed = () if variant == TWIN else seen.changed
        problems = (*seen.others, *seen.unseen, *changed)
        if problems:
            findings.append(RAN_SOMETHING_ELSE.found(summarize(problems), name))
    return tuple(findings)


def _looked_at(trace: TracedExecution) -> ExpectedFiles:
    return ExpectedFiles(
        identities={file.path: file.sha256 for file in trace.mapped},
        exact=frozenset((file.path, file.device, file.inode) for file in trace.mapped),
        made=frozenset(trace.written),
        whole=not trace.not_judged,
        root=trace.root,
    )


def _is_plain(path: Path) -> bool:
    try:
        return S_ISREG(path.stat().st_mode)
    except OSError:
        return not os.fspath(path).startswith("/dev/")


def environment_files(
    commands: Sequence[CommandVariant], seen: Mapping[str, TracedExecution]
) -> tuple[Finding, ...]:
    """Findings on each command in another environment: files that are not the baseline's."""
    baseline, *others = commands
    if not any(variant.root for variant in commands) or baseline.variant not in seen:
        return ()
    first = _by_name(seen[baseline.variant])
    findings = []
    for command in others:
        if command.variant not in seen or not seen[command.variant].followed:
            continue
        ran = _by_name(seen[command.variant])
        differ = sorted(name for name in {*first} | {*ran} if first.get(name) != ran.get(name))
        same = sorted(name for name in {*first} & {*ran} if first[name] == ran[name])
        if differ and first:
            equal = f"; the same in both: {', '.join(same)}" if same else ""
            text = f"other files ran than in {baseline.name}: {', '.join(differ)}{equal}"
            findings.append(ENVIRONMENT_FILES.found(text, command.name))
    return tuple(findings)


def _by_name(trace: TracedExecution) -> dict[str, str]:
    """Files that ran, by the names by which a loader asks for them."""
    return {loader_name(file.path): file.sha256 for file in trace.mapped if file.sha256}


def _not_judged(
    seen: Mapping[str, TracedExecution], names: Mapping[str, str]
) -> tuple[Finding, ...]:
    """`not-judged`, once for all commands of which the same was not seen."""
    reasons: dict[str, list[str]] = {}
    for variant, trace in seen.items():
        if trace.not_judged and variant != TWIN:
            reasons.setdefault(trace.not_judged, []).append(names[variant])
    return tuple(
        NOT_JUDGED.found(
            f"not judged: what ran: {reason}",
            "" if len(who) == len(names) - 1 else ", ".join(who),
        )
        for reason, who in reasons.items()
    )
