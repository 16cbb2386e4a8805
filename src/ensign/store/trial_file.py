"""A trial as the bytes of a Parquet file, and back. Pure.

Columns are the slices; everything else is one JSON text in the file's metadata, so that a file
can be copied, merged and read alone, also with other tools.
"""

from __future__ import annotations

import io
from dataclasses import asdict, fields
from typing import Annotated

import polars as pl
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from ensign.model.errors import InputError
from ensign.model.findings import Finding
from ensign.model.trials import ArmTotals, Mode, SliceRecord, Trial

SCHEMA = 1
_KEY = "ensign"
_COLUMNS = {
    "arm": pl.Categorical,
    "start_ns": pl.Int64,
    "wall_ns": pl.Int64,
    "cpu_ns": pl.Int64,
    "load_cpu_ns": pl.Int64,
    "filler": pl.Boolean,
}


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class _Header:
    schema: int
    workload: str
    sweep: int
    seed: int
    mode: Mode
    freezer: str
    slice_ns: int
    started_unix_s: float
    wall_ns: int
    running_share: float
    arms: tuple[ArmTotals, ...]
    findings: tuple[Finding, ...]


_HEADER: TypeAdapter[_Header] = TypeAdapter(Annotated[_Header, None])


def to_bytes(trial: Trial) -> bytes:
    """The Parquet file of a trial."""
    values = {column: [getattr(part, column) for part in trial.slices] for column in _COLUMNS}
    frame = pl.DataFrame(values, schema=_COLUMNS)
    header = _Header(
        schema=SCHEMA,
        **{
            field.name: getattr(trial, field.name)
            for field in fields(Trial)
            if field.name != "slices"
        },
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={_KEY: _HEADER.dump_json(header).decode()})
    return buffer.getvalue()


def from_bytes(data: bytes, *, with_slices: bool = True) -> Trial:
    """The trial of a Parquet file. InputError where it is none, or of another schema."""
    try:
        header = _HEADER.validate_json(pl.read_parquet_metadata(io.BytesIO(data))[_KEY])
    except (pl.exceptions.PolarsError, KeyError, ValueError) as error:
        raise InputError(f"not a trial of ensign: {error}") from None
    if header.schema != SCHEMA:
        raise InputError(f"a trial of schema {header.schema}; this ensign reads {SCHEMA}")
    rows: tuple[SliceRecord, ...] = ()
    if with_slices:
        frame = pl.read_parquet(io.BytesIO(data)).with_columns(pl.col("arm").cast(pl.String))
        rows = tuple(SliceRecord(*row) for row in frame.iter_rows())
    values = asdict(header)
    del values["schema"]
    values |= {"arms": header.arms, "findings": header.findings, "slices": rows}
    return Trial(**values)
