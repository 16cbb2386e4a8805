"""What a study is to explain: variants between its baseline and another one. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ensign.model.validation import Section

By = Literal[
    "choices",
    "source groups",
    "sources",
    "functions",
    "training groups",
    "training",
    "flag groups",
    "flags",
]


class ToggledCause(Section):
    """A part of the difference, and the two variants that it is told from.

    One is the baseline with it, the other the explained variant without it. An empty name stands
    for an end itself, where the part is all that differs.
    """

    name: str = Field(min_length=1, description="what differs, for people")
    added: str = Field(default="", description="variant: the baseline with this part alone")
    removed: str = Field(default="", description="variant: the explained one without this part")


class Explain(Section):
    """Why one variant costs more or less than the baseline, part by part."""

    variant: str = Field(description="the variant that is explained")
    by: By = Field(default="choices", description="what the parts are")
    start: str = Field(
        default="", description="variant: what parts are added to; the baseline if empty"
    )
    only_removed: bool = Field(
        default=False, description="parts are taken from the variant, and added to nothing"
    )
    causes: list[ToggledCause] = Field(min_length=1, description="the parts")

    @property
    def variants(self) -> tuple[str, ...]:
        """All variants named, each once."""
        named = (name for cause in self.causes for name in (cause.added, cause.removed))
        return tuple(dict.fromkeys(name for name in (self.variant, self.start, *named) if name))
