"""The formats in which a result is written to a file. A new one is a line here, and its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ensign.model.results import Result
from ensign.report import as_csv, as_html, as_json, as_markdown

FORMATS: Mapping[str, Callable[[Result], str]] = MappingProxyType(
    {
        "json": as_json.render,
        "markdown": as_markdown.render,
        "csv": as_csv.render,
        "html": as_html.render,
    }
)
