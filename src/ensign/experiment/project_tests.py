"""A list of a project's tests that CTest or Meson wrote, read as workloads of a study."""

from __future__ import annotations

from pathlib import Path

from ensign.host.json_text import read_json
from ensign.host.text import read_text
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.workloads.project_tests import project_tests, with_placeholders, workload_tables


def project_workloads(path: Path, source: str, artifact: str = "") -> str:
    """The [[workloads]] of a study file. Nothing of the project is run. InputError with the path.

    `source` is the source folder as it stands in that list, `artifact` the program below it.
    """
    try:
        tests = project_tests(read_json(read_text(path)))
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {quoted(str(error))[1:-1]}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not tests:
        raise InputError(f"{path}: it lists no test")
    return workload_tables(with_placeholders(tests, source, artifact))
