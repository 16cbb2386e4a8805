"""The formats in which a result is written to a file. A new one is a row here, and its module.

Renderers are imported when they are used: commands read this table for their options.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensign.model.results import Result

import json
from importlib.resources import files
from typing import Any

from ensign.model.trials import Metric


def results_schema_text() -> str:
    """The schema, as it is printed."""
    text = (files("ensign.report") / "results.schema.json").read_text(encoding="utf-8")
    return json.dumps(json.loads(text, object_hook=_with_metrics), indent=2) + "\n"


def _with_metrics(keys: dict[str, Any]) -> dict[str, Any]:
    if keys.get("metric", {}).get("type") == "string":
        keys["metric"] = {"description": keys["metric"]["description"], "enum": list(Metric)}
    return keys


@dataclass(frozen=True, slots=True)
class Format:
    """One format: its option is `--NAME FILE` (`aliases` do the same), with that help."""

    name: str
    help: str
    render: Callable[[Result], str]
    aliases: tuple[str, ...] = ()


def _json(result: Result) -> str:
    from ensign.report import as_json  # noqa: PLC0415

    return as_json.render(result)


def _markdown(result: Result) -> str:
    from ensign.report import as_markdown  # noqa: PLC0415

    return as_markdown.render(result)


def _csv(result: Result) -> str:
    from ensign.report import as_csv  # noqa: PLC0415

    return as_csv.render(result)


def _html(result: Result) -> str:
    from ensign.report import as_html  # noqa: PLC0415

    return as_html.render(result)


FORMATS = (
    Format("json", "Everything ('-': to standard output).", _json, ("--export-json",)),
    Format("markdown", "For a pull request.", _markdown, ("--export-markdown",)),
    Format("csv", "A row for each comparison.", _csv, ("--export-csv",)),
    Format("html", "A page with figures, in one file.", _html),
)
