"""A trial as the bytes of a Parquet file, and back. Pure.

Columns are the slices; everything else is one JSON text in the file's metadata, so that a file
can be copied, merged and read alone, also with other tools.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from ensign.host.json_text import read_json
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.trials import SliceRecord, Trial
from ensign.model.validation import first_error

SCHEMA = 2
_KEY = "ensign"
_TRIAL = TypeAdapter(Trial)
MOST_ROUNDS = 1_000_000  # more than anybody races; what is as long as that fits into memory
_LARGEST = 2.0**63
_LONGEST_NAME = 300
_SHOWN = 200


def to_bytes(trial: Trial) -> bytes:
    """The Parquet file of a trial."""
    import polars as pl  # noqa: PLC0415  # takes a tenth of a second; most commands need no trials

    columns = {
        "variant": pl.Categorical,
        "start_ns": pl.Int64,
        "wall_ns": pl.Int64,
        "cpu_ns": pl.Int64,
        "load_cpu_ns": pl.Int64,
        "filler": pl.Boolean,
        "cpu_wait_ns": pl.Int64,
    }
    values = {column: [getattr(part, column) for part in trial.slices] for column in columns}
    variants = tuple(replace(variant, mapped=()) for variant in trial.variants)
    said = _TRIAL.dump_python(replace(trial, variants=variants, slices=()), mode="json")
    header = json.dumps({"schema": SCHEMA, "trial": said})
    buffer = io.BytesIO()
    pl.DataFrame(values, schema=columns).write_parquet(buffer, metadata={_KEY: header})
    return buffer.getvalue()


def from_bytes(data: bytes) -> Trial:
    """The trial of a Parquet file, without its slices. InputError where it is none.

    Files may be a stranger's: nothing in it is believed before it was looked at. Polars has no
    defense against damaged columns (it panics, or takes whatever memory they claim): nothing of
    these is read; all that is needed is metadata.
    """
    import polars as pl  # noqa: PLC0415

    with _parquet_errors(pl.exceptions.PanicException):
        text = pl.read_parquet_metadata(io.BytesIO(data))[_KEY]
    try:
        header = read_json(text)
        if header["schema"] != SCHEMA:
            schema = quoted(header["schema"])[:_SHOWN]
            raise InputError(f"a trial of schema {schema}; this ensign reads {SCHEMA}")
        trial = _TRIAL.validate_python(header["trial"])
        require_plausible(trial)
    except ValidationError as error:
        raise InputError(f"not a trial of ensign: {first_error(error)}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"not a trial of ensign: {_first_line(error)}") from None
    return trial


def slices_of(data: bytes) -> tuple[SliceRecord, ...]:
    """The slices in a Parquet file that this ensign wrote."""
    import polars as pl  # noqa: PLC0415

    frame = pl.read_parquet(io.BytesIO(data)).with_columns(pl.col("variant").cast(pl.String))
    return tuple(SliceRecord(*row) for row in frame.iter_rows())


@contextmanager
def _parquet_errors(panic: type[BaseException]) -> Iterator[None]:
    """The one place that knows what polars raises at bytes that are no Parquet file."""
    try:
        yield
    except (Exception, panic) as error:  # noqa: BLE001  # see above
        raise InputError(f"not a trial of ensign: {_first_line(error)}") from None


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
        parts = (each.latency, each.activity, each.load_activity, each.code_samples)
        for part in filter(None, parts):
            _require_numbers(part, each.variant)
    _require_numbers(trial, trial.workload)
    if trial.round_index > MOST_ROUNDS:
        raise ValueError(f"it is of round {trial.round_index:,}")


def _require_numbers(value: object, owner: str) -> None:
    for name in value.__slots__:  # type: ignore[attr-defined]  # all are dataclasses with slots
        number = getattr(value, name)
        if isinstance(number, int | float) and not 0 <= number < _LARGEST:
            raise ValueError(f"{name} of {owner} is {number:g}")
