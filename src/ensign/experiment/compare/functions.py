"""Functions of raced commands, whose files a race may have copied; and those of the same code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.experiment.compare.result import FinishedRace
from ensign.experiment.compare.tracing import Traces
from ensign.experiment.tracing import in_own_scratch
from ensign.explain.function_costs import FunctionReader, function_costs
from ensign.model.finding_kinds.ran import SAME_CODE
from ensign.model.findings import Finding
from ensign.model.results import FunctionCost, FunctionCosts
from ensign.model.trials import TWIN, SampledFile, Trial, name_without_group
from ensign.proof.evidence import some

_NEARLY_ALL = 0.8


def compared_functions(raced: FinishedRace) -> tuple[FunctionCosts, ...]:
    """CPU time by function of each command beside the baseline, on each workload."""
    names = {command.variant: command.name for command in raced.commands}
    baseline = raced.commands[0].variant
    files = _TracedFiles(raced.planned.traces, baseline)
    reader = FunctionReader(files.place)
    found = function_costs(raced.outcome.trials, baseline, reader, raced.experiment.level)
    return tuple(replace(costs, variant=names.get(costs.variant, costs.variant)) for costs in found)


def same_code_findings(every: Sequence[FunctionCosts]) -> Iterator[Finding]:
    """Differences that lie in functions of the same code: no flag made them."""
    for costs in every:
        total = costs.total
        rows = [row for row in costs.by_symbol if row.same_code and row.excludes_zero]
        if total is None or not total.excludes_zero or not rows:
            continue
        share = sum(row.difference for row in rows) / total.difference
        if share >= _NEARLY_ALL:
            names = some([_placed(row) for row in rows])
            where = f" on {costs.workload}" if costs.workload else ""
            yield SAME_CODE.found(
                f"{100 * share:.0f} % of the difference{where} lies in functions with the same "
                f"instructions, or hottest loop, in both ({names}): it comes of their place, what "
                "they work on, or how often they are called",
                costs.variant,
            )


def _placed(row: FunctionCost) -> str:
    if row.loop_starts is None:
        return row.name
    before, after = row.loop_starts
    return f"{row.name}, whose loop begins at {after} modulo 64 instead of {before}"


@dataclass(frozen=True, slots=True)
class _TracedFiles:
    traces: Traces
    baseline: str

    def place(self, _trial: Trial, variant: str, file: SampledFile) -> Path | None:
        """Where the file lies outside the race; None where that is not known."""
        path = Path(file.path)
        if not (file.deleted or file.other_root or in_own_scratch(file.path)):
            return path
        bare = name_without_group(variant)
        trace = self.traces.of(self.baseline if bare == TWIN else bare)
        # The copy of a link has its name, and what is mapped that of the file.
        known = (*(mapped_file.path for mapped_file in trace.mapped), *trace.programs)
        named = {Path(each).resolve() for each in known if Path(each).name == path.name}
        return named.pop() if len(named) == 1 else None
