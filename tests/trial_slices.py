"""Reads the table of slices in a trial's file, as other tools do."""

import csv
import gzip
import io

from ensign.model.trials import SliceRecord


def slices_of(data: bytes) -> tuple[SliceRecord, ...]:
    """The slices that ensign wrote."""
    _, _, table = gzip.decompress(data).decode().partition("\n")
    return tuple(
        SliceRecord(
            row["variant"],
            int(row["start_ns"]),
            int(row["wall_ns"]),
            int(row["cpu_ns"]),
            int(row["load_cpu_ns"]),
            {"True": True, "False": False}[row["filler"]],
            int(row["cpu_wait_ns"]) if row["cpu_wait_ns"] else None,
        )
        for row in csv.DictReader(io.StringIO(table))
    )
