"""Questions after causes, the next one after the answer to the one before. Asks the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ensign.experiment.ports import Ports
from ensign.experiment.study.causes import (
    Question,
    end_of_flags,
    flag_question,
    function_question,
    is_shown,
    named_sources,
    others_hold_most,
    questions,
    rounds_of,
    source_question,
    training_question,
)
from ensign.experiment.study.prepare import single_flags_between, sources_of
from ensign.experiment.study_file import StudyFile
from ensign.explain.causes import can_mix_functions, can_mix_sources, can_split_training
from ensign.model.results import Result
from ensign.model.variants import Variant
from ensign.toolchains.single_flags import SingleFlag


def proofs(
    file: StudyFile, pair: StudyFile, results: Sequence[Result], proof_ns: int, ports: Ports
) -> Iterator[tuple[Question, int]]:
    """What is worth asking of a pair of the study's variants, each with its part of the time.

    Choices and sources first, then single flags of those choices that turned out to be causes.
    `results` grows meanwhile: the last one has all causes that are known so far. Sources that no
    function names are asked in groups, those beside the named ones only where most lies there. Time
    for questions that turn out to be needless goes to the next ones.
    """
    a, b = pair.variants
    if not proof_ns or not is_shown(results[-1]):
        return
    sources = sources_of(pair, ports) if can_mix_sources(a, b) else []
    first = questions(a, b, results[-1], sources)
    named = named_sources(first)
    left = [source for source in sources if source not in named] if len(sources) > 1 else []
    _, flags = _flags(file, a, b, results[-1], ports)
    time = _Time(proof_ns)
    lessons = _lessons(file, a, b)
    later = (min(1, rounds_of(left)) if named else rounds_of(left)) + rounds_of(flags)
    mixes = int(can_mix_functions(a, b))
    later += rounds_of(lessons) + mixes
    for number, question in enumerate(first):
        yield question, time.part(len(first) - number + later)
    told = len(results[-1].causes)
    if named and not others_hold_most(results[-1].causes):
        left = []
    end, flags = _flags(file, a, b, results[-1], ports)

    def of_sources() -> Question | None:
        return source_question(a, b, left, results[-1].causes[told:], named)

    def of_functions() -> Question | None:
        return function_question(a, b, results[0], sources, results[-1].causes)

    def of_training() -> Question | None:
        asked = [workload.name for workload in pair.study.workloads]
        return training_question(a, b, lessons, asked, results[-1].causes)

    def of_flags() -> Question | None:
        return None if end is None else flag_question(a, end, flags, results[-1].causes)

    after = rounds_of(lessons) + rounds_of(flags)
    yield from time.parts(of_sources, rounds_of(left), after=after + mixes)
    yield from time.parts(of_functions, mixes, after=after)
    yield from time.parts(of_training, rounds_of(lessons), after=rounds_of(flags))
    yield from time.parts(of_flags, rounds_of(flags), after=0)


@dataclass(slots=True)
class _Time:
    """Time that questions have, of which each takes a part."""

    left_ns: int

    def part(self, rounds: int) -> int:
        """Takes as much for a question as each of so many has."""
        taken_ns = self.left_ns // max(1, rounds)
        self.left_ns -= taken_ns
        return taken_ns

    def parts(
        self, ask: Callable[[], Question | None], rounds: int, *, after: int
    ) -> Iterator[tuple[Question, int]]:
        """Questions as long as there is a next one, in so many rounds; others come after them."""
        while asked := ask():
            yield asked, self.part(rounds + after)
            rounds = max(1, rounds - 1)


def _lessons(file: StudyFile, a: Variant, b: Variant) -> tuple[str, ...]:
    """Training workloads, where the second variant alone learns from them."""
    training = file.study.training
    if training is None or not can_split_training(a, b):
        return ()
    return tuple(workload.name for workload in training.workloads)


def _flags(
    file: StudyFile, a: Variant, b: Variant, last: Result, ports: Ports
) -> tuple[Variant | None, tuple[SingleFlag, ...]]:
    end = end_of_flags(a, b, last.causes)
    return end, () if end is None else single_flags_between(file, a, end, ports)
