"""Rules for all files of a variant: the program, and what is loaded with it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ensign.model.calls import Call
from ensign.model.finding_kinds.proof import BOLT_NOT_APPLIED, NOT_JUDGED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, own_units
from ensign.proof.rules import judge
from ensign.proof.rules_flags import flags_had
from ensign.proof.rules_log import without_others

# Said of libraries by their own finding, which has the reason.
_SAID_ELSEWHERE = (BOLT_NOT_APPLIED,)


def judge_all(program: BuildEvidence, others: Sequence[BuildEvidence]) -> tuple[Finding, ...]:
    """All findings; what is true of the tree or the log, not of one file, is said once."""
    if program.request is not None:
        log = without_others(program.log, _objects_of((program, *others)))
        program = replace(program, log=log)
    program, *others = with_elsewhere((program, *others))
    found = list(judge(program))
    known = {(each.code, each.text) for each in found}
    for seen in others:
        for finding in _of_file(seen):
            # The same rule about the same tree says the same but for the file's name.
            about = finding.text.removeprefix(f"{seen.file}: ")
            if (finding.code, about) not in known:
                found.append(finding)
    return tuple(found)


def with_elsewhere(every: Sequence[BuildEvidence]) -> tuple[BuildEvidence, ...]:
    """The same files, each with what others of them have of the flags that were asked for."""
    had = [(seen, flags_had(seen)) for seen in every]
    having = {
        flag: tuple(seen.name for seen, flags in had if flag in flags)
        for flag in {flag for _, flags in had for flag in flags}
    }
    return tuple(
        replace(seen, elsewhere={f: names for f, names in having.items() if f not in flags})
        for seen, flags in had
    )


def _objects_of(every: Iterable[BuildEvidence]) -> dict[str, frozenset[str]]:
    """Sources of what runs, with the objects that calls made of them; none where one is unknown."""
    calls: dict[str, list[Call | None]] = {}
    for seen in every:
        for unit in own_units(seen):
            calls.setdefault(unit.source, []).append(unit.call)
    return {source: frozenset(_objects(each)) for source, each in calls.items()}


def _objects(calls: Sequence[Call | None]) -> Iterator[str]:
    known = [call for call in calls if call is not None and not call.has_linked]
    if len(known) == len(calls):
        yield from (output.path for call in known for output in call.outputs)


def _of_file(seen: BuildEvidence) -> Iterator[Finding]:
    if own_units(seen):
        # The log is of the whole build, and was judged with the program.
        for finding in judge(replace(seen, log="")):
            if not finding.is_a(*_SAID_ELSEWHERE):
                yield finding
    elif seen.calls and not _is_of_dependencies(seen):
        text = "no recorded call linked it from the program's sources, so its flags are not judged"
        yield seen.finding(NOT_JUDGED, text)


def _is_of_dependencies(seen: BuildEvidence) -> bool:
    """Whether the dependencies made it, to which the variant's flags do not go."""
    name = seen.file.rpartition("/")[2]
    return any(
        call.has_linked and (call.line.output or "").rpartition("/")[2] == name
        for call in seen.dependency_calls
    )
