"""Output of a program, given back to it: what encodes can decode, too. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from ensign.tools.init.attempts import INPUT, OUTPUT, Attempt, Sample
from ensign.tools.init.search import WANTED_NS, TriedCommand

_UNDOING = re.compile(
    r"^(-[dDxu]|-{0,2}(dec|(de|un)(compress|code|crypt|pack|archive|serialize)|(un|de)\w*zip"
    r"|extract|expand|inflate|restore|reverse|revert))$"
)
_MOST_WRITERS = 3
_MOST_UNDOING = 4


def undoing_of(options: Sequence[str], choices: Sequence[str]) -> tuple[str, ...]:
    """Options and first words that sound like the way back; `-d` where a program names none."""
    named = tuple(dict.fromkeys((*options, *choices)))
    undoing = tuple(word for word in named if _UNDOING.match(word))
    return undoing[:_MOST_UNDOING] if named else ("-d",)


def writers(ran: Iterable[TriedCommand]) -> list[Attempt]:
    """Attempts that ran on a sample, each form once: those that took as long as is wanted.

    What a program makes of a file that it changes in its place is not among what it writes.
    """
    by_words: dict[tuple[str, tuple[str, ...]], Attempt] = {}

    def far_off(trial: TriedCommand) -> float:
        return abs(math.log(max(1, trial.user_ns) / WANTED_NS))

    for trial in sorted(ran, key=far_off):
        attempt = trial.attempt
        if attempt.sample is not None and attempt.repeat == 1 and not attempt.copy:
            by_words.setdefault((attempt.program.path, attempt.words), attempt)
    return list(by_words.values())[:_MOST_WRITERS]


def written_sample(attempt: Attempt, content: bytes) -> Sample:
    """Output of an attempt, as a sample; its name ends as the named output's does."""
    path = f"written{attempt.output.removeprefix(OUTPUT)}"
    return Sample(path, len(content), content=content, origin=attempt.said)


def ways_back(writer: Attempt, undoing: Sequence[str], written: Sample) -> Iterator[Attempt]:
    """The writer's command with the other way in place of its options, before them, or alone."""
    words = writer.words
    options = [at for at, word in enumerate(words) if not word.startswith((INPUT, OUTPUT))]
    for undo in undoing:
        ways = [(*words[:at], undo, *words[at + 1 :]) for at in options]
        ways += [(undo, *words), (undo,), (undo, INPUT)]
        for way in dict.fromkeys(ways):
            yield Attempt(writer.program, way, written, writer.env, in_tmp=writer.in_tmp)
