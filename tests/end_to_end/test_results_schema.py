"""What real races write as JSON follows the schema that `ensign schema --results` prints."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from end_to_end.conftest import SOON, Ensign, Programs
from ensign.report.formats import results_schema_text

VALIDATOR = jsonschema.Draft202012Validator(json.loads(results_schema_text()))


def test_a_study_that_was_raced_follows_it(ensign: Ensign, measured: Path) -> None:
    done = ensign("report", measured.name, "--json", "study.json")
    assert done.status == 0, done.err
    VALIDATOR.validate(json.loads((ensign.folder / "study.json").read_text()))


def test_a_comparison_that_was_raced_follows_it(ensign: Ensign, programs: Programs) -> None:
    commands = (f"{programs.cheap} 200000", f"{programs.dear} 200000")
    done = ensign("compare", *commands, *SOON, "--export-json", "compared.json")
    assert done.status == 0, done.err
    VALIDATOR.validate(json.loads((ensign.folder / "compared.json").read_text()))
