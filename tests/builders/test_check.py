from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.forecast import outlook
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.model.builds import BuildEvent
from ensign.model.errors import CommandFailed
from ensign.model.findings import Severity
from ensign.model.study_build import CheckSection
from ensign.model.variants import Variant
from real_processes import PlainProcesses, WithoutNamespaces
from small_studies import GCC_O2, GCC_O3, request

PRINTS = {"commands": [["sh", "-c", "{artifact} | grep -x 'sum 376 main.c'"]]}
WRONG = replace(GCC_O3, name="wrong", flags="-DWRONG=1")


def checked(folder: Path, check: object, *variants: Variant, **build: object) -> BuildRequest:
    wanted = request(folder, *variants, **build)
    study = wanted.study.model_copy(update={"check": CheckSection.model_validate(check)})
    return replace(wanted, study=study)


@pytest.fixture(autouse=True)
def _wrong_by_a_flag(project: Path) -> None:
    """With -DWRONG the small program prints another sum."""
    main = project / "main.c"
    text = main.read_text()
    assert "sum" in text
    text = '#ifdef WRONG\n#define printf(...) puts("sum 376.5 main.c")\n#endif\n' + text
    main.write_text(text.replace("#ifdef WRONG", "#include <stdio.h>\n#ifdef WRONG", 1))


def checks(processes: PlainProcesses) -> list[str]:
    return [each.argv[-1] for each in processes.requests if "grep" in each.argv[-1]]


def ends(report: BuildReport) -> dict[str, str]:
    return {each.facts.variant: each.facts.check for each in report.results}


def test_a_variant_that_fails_its_check_is_built_and_found(
    tmp_path: Path, ports: BuildPorts, processes: PlainProcesses
) -> None:
    report = build_variants(checked(tmp_path, PRINTS, GCC_O2, GCC_O3, WRONG), ports)
    assert ends(report) == {"gcc-O2": "passed", "gcc-O3": "passed", "wrong": "failed"}
    [finding] = report.findings
    assert (finding.code, finding.severity) == ("check-failed", Severity.ERROR)
    assert finding.subject == "wrong"
    assert "'sh' ended with status 1" in finding.text
    wrong = report.result("wrong")
    assert wrong.artifact is not None
    assert wrong.facts.check_tail.startswith("$ sh -c")
    assert len(checks(processes)) == 3


def test_checks_are_cached_until_the_check_or_the_program_changes(
    tmp_path: Path, ports: BuildPorts, processes: PlainProcesses
) -> None:
    build_variants(checked(tmp_path, PRINTS, GCC_O2, WRONG), ports)
    processes.requests.clear()
    events: list[BuildEvent] = []
    again = build_variants(checked(tmp_path, PRINTS, GCC_O2, WRONG), ports, events.append)
    assert checks(processes) == []
    assert ends(again) == {"gcc-O2": "passed", "wrong": "failed"}
    assert [finding.code for finding in again.findings] == ["check-failed"]
    assert "check of wrong" in {event.label for event in events if event.kind == "cached"}
    other = {"commands": [["sh", "-c", "{artifact} | grep sum"]], "same_output": []}
    changed = build_variants(checked(tmp_path, other, GCC_O2, WRONG), ports)
    assert ends(changed) == {"gcc-O2": "passed", "wrong": "passed"}
    assert len(checks(processes)) == 2


def test_equal_programs_are_checked_once(
    tmp_path: Path, ports: BuildPorts, processes: PlainProcesses
) -> None:
    same = replace(GCC_O2, name="more-debug", flags="-g3")
    report = build_variants(checked(tmp_path, PRINTS, GCC_O2, same), ports)
    assert ends(report) == {"gcc-O2": "passed", "more-debug": "passed"}
    assert len(checks(processes)) == 1


def test_a_check_sees_the_source_the_tools_and_kept_files_at_their_places(
    tmp_path: Path, ports: BuildPorts
) -> None:
    script = (
        "test -f twice.c && test ! -e main.o && test -x program && ./tool >{tmp}/out && "
        "test {load} -ef tool && cmp kept flags && test {jobs} -ge 1 && grep -q O kept"
    )
    commands = [
        ["sh", "-c", "make CC={cc} AR={ar} CFLAGS='{cflags}' LDFLAGS='{ldflags}' program tool"],
        ["sh", "-c", "echo '{cflags}' >kept; cp kept flags"],
    ]
    wanted = checked(
        tmp_path,
        {"commands": [["sh", "-xc", script]]},
        GCC_O2,
        GCC_O3,
        dependencies=[],
        commands=commands,
        tool_commands=[],
        tools={"load": "tool"},
        runtime_files=["kept", "fla*"],
    )
    report = build_variants(wanted, ports)
    assert ends(report) == {"gcc-O2": "passed", "gcc-O3": "passed"}


def test_output_is_compared_with_the_baselines_up_to_the_tolerance(
    tmp_path: Path, ports: BuildPorts
) -> None:
    strict = build_variants(checked(tmp_path, {"same_output": ["run"]}, GCC_O2, WRONG), ports)
    assert ends(strict) == {"gcc-O2": "passed", "wrong": "failed"}
    text = strict.findings[0].text
    assert "output of workload run is not the baseline's" in text
    assert "'sum 376.5 main.c' instead of 'sum 376 main.c'" in text
    lenient = {"same_output": ["run"], "tolerance": 0.01}
    report = build_variants(checked(tmp_path, lenient, GCC_O2, WRONG), ports)
    assert ends(report) == {"gcc-O2": "passed", "wrong": "passed"}


def test_checks_ahead_are_counted_and_take_what_they_took(
    tmp_path: Path, ports: BuildPorts
) -> None:
    first = checked(tmp_path, PRINTS, GCC_O2, GCC_O3)
    before = outlook(first, ports).estimate.checks
    assert (before.waiting, before.there, before.basis) == (2, 0, "unknown")
    assert (before.wall_s, before.disk_bytes) == (None, None)
    events: list[BuildEvent] = []
    build_variants(first, ports, events.append)
    after = outlook(first, ports).estimate.checks
    assert (after.waiting, after.there, after.wall_s) == (0, 2, 0)
    more = outlook(checked(tmp_path, PRINTS, GCC_O2, GCC_O3, WRONG), ports).estimate.checks
    assert (more.waiting, more.there, more.basis) == (1, 2, "measured")
    assert more.wall_s is not None
    assert more.disk_bytes is not None
    assert 0 < more.wall_s < 60
    assert 0 < more.disk_bytes < 2**20
    other = {"commands": [["sh", "-c", "{artifact} | grep sum"]]}
    changed = outlook(checked(tmp_path, other, GCC_O2, GCC_O3), ports).estimate.checks
    assert (changed.waiting, changed.there) == (2, 0)
    expected = [each.expected_s for each in events if each.label.startswith("check of")]
    assert expected[0] == 0


def test_a_baseline_that_fails_ends_it(tmp_path: Path, ports: BuildPorts) -> None:
    with pytest.raises(CommandFailed, match=r"(?s)baseline wrong fails .* log: .*grep -x"):
        build_variants(checked(tmp_path, PRINTS, WRONG, GCC_O3), ports)


def test_an_end_at_the_deadline_fails_and_is_not_kept(
    tmp_path: Path, ports: BuildPorts, processes: PlainProcesses
) -> None:
    slow = "{artifact} | grep -qx 'sum 376 main.c' || exec sleep 60"
    wanted = checked(tmp_path, {"commands": [["sh", "-c", slow]], "deadline": "2s"}, GCC_O2, WRONG)
    for _ in range(2):
        report = build_variants(wanted, ports)
        assert ends(report) == {"gcc-O2": "passed", "wrong": "failed"}
        assert "'sh' timed out ('check.deadline' is 2s)" in report.findings[0].text
    assert len(checks(processes)) == 3  # the baseline's is kept


def test_a_variant_that_was_not_built_is_not_checked(tmp_path: Path, ports: BuildPorts) -> None:
    broken = replace(GCC_O3, name="broken", flags="-DBREAK")
    report = build_variants(checked(tmp_path, PRINTS, GCC_O2, broken), ports)
    assert ends(report) == {"gcc-O2": "passed", "broken": "not checked"}


def test_checks_take_turns_where_there_are_no_namespaces(tmp_path: Path, ports: BuildPorts) -> None:
    ports = replace(ports, processes=WithoutNamespaces())
    report = build_variants(checked(tmp_path, PRINTS, GCC_O2, WRONG), ports)
    assert ends(report) == {"gcc-O2": "passed", "wrong": "failed"}


@pytest.mark.parametrize("processes_of", [PlainProcesses, WithoutNamespaces])
def test_output_with_a_time_in_it_puts_no_variant_out(
    tmp_path: Path, project: Path, ports: BuildPorts, processes_of: type[PlainProcesses]
) -> None:
    text = '#include <stdio.h>\n#include <time.h>\nint main(void) { printf("%ld\\n", time(0)); }\n'
    (project / "main.c").write_text(text)
    # The baseline's two runs may fall into one second; a check takes longer, so no later one does.
    check = {"commands": [["sleep", "1.1"]], "same_output": ["run"]}
    ports = replace(ports, processes=processes_of())
    report = build_variants(checked(tmp_path, check, GCC_O2, GCC_O3, WRONG), ports)
    assert set(ends(report).values()) == {"passed"}
    [finding] = [each for each in report.findings if each.code == "output-not-compared"]
    assert finding.subject == "run"
    assert "the baseline's differs from run to run (line 1: " in finding.text
