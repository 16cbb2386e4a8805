"""Workloads with a parameter: a test for each of its values, written out before all else. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from ensign.model.placeholders import RESERVED, fill_some
from ensign.model.validation import Finite, Section

_PLACEHOLDER = r"^[a-z][a-z0-9_]*$"


def _free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{{{name}}} means something already; choose another name")
    return name


PlaceholderName = Annotated[str, Field(pattern=_PLACEHOLDER), AfterValidator(_free)]
Value = int | Finite


class Parameter(Section):
    """Parameter of a workload: `{NAME}` in any of its keys becomes each of the `values`.

    Each value is a test, called `WORKLOAD-VALUE`, and all of them are a curve. A key that is
    nothing but the placeholder, such as `connections = "{connections}"`, is that number.
    """

    name: PlaceholderName = Field(description="its placeholder, and its name in reports")
    values: list[Value] = Field(min_length=1, max_length=100, description="numbers, rising")
    unit: str = Field(
        default="", max_length=20, description="of the values; with B figures per second are in Mb"
    )
    also: dict[PlaceholderName, list[Value | str]] = Field(
        default_factory=dict, description="further placeholders, each with one for each value"
    )
    curve: str | None = Field(
        default=None,
        min_length=1,
        max_length=60,
        description="what it belongs to, where several workloads make a curve; by default its name",
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if any(one >= other for one, other in zip(self.values, self.values[1:], strict=False)):
            raise ValueError("its 'values' must rise")
        for name, those in self.also.items():
            if len(those) != len(self.values):
                raise ValueError(f"'also': {name} has {len(those)} for {len(self.values)} values")
        return self

    def at(self, index: int) -> dict[str, object]:
        """What the placeholders stand for at one of the values."""
        also = {name: those[index] for name, those in self.also.items()}
        return {**also, self.name: self.values[index]}


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A study's mapping in which each value is a workload of its own.

    `origins` has, by the keys that lead to a list, which of the written items each item is.
    """

    mapping: Mapping[str, object]
    origins: Mapping[tuple[str | int, ...], tuple[int, ...]]


def write_out_parameters(mapping: Mapping[str, object]) -> WrittenOut:
    """Each workload once for each value of its parameter; what is wrong is left as it is.

    Where the study names such a workload (`same_output`, `slice_check`), it means all of them.
    """
    changed: dict[str, object] = dict(mapping)
    origins: dict[tuple[str | int, ...], tuple[int, ...]] = {}
    names: dict[str, list[str]] = {}
    for table in ("", "training"):
        holder = changed.get(table) if table else changed
        tables = holder.get("workloads") if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or not isinstance(tables, list):
            continue
        values = [(index, own) for index, one in enumerate(tables) for own in _values_of(one)]
        if [own for _, own in values] == tables:
            continue
        where = (table, "workloads") if table else ("workloads",)
        origins[where] = tuple(index for index, _ in values)
        _put(changed, table, "workloads", [own for _, own in values])
        if not table:
            for index, filled in values:
                names.setdefault(_name_of(tables[index]), []).append(_name_of(filled))
    for table, key in (("race", "slice_check"), ("check", "same_output")):
        holder = changed.get(table)
        value = holder.get(key) if isinstance(holder, dict) else None
        if names and isinstance(value, list):
            listed = [(i, own) for i, one in enumerate(value) for own in names.get(str(one), [one])]
            origins[table, key] = tuple(index for index, _ in listed)
            _put(changed, table, key, [own for _, own in listed])
    return WrittenOut(changed, origins)


def _name_of(workload: object) -> str:
    return str(workload.get("name")) if isinstance(workload, dict) else ""


def _put(mapping: dict[str, object], table: str, key: str, value: object) -> None:
    holder = mapping.get(table)
    if isinstance(holder, dict):
        mapping[table] = {**holder, key: value}
    else:
        mapping[key] = value


def _values_of(workload: object) -> list[object]:
    said = workload.get("parameter") if isinstance(workload, dict) else None
    if not isinstance(workload, dict) or not isinstance(said, dict):
        return [workload]
    name = workload.get("name")
    if not isinstance(name, str):
        return [workload]
    try:
        parameter = Parameter.model_validate(said)
    except ValidationError:
        return [{"name": name, "parameter": said}]  # what else is wrong comes from that
    rest = {key: value for key, value in workload.items() if key != "parameter"}
    named = {key: value for key, value in said.items() if key != "also"}
    return [
        {
            **_all_filled(rest, parameter.at(index)),
            "name": f"{name}-{number_text(value)}",
            "parameter": {**named, "values": [value], "curve": parameter.curve or name},
        }
        for index, value in enumerate(parameter.values)
    ]


def number_text(value: float) -> str:
    """`64`, `0.5`: as it stands in commands and in names."""
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else f"{value}"


def _all_filled(
    table: Mapping[str, object], values: Mapping[str, object], *, text: bool = False
) -> dict[str, object]:
    return {key: _filled(item, values, text=text or key == "env") for key, item in table.items()}


def _filled(value: object, values: Mapping[str, object], *, text: bool) -> object:
    """A value with its placeholders; with `text` a number among them is written as one."""
    if isinstance(value, dict):
        return _all_filled(value, values, text=text)
    if isinstance(value, list):
        return [_filled(item, values, text=not isinstance(item, dict)) for item in value]
    if not isinstance(value, str):
        return value
    whole = value[1:-1]
    if not text and value == f"{{{whole}}}" and whole in values:
        return values[whole]
    return fill_some(value, {name: _text(item) for name, item in values.items()})


def _text(value: object) -> str:
    return number_text(value) if isinstance(value, int | float) else str(value)
