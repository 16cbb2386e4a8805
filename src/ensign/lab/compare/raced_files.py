"""Whether the race ran what the traced executions ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ensign.lab.compare.tracing import Traces
from ensign.lab.traced import Identities, in_own_scratch
from ensign.model.findings import Finding, Severity
from ensign.model.traced import TracedExecution
from ensign.model.trials import TWIN, RaceMapping, Trial

_SHOWN = 3


def raced_findings(
    traces: Traces, trials: Sequence[Trial], names: Mapping[str, str], baseline: str
) -> tuple[Finding, ...]:
    """`ran-something-else`, an error, for each command of which the race ran other bytes.

    Reads the files anew: what changed meanwhile is another program. `names` are those of all arms,
    the twin's too. Of what is gone, nothing is said.
    """
    identities = Identities()
    found: list[Finding] = []
    for arm, name in names.items():
        trace = traces.of(baseline if arm == TWIN else arm)
        if not trace.followed:
            continue
        problems = [*_others(trace, seen_in_race(trials, arm), identities)]
        if arm != TWIN:
            problems += _changed(trace, identities)
        if problems:
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            text = "; ".join(problems[:_SHOWN]) + more
            found.append(Finding("ran-something-else", Severity.ERROR, text, name))
    return tuple(found)


def seen_in_race(trials: Sequence[Trial], arm: str) -> tuple[RaceMapping, ...]:
    """What was seen of an arm at the ends of slices, each once."""
    totals = (each for trial in trials for each in trial.arms if each.arm == arm)
    return tuple(dict.fromkeys(file for each in totals for file in each.mapped))


def _others(
    trace: TracedExecution, seen: Sequence[RaceMapping], identities: Identities
) -> Iterator[str]:
    traced = {(file.path, file.device, file.inode) for file in trace.mapped}
    known = {file.sha256 for file in trace.mapped}
    for file in seen:
        unreadable = file.deleted or file.other_root or in_own_scratch(file.path)
        if unreadable or (file.path, file.device, file.inode) in traced:
            continue
        sha256 = identities.of(file.path, file.inode)
        if sha256 and sha256 not in known:
            yield f"the race ran {file.path}, {_instead(file, trace)}"


def _instead(file: RaceMapping, trace: TracedExecution) -> str:
    name = Path(file.path).name
    same = [each.path for each in trace.mapped if Path(each.path).name == name]
    if file.path in same:
        return "which was another file when the command was looked at"
    return f"and {same[0]} when it was looked at" if same else "which was not run when looked at"


def _changed(trace: TracedExecution, identities: Identities) -> Iterator[str]:
    for file in trace.mapped:
        now = identities.of(file.path)
        if now and file.sha256 and now != file.sha256:
            yield f"{file.path} changed while it was raced"
