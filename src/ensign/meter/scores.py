"""What runs said of their own speed, read as they were asked for it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ensign.meter.requests import NamedPattern, RaceRequest, Report
from ensign.model.errors import CommandFailed
from ensign.model.quoting import visible
from ensign.model.trials import Better, NamedScore, Score

_LONGEST_NAME = 200
_AGGREGATES = ("mean", "median", "stddev", "cv", "BigO", "RMS")
_NO_NUMBER = "nothing that it printed is a number above 0"


@dataclass(frozen=True, slots=True)
class AskedScores:
    """What a variant is asked for; the race is nothing without one that is `required`."""

    score: Score | None = None
    named: tuple[NamedPattern, ...] = ()
    report: Report | None = None
    required: bool = False

    @property
    def unit(self) -> str:
        """Of the one score."""
        return "" if self.score is None else self.score.unit

    @property
    def better(self) -> Better:
        """Which one score is the better one."""
        return Better.HIGHER if self.score is None else self.score.better

    def named_scores(
        self, found: Sequence[tuple[str, float | None]], report: str | None
    ) -> tuple[NamedScore, ...]:
        """All scores that have names, of patterns and of the report.

        CommandFailed where some are asked for and there is no value at all, or for a damaged
        report.
        """
        aggregates = _aggregates({name for name, _ in found})
        scores = [self._of_pattern(name, value) for name, value in found if name not in aggregates]
        if self.report is not None:
            scores += self.report.read(report or "")
        by_name = {each.name: each for each in scores}
        asked = bool(self.named) or self.report is not None
        if asked and all(each.value is None for each in by_name.values()):
            why = next((f"{each.name}: {each.failed}" for each in by_name.values()), "")
            raise CommandFailed(f"it says nothing of its speed: {why or 'no pattern matches'}")
        return tuple(by_name.values())

    def _of_pattern(self, name: str, value: float | None) -> NamedScore:
        own = [each.score for each in self.named if each.name == name]
        said = own or [each.score for each in self.named if not each.name]
        score = said[0] if said else Score("")
        failed = _NO_NUMBER if value is None else ""
        shown = visible(name)[:_LONGEST_NAME]
        return NamedScore(shown, value, score.unit, score.better, failed)


def _aggregates(names: Collection[str]) -> set[str]:
    """Rows that sum up others, as Google Benchmark prints them below repetitions of `x`."""
    stems = [name.removesuffix("_stddev") for name in names if name.endswith("_stddev")]
    whole = [stem for stem in stems if stem in names and f"{stem}_mean" in names]
    return {f"{stem}_{kind}" for stem in whole for kind in _AGGREGATES}


NOTHING_ASKED = AskedScores()


def asked_scores(request: RaceRequest) -> dict[str, AskedScores]:
    """What each variant of a race is asked for."""
    return {
        each.name: AskedScores(each.score, each.scores, each.report, each.required)
        for each in request.variants
    }
