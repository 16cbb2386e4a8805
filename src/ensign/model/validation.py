"""Tables and numbers as files of others have them, and what a validation complains about. Pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class Section(BaseModel):
    """A table of the study file: unknown keys are errors, nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


_LONGEST = 200

Count = Annotated[int, Field(ge=0, lt=2**63)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


def first_error(error: ValidationError) -> str:
    """The first mistake and its place, such as `variants.0.wall_ns: Input should be …`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    text = first["msg"].removeprefix("Value error, ")
    return (f"{where}: {text}" if where else text)[:_LONGEST]
