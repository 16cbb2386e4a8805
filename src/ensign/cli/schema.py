"""`ensign schema`: the JSON Schema of study files, for editors."""

from __future__ import annotations

from ensign.cli.output import say


def schema() -> None:
    """Print the JSON Schema of a study file."""
    import json  # noqa: PLC0415

    from ensign.model.study import study_schema  # noqa: PLC0415  # pydantic loads with it

    say(json.dumps(study_schema(), indent=2) + "\n")
