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
from ensign.model.quoting import quoted
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
_SLICES = TypeAdapter(tuple[SliceRecord, ...])
MOST_ROUNDS = 1_000_000  # more than anybody races; what is as long as that fits into memory
_MOST_SLICES = 5_000_000
_LARGEST = 2.0**63
_LONGEST_NAME = 300
_SHOWN = 200
_DAMAGED = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,  # what polars did not expect in a file
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)


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
    """The trial of a Parquet file. InputError where it is none, or of another schema.

    It may be a stranger's: nothing in it is believed before it was looked at.
    """
    try:
        header = read_json(pl.read_parquet_metadata(io.BytesIO(data))[_KEY])
        if header["schema"] != SCHEMA:
            schema = quoted(header["schema"])[:_SHOWN]
            raise InputError(f"a trial of schema {schema}; this ensign reads {SCHEMA}")
        trial = _TRIAL.validate_python(header["trial"])
        require_plausible(trial)
        return replace(trial, slices=_slices(data)) if with_slices else trial
    except _DAMAGED as error:
        raise InputError(f"not a trial of ensign: {_first_line(error)}") from None


def _slices(data: bytes) -> tuple[SliceRecord, ...]:
    """ValueError where there are more than any trial has, or other columns."""
    lazy = pl.scan_parquet(io.BytesIO(data))
    names = lazy.collect_schema().names()
    if names != list(_COLUMNS):
        raise ValueError(f"its columns are {quoted(names[: len(_COLUMNS)])}")
    # The number of rows is in the file's last bytes: nothing is unpacked for it.
    rows = lazy.select(pl.len()).collect().item()
    if rows > _MOST_SLICES:
        raise ValueError(f"it has {rows:,} slices")
    frame = lazy.collect().with_columns(pl.col("variant").cast(pl.String))
    return _SLICES.validate_python([SliceRecord(*row) for row in frame.iter_rows()])


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return quoted(text.splitlines()[0][:_SHOWN])[1:-1]


def require_plausible(trial: Trial) -> None:
    """ValueError for times, counts and shares that no race has, and names that are no names."""
    names = (trial.workload, *(each.variant for each in trial.variants))
    for name in (*names, *(each.variant for each in trial.failures)):
        if not name.isprintable() or len(name) > _LONGEST_NAME:
            raise ValueError(f"a name is {quoted(name[:_SHOWN])}")
    for each in trial.variants:
        _require_numbers(each, each.variant)
        if each.operations < 1 and not each.score:
            raise ValueError(f"{each.variant} completed no operation")
        for part in filter(None, (each.latency, each.activity, each.load_activity)):
            _require_numbers(part, each.variant)
    _require_numbers(trial, trial.workload)
    if trial.round_index > MOST_ROUNDS:
        raise ValueError(f"it is of round {trial.round_index:,}")


def _require_numbers(value: object, owner: str) -> None:
    for name in value.__slots__:  # type: ignore[attr-defined]  # all are dataclasses with slots
        number = getattr(value, name)
        if isinstance(number, int | float) and not 0 <= number < _LARGEST:
            raise ValueError(f"{name} of {owner} is {number:g}")
