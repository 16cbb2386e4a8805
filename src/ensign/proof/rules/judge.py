"""All rules in their order, for one file and for all files of a variant. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.model.calls import Call
from ensign.model.finding_kinds.proof import BOLT_NOT_APPLIED, NOT_JUDGED
from ensign.model.findings import Finding
from ensign.proof.comparison import grouped
from ensign.proof.evidence import BuildEvidence, own_units
from ensign.proof.rules.artifact import artifact_findings
from ensign.proof.rules.flags import flag_findings, flags_had
from ensign.proof.rules.link import link_findings
from ensign.proof.rules.log import log_findings, without_others
from ensign.proof.rules.origin import origin_findings
from ensign.proof.rules.rust import is_of_rust, rust_findings
from ensign.proof.rules.units import unit_findings


def judge(seen: BuildEvidence) -> tuple[Finding, ...]:
    """All findings. What cannot be known is no finding, but is said by `describe`."""
    findings = [*origin_findings(seen)]
    if is_of_rust(seen):
        findings += rust_findings(seen)
    else:
        findings += flag_findings(seen)
        findings += unit_findings(seen)
        findings += () if _is_linked_by_rustc(seen) else link_findings(seen)
    return (*findings, *artifact_findings(seen), *log_findings(seen))


def _is_linked_by_rustc(seen: BuildEvidence) -> bool:
    """True if rustc wrote the link line, which names each crate, used or not."""
    binary = seen.proof.binary
    named = (*binary.comments, *(unit.compiler for unit in binary.units))
    return any(text.startswith("rustc") for text in named)


def judge_all(program: BuildEvidence, others: Sequence[BuildEvidence]) -> tuple[Finding, ...]:
    """All findings; what is true of the tree or the log, not of one file, is said once.

    `others` are the files that are loaded with the program.
    """
    if program.request is not None:
        log = without_others(program.log, _objects_of((program, *others)))
        program = replace(program, log=log)
    program, *others = _with_elsewhere((program, *others))
    findings = list(judge(program))
    known = {(finding.code, finding.text) for finding in findings}
    for seen in others:
        # The same rule about the same tree says the same but for the file's name.
        findings += (
            finding
            for finding in _judge_file(seen)
            if (finding.code, finding.text.removeprefix(f"{seen.file}: ")) not in known
        )
    return tuple(findings)


def _with_elsewhere(every: Sequence[BuildEvidence]) -> tuple[BuildEvidence, ...]:
    """The same files, each with what others of them have of the flags that were asked for."""
    had = [(seen, flags_had(seen)) for seen in every]
    having = grouped((flag, seen.name) for seen, flags in had for flag in flags)
    return tuple(
        replace(seen, elsewhere={f: tuple(of) for f, of in having.items() if f not in flags})
        for seen, flags in had
    )


def _objects_of(every: Sequence[BuildEvidence]) -> dict[str, frozenset[str]]:
    """Sources of what runs, with the objects that calls made of them; none where one is unknown."""
    calls = grouped((unit.source, unit.call) for seen in every for unit in own_units(seen))
    return {source: frozenset(_objects(call)) for source, call in calls.items()}


def _objects(calls: Sequence[Call | None]) -> list[str]:
    known = [call for call in calls if call is not None and not call.has_linked]
    if len(known) < len(calls):
        return []
    return [output.path for call in known for output in call.outputs]


def _judge_file(seen: BuildEvidence) -> list[Finding]:
    if own_units(seen):
        # The log is of the whole build, and was judged with the program. That BOLT left a library
        # alone is a finding of its own, which has the reason.
        judged = judge(replace(seen, log=""))
        return [finding for finding in judged if not finding.is_a(BOLT_NOT_APPLIED)]
    # Flags of a variant do not go to dependencies.
    name = seen.file.rpartition("/")[2]
    of_dependencies = any(
        call.has_linked and (call.line.output or "").rpartition("/")[2] == name
        for call in seen.dependency_calls
    )
    if not seen.calls or of_dependencies:
        return []
    text = "no recorded call linked it from the program's sources, so its flags are not judged"
    return [seen.finding(NOT_JUDGED, text)]
