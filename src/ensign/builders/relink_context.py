"""Where links are done again: a sandbox with the tree of the build, and how they fail there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.layouts import LinkCommand
from ensign.host.processes import Outcome
from ensign.model.calls import AskedCall, Call
from ensign.proof.link import TreePlace


@dataclass(frozen=True, slots=True)
class RelinkContext:
    """Where relinks are made, of files at these paths in the tree of `place`, the program first.

    `run` runs one command in the sandbox, for so many nanoseconds at most where it is told a
    number; `scratch` is a folder of the sandbox's own, as a pair: its path here, and as commands in
    the sandbox see it. `path` has programs as the build finds them without the recorder, whose
    folder is `recorder`; `parse` reads a command line as it does.
    """

    run: Callable[[tuple[str, ...], int | None], Outcome]
    calls: Sequence[Call]
    place: TreePlace
    scratch: tuple[Path, str]
    files: tuple[str, ...]
    path: str = ""
    recorder: str = ""
    parse: Callable[[AskedCall], Call] | None = None

    def of(self, number: int) -> RelinkContext:
        """The context of one of the files, with a scratch folder of its own."""
        here, seen = self.scratch[0] / str(number), f"{self.scratch[1]}/{number}"
        here.mkdir(parents=True)
        return replace(self, scratch=(here, seen), files=(self.files[number],))


class CannotError(Exception):
    """What cannot be relinked; the text says why."""


class EndlessError(Exception):
    """A link that did not end in its time."""


def repeat(
    context: RelinkContext, link: LinkCommand, argv: tuple[str, ...], limit_ns: int | None = None
) -> None:
    """Run a command in the folder of the link. CannotError, EndlessError."""
    outcome = context.run(("env", "-C", link.cwd, *argv), limit_ns)
    if limit_ns is not None and outcome.reason == "deadline":
        raise EndlessError
    if not outcome.ok:
        raise CannotError(f"its link, repeated, {outcome.describe()}")
