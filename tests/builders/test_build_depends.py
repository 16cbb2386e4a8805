"""What a Debian package needs is told, and is nothing but names of packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.builders.build_depends import how_to_install, missing_dependencies, unmet_in
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.errors import InputError
from fakes import FakeProcesses

_UNMET = "dpkg-checkbuilddeps: error: Unmet build dependencies: "


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "debian").mkdir()
    (tmp_path / "debian/control").write_text("Source: x\n")
    return tmp_path


def told(tree: Path, outcome: Outcome) -> list[str]:
    return missing_dependencies(tree, FakeProcesses(lambda _: outcome), {})


def test_what_is_missing_becomes_a_command(tree: Path) -> None:
    said = f"{_UNMET}debhelper-compat (= 13) a:native | b (>> 1~2+b) quilt\n"
    found = told(tree, Outcome(1, None, "exited", tail=said))
    assert found == ["debhelper-compat (= 13)", "a:native | b (>> 1~2+b)", "quilt"]
    assert how_to_install(found).endswith(
        "'debhelper-compat (= 13), a:native | b (>> 1~2+b), quilt'"
    )


def test_what_is_there_is_silent(tree: Path) -> None:
    assert told(tree, Outcome(0, None, "exited")) == []


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(None, None, "not-found"), "apt-get install dpkg-dev"),
        (Outcome(2, None, "exited", tail="error: syntax error in x\n"), "cannot accept .*syntax"),
        (
            Outcome(1, None, "exited", tail="error: Unmet build conflicts: gcc\n"),
            "cannot accept .*conflicts: gcc",
        ),
    ],
)
def test_what_cannot_be_told_is_an_error(tree: Path, outcome: Outcome, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        told(tree, outcome)


def test_no_option_of_a_command_comes_out_of_what_is_told() -> None:
    found = unmet_in(f"{_UNMET}--option=1 $(sh) ; a (>= 1$(x)) ok\n")
    assert found
    assert not any(set("-$;`") & set(each[0]) or "$" in each for each in found)


def test_a_tree_without_control_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs debian/control"):
        told(tmp_path, Outcome(0, None, "exited"))


def test_packages_of_an_environment_count_for_builds_in_it(tree: Path) -> None:
    asked: list[tuple[str, ...]] = []

    def answer(request: ProcessRequest) -> Outcome:
        asked.append(request.argv)
        return Outcome(0, None, "exited")

    root = tree / "root"
    missing_dependencies(tree, FakeProcesses(answer), {}, "nodoc", root)
    (argv,) = asked
    assert f"--admindir={root}/var/lib/dpkg" in argv
    assert argv[argv.index("-P") + 1] == "nodoc"
