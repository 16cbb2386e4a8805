"""A trial as the bytes of a file, and back. Pure.

The file is compressed text (gzip): the first line is one JSON text with everything but the slices,
what follows is a CSV table of these. So it can be copied, merged and read alone, also with other
tools: `pandas.read_csv(path, skiprows=1)`, `read_csv('*.csv.gz', skip=1)` of DuckDB.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import fields, replace

from pydantic import TypeAdapter, ValidationError

from ensign.host.regular_file import read_json
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.trials import SliceRecord, Trial
from ensign.model.validation import first_error

SUFFIX = ".csv.gz"
SCHEMA = 3
_TRIAL = TypeAdapter(Trial)
_COLUMNS = tuple(field.name for field in fields(SliceRecord))
_LEVEL = 6  # the highest takes three times as long for 2 % less
_GZIP = 31  # of zlib: a gzip header, the largest window
_STEP_BYTES = 1 << 16
_LARGEST_BYTES = 256 << 20
MOST_ROUNDS = 1_000_000  # more than anybody races; what is as long as that fits into memory
_LARGEST = 2.0**63
_LONGEST_NAME = 300
_SHOWN = 200


def to_bytes(trial: Trial) -> bytes:
    """The file of a trial; equal trials give equal bytes."""
    variants = tuple(replace(variant, mapped=()) for variant in trial.variants)
    document = _TRIAL.dump_python(replace(trial, variants=variants, slices=()), mode="json")
    text = io.StringIO()
    text.write(json.dumps({"schema": SCHEMA, "trial": document}) + "\n")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    table.writerows([getattr(record, name) for name in _COLUMNS] for record in trial.slices)
    return gzip.compress(text.getvalue().encode(), _LEVEL, mtime=0)


def from_bytes(data: bytes) -> Trial:
    """The trial of a file, without its slices. InputError where it is none.

    Files may be a stranger's: nothing in it is believed before it was looked at.
    """
    try:
        header = read_json(_header(data))
        if header["schema"] != SCHEMA:
            schema = quoted(header["schema"])[:_SHOWN]
            raise InputError(f"a trial of schema {schema}; this ensign reads {SCHEMA}")
        trial = _TRIAL.validate_python(header["trial"])
        require_plausible(trial)
    except ValidationError as error:
        raise InputError(f"not a trial of ensign: {first_error(error)}") from None
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise InputError(f"not a trial of ensign: {_first_line(error)}") from None
    return trial


def _header(data: bytes) -> bytes:
    """The first line of the text. ValueError where it is cut off, longer than any, or damaged.

    The slices are unpacked piece by piece, which shows whether they are whole, and not kept.
    """
    line, ended = bytearray(), False
    unpacked_bytes = 0
    for part in _unpacked(data):
        unpacked_bytes += len(part)
        if unpacked_bytes > _LARGEST_BYTES:
            raise ValueError("it is larger than any trial")
        if not ended:
            begun, newline, _ = part.partition(b"\n")
            line += begun
            ended = bool(newline)
    return bytes(line)


def _unpacked(data: bytes) -> Iterator[bytes]:
    unpacking = zlib.decompressobj(_GZIP)
    while not unpacking.eof:
        part = unpacking.decompress(data, _STEP_BYTES)
        data = unpacking.unconsumed_tail
        if not part and not data and not unpacking.eof:
            raise ValueError("it is cut off")
        yield part


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return quoted(text.splitlines()[0][:_SHOWN])[1:-1]


def require_plausible(trial: Trial) -> None:
    """ValueError for times, counts and shares that no race has, and names that are no names."""
    names = (trial.workload, *(totals.variant for totals in trial.variants))
    for name in (*names, *(failure.variant for failure in trial.failures)):
        if not name.isprintable() or len(name) > _LONGEST_NAME:
            raise ValueError(f"a name is {quoted(name[:_SHOWN])}")
    for variant in trial.variants:
        _require_numbers(variant, variant.variant)
        if variant.operations < 1 and not variant.score:
            raise ValueError(f"{variant.variant} completed no operation")
        parts = (variant.latency, variant.activity, variant.load_activity, variant.code_samples)
        for part in filter(None, parts):
            _require_numbers(part, variant.variant)
    _require_numbers(trial, trial.workload)
    if trial.round_index > MOST_ROUNDS:
        raise ValueError(f"it is of round {trial.round_index:,}")


def _require_numbers(value: object, owner: str) -> None:
    for name in value.__slots__:  # type: ignore[attr-defined]  # all are dataclasses with slots
        number = getattr(value, name)
        if isinstance(number, int | float) and not 0 <= number < _LARGEST:
            raise ValueError(f"{name} of {owner} is {number:g}")
