"""Messages about a workload that is weak, and where there is none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ensign.model.quoting import visible
from ensign.model.units import format_duration
from ensign.tools.init.attempts import Executable
from ensign.tools.init.samples import given_name
from ensign.tools.init.search import LEAST_NS, LEAST_SHARE, TRIAL_NS, TriedCommand

_MOST_WAYS = 3


def doubts(trial: TriedCommand) -> tuple[str, ...]:
    """Reasons against a command as a workload, a sentence each."""
    sentences = []
    sample = trial.attempt.sample
    if sample is not None and sample.made:
        sentences.append(
            f"{given_name(sample)} was made up by ensign: no file of the tree that was tried "
            "before would do. Put one of your own in its place."
        )
    if sample is not None and sample.origin:
        sentences.append(
            f"{given_name(sample)} is what '{sample.origin}' wrote: the way back is more at work "
            "in files of the build than the way there."
        )
    if trial.wall_ns > TRIAL_NS:
        sentences.append(
            f"An execution takes {format_duration(trial.wall_ns)}, so the race takes minutes: "
            "nothing shorter was found that works in files of the build."
        )
    if trial.user_ns < LEAST_NS:
        sentences.append(
            f"The workload is short ({format_duration(trial.user_ns)} of user time): most of it "
            "may be the program's start. A longer one says more."
        )
    if trial.share_of_cpu < LEAST_SHARE:
        sentences.append(
            f"Only {trial.share_of_cpu:.0%} of the workload's CPU time is in files of the build "
            f"({trial.share_built:.0%} of its user time): flags can change no more than that."
        )
    return tuple(sentences)


def nothing_ran(
    folder: Path, command: str, programs: Sequence[Executable], failures: Sequence[TriedCommand]
) -> str:
    """Why no command ended well, of those that were tried or of the one that was named."""
    names = ", ".join(program.path for program in programs[:4])
    if command:
        how = _told([failures[0]])
        return f"{folder} builds ({names}), but '{command}' {how}; name another"
    ways = Counter(tried.how for tried in failures).most_common(_MOST_WAYS)
    told = ", ".join(
        f"{count} × {_told([failure for failure in failures if failure.how == how])}"
        for how, count in ways
    )
    return (
        f"{folder} builds ({names}), but no command that was tried ends well by itself "
        f"({told}); name one: ensign init --command 'PROGRAM WORDS…'"
    )


def nothing_works(folder: Path, trial: TriedCommand) -> str:
    """Message about the best command, which does its work elsewhere."""
    most = f", and most in {visible(trial.elsewhere)}" if trial.elsewhere else ""
    return (
        f"{folder} builds, but no command was found that works in what was built: "
        f"'{trial.attempt.said}' spends {trial.share_of_cpu:.0%} of its CPU time there{most} "
        f"({format_duration(trial.user_ns)} of user time), too little to tell flags apart; "
        "name one: ensign init --command 'PROGRAM WORDS…'"
    )


def _told(failures: Sequence[TriedCommand]) -> str:
    """The common end of these, with what most of them said."""
    most_said = Counter(failure.said for failure in failures if failure.said).most_common(1)
    words = f": '{visible(most_said[0][0])}'" if most_said else ""
    return f"{failures[0].how}{words}"
