"""Numbers as files of others may have them, and what a validation complains about. Pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

_LONGEST = 200

Count = Annotated[int, Field(ge=0, lt=2**63)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


def first_error(error: ValidationError) -> str:
    """The first mistake and its place, such as `variants.0.wall_ns: Input should be …`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    said = first["msg"].removeprefix("Value error, ")
    return (f"{where}: {said}" if where else said)[:_LONGEST]
