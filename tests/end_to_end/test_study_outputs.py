"""Outputs are compared with the baseline's without being asked, where that can be done."""

from __future__ import annotations

import json

import pytest

from end_to_end.conftest import SOON, Ensign, Programs
from end_to_end.small_study import SERVER, write_study
from end_to_end.test_study import results
from end_to_end.test_study_failures import planted

NO_CHECK = "No check was run, so it is not shown that the variants compute the same."


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("wrong", "'sum 1.5' instead of 'sum 1.0'"),
        ("segv", "signal 11"),
        ("exit", "status 9"),
        ("hang", "deadline"),
    ],
)
def test_a_variant_that_computes_something_else_is_out(
    ensign: Ensign, fault: str, said: str
) -> None:
    # No count: it does so in every run, and so in the first one.
    study = planted(ensign, f'-DFAULT=\\"{fault}\\" -DALWAYS')
    done = ensign("run", str(study))
    assert done.status == 0, done.err
    found = results(ensign)
    assert [entry["variant"] for entry in found["suite"]] == ["gcc-12-Os", "twin"]
    (finding,) = [each for each in found["findings"] if each["severity"] == "error"]
    assert (finding["code"], finding["subject"]) == ("check-failed", "gcc-12-O2")
    assert "is out and not raced" in str(finding["text"])
    assert said in str(finding["text"])
    assert NO_CHECK not in done.said


def test_a_tolerance_lets_it_take_part(ensign: Ensign) -> None:
    study = planted(ensign, '-DFAULT=\\"wrong\\" -DALWAYS')
    study.write_text("check.tolerance = 0.5\n" + study.read_text())
    done = ensign("run", str(study))
    assert done.status == 0, done.err
    assert len(results(ensign)["suite"]) == 3


def test_output_that_differs_from_run_to_run_is_not_compared(ensign: Ensign) -> None:
    study = planted(ensign, '-DFAULT=\\"wrong\\" -DALWAYS')
    command = 'command = ["sh", "-c", "{artifact} 10; cat /proc/sys/kernel/random/uuid"]\n[[x]]'
    text = study.read_text()
    text = text[: text.index("[[workloads]]")]
    study.write_text(text + '[[workloads]]\nname = "one"\n' + command.replace("[[x]]", ""))
    done = ensign("run", str(study))
    assert done.status == 0, done.err
    found = results(ensign)
    (finding,) = [each for each in found["findings"] if each["code"] == "output-not-compared"]
    assert finding["subject"] == "one"
    assert "differs from run to run" in str(finding["text"])
    assert NO_CHECK in done.said
    assert len(found["suite"]) == 3


def test_without_a_check_the_report_says_so_at_its_head(ensign: Ensign) -> None:
    study = planted(ensign, '-DFAULT=\\"wrong\\" -DALWAYS')
    study.write_text("check.same_output = []\n" + study.read_text())
    done = ensign("run", str(study))
    assert done.status == 0, done.err
    assert NO_CHECK in done.said
    checked = results(ensign)["experiment"]["checked"]  # type: ignore[call-overload]
    assert checked is False
    for kind in ("--html", "--markdown"):
        target = ensign.folder / f"report{kind}"
        assert ensign("report", str(study), kind, str(target)).status == 0
        assert NO_CHECK in target.read_text()


def test_a_study_of_servers_without_a_check_says_so(ensign: Ensign) -> None:
    write_study(ensign.folder, SERVER)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert NO_CHECK in done.said


def test_compare_says_where_outputs_cannot_be_compared(ensign: Ensign, programs: Programs) -> None:
    random = "sh -c 'cat /proc/sys/kernel/random/uuid'"
    for commands, code in (
        ([random, f"{random} "], "outputs-not-compared"),
        ([f"{programs.cheap} 1000", "echo other"], "outputs-differ"),
    ):
        done = ensign("compare", *commands, "--race-same", *SOON, "--export-json", "out.json")
        assert done.status == 0, done.err
        found = json.loads((ensign.folder / "out.json").read_text())["findings"]
        codes = {each["code"] for each in found} & {"outputs-not-compared", "outputs-differ"}
        assert codes == {code}
