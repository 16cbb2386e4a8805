"""A trial as the bytes of a Parquet file, and back. Pure.

Columns are the slices; everything else is one JSON text in the file's metadata, so that a file
can be copied, merged and read alone, also with other tools.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace

import polars as pl
from pydantic import TypeAdapter

from ensign.host.json_text import read_json
from ensign.model.errors import InputError
from ensign.model.trials import SliceRecord, Trial

SCHEMA = 2
_KEY = "ensign"
_COLUMNS = {
    "variant": pl.Categorical,
    "start_ns": pl.Int64,
    "wall_ns": pl.Int64,
    "cpu_ns": pl.Int64,
    "load_cpu_ns": pl.Int64,
    "filler": pl.Boolean,
    "cpu_wait_ns": pl.Int64,
}
_TRIAL = TypeAdapter(Trial)


def to_bytes(trial: Trial) -> bytes:
    """The Parquet file of a trial."""
    values = {column: [getattr(part, column) for part in trial.slices] for column in _COLUMNS}
    variants = tuple(replace(variant, mapped=()) for variant in trial.variants)
    said = _TRIAL.dump_python(replace(trial, variants=variants, slices=()), mode="json")
    header = json.dumps({"schema": SCHEMA, "trial": said})
    buffer = io.BytesIO()
    pl.DataFrame(values, schema=_COLUMNS).write_parquet(buffer, metadata={_KEY: header})
    return buffer.getvalue()


def from_bytes(data: bytes, *, with_slices: bool = True) -> Trial:
    """The trial of a Parquet file. InputError where it is none, or of another schema."""
    try:
        header = read_json(pl.read_parquet_metadata(io.BytesIO(data))[_KEY])
        if header["schema"] != SCHEMA:
            raise InputError(f"a trial of schema {header['schema']}; this ensign reads {SCHEMA}")
        trial = _TRIAL.validate_python(header["trial"])
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a trial of ensign: {error}") from None
    if not with_slices:
        return trial
    frame = pl.read_parquet(io.BytesIO(data)).with_columns(pl.col("variant").cast(pl.String))
    return replace(trial, slices=tuple(SliceRecord(*row) for row in frame.iter_rows()))
