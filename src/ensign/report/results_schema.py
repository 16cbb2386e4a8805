"""The JSON Schema of results; the metrics in it are those of the model."""

from __future__ import annotations

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
