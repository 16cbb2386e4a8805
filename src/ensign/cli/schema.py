"""`ensign schema`: the JSON Schema of study files and of results, for editors and other readers."""

from __future__ import annotations

from typing import Annotated

import typer

from ensign.cli.output import say


def schema(
    *,
    results: Annotated[
        bool,
        typer.Option("--results", help="The schema of the JSON that 'report' and 'compare' write."),
    ] = False,
) -> None:
    """Print the JSON Schema of a study file, or of the results as JSON."""
    if results:
        from ensign.report.formats import results_schema_text  # noqa: PLC0415

        say(results_schema_text())
        return
    import json  # noqa: PLC0415

    from ensign.model.study import study_schema  # noqa: PLC0415  # pydantic loads with it

    say(json.dumps(study_schema(), indent=2) + "\n")
