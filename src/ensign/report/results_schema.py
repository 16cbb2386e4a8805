"""The JSON Schema of what `as_json` writes. A test holds every kind of output against it."""

from __future__ import annotations

from importlib.resources import files


def results_schema_text() -> str:
    """The schema, as it is printed."""
    return (files("ensign.report") / "results.schema.json").read_text(encoding="utf-8")
