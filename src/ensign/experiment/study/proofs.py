"""Questions after causes, the next one after the answer to the one before. Asks the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensign.experiment.ports import Ports
from ensign.experiment.study.causes import (
    Question,
    end_of_flags,
    flag_question,
    is_shown,
    questions,
    rounds_of,
    source_question,
)
from ensign.experiment.study.prepare import single_flags_between, sources_of
from ensign.experiment.study_file import StudyFile
from ensign.explain.causes import can_mix_sources
from ensign.model.results import Result
from ensign.model.variants import Variant
from ensign.toolchains.single_flags import SingleFlag


def proofs(
    file: StudyFile, pair: StudyFile, results: Sequence[Result], proof_ns: int, ports: Ports
) -> Iterator[tuple[Question, int]]:
    """What is worth asking of a pair of the study's variants, each with its part of the time.

    Choices and sources first, then single flags of those choices that turned out to be causes.
    `results` grows meanwhile: the last one has all causes that are known so far.
    """
    a, b = pair.variants
    if not proof_ns or not is_shown(results[-1]):
        return
    sources = sources_of(pair, ports) if can_mix_sources(a, b) else []
    first = questions(a, b, results[-1], sources)
    if len(sources) == 1 or any(question.by == "sources" for question in first):
        sources = []
    _, flags = _flags(file, a, b, results[-1], ports)
    budget_ns = proof_ns // max(1, len(first) + rounds_of(sources) + rounds_of(flags))
    for question in first:
        yield question, budget_ns
    while asked := source_question(a, b, sources, results[-1].causes):
        yield asked, budget_ns
    end, flags = _flags(file, a, b, results[-1], ports)
    while end is not None and (asked := flag_question(a, end, flags, results[-1].causes)):
        yield asked, budget_ns


def _flags(
    file: StudyFile, a: Variant, b: Variant, last: Result, ports: Ports
) -> tuple[Variant | None, tuple[SingleFlag, ...]]:
    end = end_of_flags(a, b, last.causes)
    return end, () if end is None else single_flags_between(file, a, end, ports)
