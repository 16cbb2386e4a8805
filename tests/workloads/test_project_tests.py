from __future__ import annotations

import tomllib
from typing import Any

import pytest

from ensign.model.errors import InputError
from ensign.model.study_workload import Workload
from ensign.workloads.project_tests import project_tests, with_placeholders, workload_tables


def _ctest(name: str, command: list[str] | None, **properties: object) -> dict[str, object]:
    said = [{"name": key, "value": value} for key, value in properties.items()]
    test: dict[str, object] = {"name": name, "properties": said}
    return test if command is None else {**test, "command": command}


def _workloads(document: object) -> list[dict[str, Any]]:
    tests = with_placeholders(project_tests(document), "/src/tree/", "build/tool")
    found: list[dict[str, Any]] = tomllib.loads(workload_tables(tests)).get("workloads", [])
    for each in found:
        Workload.model_validate(each)
    return found


def test_ctest_gives_arguments_folder_environment_and_time() -> None:
    listed = _ctest(
        "Parse/Big",
        ["/src/tree/build/tool", "--in=/src/tree/data/x", '{"a": {b}}', '\x1b\n"\\'],
        WORKING_DIRECTORY="/src/tree/build",
        ENVIRONMENT=["A=b=c", "P=/src/tree/p:/usr"],
        TIMEOUT=30.0,
    )
    assert _workloads({"kind": "ctestInfo", "version": {"major": 1}, "tests": [listed]}) == [
        {
            "name": "parse-big",
            "command": ["{artifact}", "--in={files}/data/x", '{"a": {{b}}}', '\x1b\n"\\'],
            "folder": "{files}/build",
            "env": {"A": "b=c", "P": "{files}/p:/usr"},
            "deadline": "30s",
        }
    ]


def test_meson_gives_the_same() -> None:
    listed = [
        {"name": "a", "cmd": ["/src/tree/build/b", "1"], "env": {"K": "v"}, "workdir": None},
        {"name": "a", "cmd": ["/src/tree-other/b"], "env": {}, "workdir": "/w", "timeout": 5},
        {"name": "a", "cmd": ["/src/tree/build/c"], "env": {}, "workdir": "/w", "timeout": 5},
    ]
    assert _workloads(listed) == [
        {"name": "a", "command": ["{files}/build/b", "1"], "env": {"K": "v"}},
        {"name": "a-3", "command": ["{files}/build/c"], "folder": "/w", "deadline": "5s"},
    ]


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (_ctest("t", None), "its program is not built"),
        (_ctest("t", ["/src/tree/build/tool"], WILL_FAIL=True), "it must fail"),
        (_ctest("t", ["/src/tree/build/tool"], DEPENDS=["x"]), "another test must have run"),
        (_ctest("t", ["/bin/echo"]), "it runs nothing below the source folder"),
    ],
)
def test_what_is_no_plain_command_is_left_out_with_the_reason(test: Any, why: str) -> None:
    tests = project_tests({"kind": "ctestInfo", "tests": [test]})
    text = workload_tables(with_placeholders(tests, "/src/tree"))
    assert text.startswith(f"# left out: t: {why}")
    assert tomllib.loads(text) == {}


@pytest.mark.parametrize("document", [None, 3, {}, {"tests": []}, [3], [{"name": "x"}]])
def test_what_is_no_list_of_tests_is_refused(document: object) -> None:
    with pytest.raises(InputError, match=r"list of tests|neither what"):
        project_tests(document)
