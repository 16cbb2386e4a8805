from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import build_variants
from ensign.builders.forecast import outlook
from ensign.builders.request import BuildPorts
from ensign.host.cache import Cache
from ensign.host.files import file_sha256
from ensign.host.processes import Outcome, ProcessRequest
from ensign.host.programs import LocalPrograms
from ensign.model.builds import BuildEvent
from ensign.model.errors import CommandFailed, InputError, Interrupted
from real_processes import PlainProcesses, WithoutNamespaces
from small_studies import CLANG_LTO, CLANG_O2, GCC_LTO, GCC_O2, GCC_O3, request


def commands(processes: PlainProcesses) -> list[list[str]]:
    """The commands of builds, without what isolates them."""
    found = []
    for each in processes.requests:
        argv = list(each.argv)
        while "--" in argv:  # bubblewrap, and who drops root's privileges in it
            argv = argv[argv.index("--") + 1 :]
        if argv[0] == "make":
            found.append(argv)
    return found


@pytest.mark.usefixtures("project")
def test_all_variants_run_and_dependencies_are_built_once_per_compiler(
    tmp_path: Path, ports: BuildPorts, processes: PlainProcesses
) -> None:
    wanted = request(tmp_path, GCC_O2, GCC_LTO, CLANG_O2, CLANG_LTO)
    events: list[BuildEvent] = []
    report = build_variants(wanted, ports, events.append)
    assert [result.facts.status for result in report.results] == ["built"] * 4
    assert report.findings == ()
    for result in report.results:
        assert result.artifact is not None
        out = subprocess.run([result.artifact], capture_output=True, text=True, check=True)
        assert out.stdout == "sum 376 main.c\n"
    built = commands(processes)
    assert [argv[-1] for argv in built].count("libpart.a") == 2
    assert [argv[-1] for argv in built].count("tool") == 1
    assert report.results[0].tools.keys() == {"tool"}
    assert report.results[1].tools == {}
    gcc_lto, clang_lto = report.results[1].facts, report.results[3].facts
    assert gcc_lto.flags == ("-O3", "-g", "-flto=auto")
    assert clang_lto.link_flags == (
        "-O3",
        "-g",
        "-grecord-command-line",
        "-flto",
        "-fuse-ld=lld",
    )
    assert "2 of 3 object files are for LTO" in gcc_lto.evidence
    assert "2 of 3 object files are for LTO" in clang_lto.evidence
    assert "LLD" in report.results[2].facts.compiler
    assert next(event.label for event in events if event.kind == "finished") == "source"
    assert {"dependencies with gcc-12", "clang-O3-lto"} <= {event.label for event in events}


@pytest.mark.usefixtures("project")
def test_nothing_is_rebuilt_and_a_changed_flag_rebuilds_its_variant_alone(
    tmp_path: Path, ports: BuildPorts, processes: PlainProcesses
) -> None:
    first = build_variants(request(tmp_path, GCC_O2, GCC_O3), ports)
    processes.requests.clear()
    assert outlook(request(tmp_path, GCC_O2, GCC_O3), ports).estimate.builds.waiting == 0
    second = build_variants(request(tmp_path, GCC_O2, GCC_O3), ports)
    assert commands(processes) == []
    assert [result.facts.status for result in second.results] == ["cached", "cached"]
    assert second.results[1].facts.build_s == first.results[1].facts.build_s
    changed = replace(GCC_O3, flags="-fno-inline")
    third = build_variants(request(tmp_path, GCC_O2, changed), ports)
    assert [argv[-1] for argv in commands(processes)] == ["program"]
    assert "CFLAGS=-O3 -g -fno-inline" in commands(processes)[0]
    assert [result.facts.status for result in third.results] == ["cached", "built"]


class Leaving(PlainProcesses):
    """As if the build of dependencies left something running, and that of the program as well."""

    def run(self, request: ProcessRequest) -> Outcome:
        outcome = super().run(request)
        left = {"libpart.a": ("part-daemon",), "program": ("daemon",)}
        return replace(outcome, left_running=left.get(request.argv[-1], ()))


@pytest.mark.usefixtures("project")
def test_what_was_left_running_is_said_again_when_all_comes_from_the_cache(
    tmp_path: Path, ports: BuildPorts
) -> None:
    ports = replace(ports, processes=Leaving())
    first = build_variants(request(tmp_path, GCC_O2), ports)
    again = build_variants(request(tmp_path, GCC_O2), ports)
    assert again.results[0].facts.status == "cached"
    said = [(each.code, each.subject, each.text) for each in again.findings]
    assert said == [(each.code, each.subject, each.text) for each in first.findings]
    assert [(code, subject) for code, subject, _ in said] == [
        ("left-running", ""),
        ("left-running", "gcc-O2"),
    ]
    assert "dependencies with gcc-12: its build left part-daemon running" in said[0][2]


@pytest.mark.usefixtures("project")
def test_a_failing_variant_is_a_result_with_its_log(tmp_path: Path, ports: BuildPorts) -> None:
    broken = replace(GCC_O3, name="broken", flags="-DBREAK")
    report = build_variants(request(tmp_path, GCC_O2, broken), ports)
    facts = report.result("broken").facts
    assert facts.status == "failed"
    assert "this flag breaks the build" in facts.log_tail
    assert facts.error is not None
    assert re.fullmatch(r"main\.c:\d+: #error .*this flag breaks the build.*", facts.error.said)
    assert Path(facts.log_path).read_text().startswith("$ make -j")
    assert report.result("broken").artifact is None
    assert [finding.code for finding in report.findings] == ["build-failed"]
    assert report.findings[0].text == f"could not be built: {facts.error.said}"
    assert report.result("gcc-O2").facts.status == "built"


@pytest.mark.usefixtures("project")
def test_a_failing_baseline_ends_it_with_the_log(tmp_path: Path, ports: BuildPorts) -> None:
    broken = replace(GCC_O2, flags="-DBREAK")
    with pytest.raises(CommandFailed, match=r"(?s)baseline gcc-O2 .* log: .*breaks the build"):
        build_variants(request(tmp_path, broken, GCC_O3), ports)


@pytest.mark.usefixtures("project")
def test_failing_dependencies_fail_their_variants_only(tmp_path: Path, ports: BuildPorts) -> None:
    script = 'case "$0" in *clang*) echo no clang please; exit 3;; esac; exec make CC=$0 libpart.a'
    wanted = request(tmp_path, GCC_O2, CLANG_O2, dependencies=[["sh", "-c", script, "{cc}"]])
    report = build_variants(wanted, ports)
    assert [result.facts.status for result in report.results] == ["built", "failed"]
    assert "no clang please" in report.results[1].facts.log_tail
    assert "ended with status 3" in report.results[1].facts.log_tail


@pytest.mark.usefixtures("project")
def test_flags_without_effect_are_found_by_the_loaded_bytes(
    tmp_path: Path, ports: BuildPorts
) -> None:
    same = replace(GCC_O2, name="more-debug", flags="-g3")
    report = build_variants(request(tmp_path, GCC_O2, same, GCC_O3), ports)
    assert [each.facts.said for each in report.results] == ["built", "same as gcc-O2", "built"]
    size = [each.facts.size_bytes for each in report.results]
    assert size[1] > size[0]


@pytest.mark.usefixtures("project")
def test_the_same_build_has_the_same_bytes_in_another_cache(
    tmp_path: Path, ports: BuildPorts
) -> None:
    one = build_variants(request(tmp_path, GCC_O2), ports)
    with Cache(tmp_path / "elsewhere/cache") as cache:
        two = build_variants(request(tmp_path, GCC_O2), replace(ports, cache=cache))
        artifacts = [one.results[0].artifact, two.results[0].artifact]
        hashes = [file_sha256(path) for path in artifacts if path is not None]
    assert len(hashes) == 2
    assert hashes[0] == hashes[1]


@pytest.mark.usefixtures("project")
def test_without_bubblewrap_builds_take_turns_in_one_folder(
    tmp_path: Path, ports: BuildPorts
) -> None:
    ports = replace(ports, processes=WithoutNamespaces())
    report = build_variants(request(tmp_path, GCC_O2, CLANG_LTO), ports)
    assert [result.facts.status for result in report.results] == ["built", "built"]
    assert sorted(path.name for path in (tmp_path / "cache/build").iterdir()) == ["lock"]


@pytest.mark.usefixtures("project")
def test_a_build_that_never_ends_meets_its_deadline(tmp_path: Path, ports: BuildPorts) -> None:
    wanted = request(tmp_path, GCC_O2, dependencies=[], commands=[["sleep", "60"]], deadline="1s")
    with pytest.raises(CommandFailed, match="'sleep' timed out"):
        build_variants(wanted, ports)


@pytest.mark.usefixtures("project")
def test_an_artifact_that_is_not_made_or_no_program_is_a_failure(
    tmp_path: Path, ports: BuildPorts
) -> None:
    with pytest.raises(CommandFailed, match="the build made no 'other'"):
        build_variants(request(tmp_path, GCC_O2, artifact="other"), ports)
    with pytest.raises(CommandFailed, match=r"'main\.c' is not a program"):
        build_variants(request(tmp_path, GCC_O2, artifact="main.c"), ports)
    with pytest.raises(CommandFailed, match="the build made no 'missing/log'"):
        build_variants(request(tmp_path, GCC_O2, artifact="missing/log"), ports)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "damage",
    [
        {"program": None},
        {"chain_s": "soon"},
        {"proof": {}, "label": "of an earlier version"},
        {"label": None},
    ],
)
def test_a_stage_whose_facts_are_damaged_is_built_again(
    tmp_path: Path, ports: BuildPorts, damage: dict[str, object]
) -> None:
    first = build_variants(request(tmp_path, GCC_O2), ports)
    ports.cache.close()
    (meta,) = (ports.cache.folder / "entries").glob("program-*/meta.json")
    content = json.loads(meta.read_text())
    meta.write_text(json.dumps({**content, "facts": {**content["facts"], **damage}}))
    again = build_variants(request(tmp_path, GCC_O2), ports)
    assert [each.facts.status for each in again.results] == ["built"]
    assert again.results[0].facts.identity == first.results[0].facts.identity
    third = build_variants(request(tmp_path, GCC_O2), ports)
    assert [each.facts.status for each in third.results] == ["cached"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("known", "said"),
    [
        ((), "run 'apt-get install gcc-99'"),
        (("gcc-99", "gcc-12"), "run 'apt-get install gcc-99'"),
        (("gcc-9", "gcc-13", "gcc-13-base"), "called gcc-99; there are gcc-9, gcc-13"),
    ],
)
def test_a_missing_compiler_is_advised_as_the_packages_are(
    tmp_path: Path,
    ports: BuildPorts,
    monkeypatch: pytest.MonkeyPatch,
    known: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr(LocalPrograms, "packages", lambda _: frozenset(known))
    with pytest.raises(InputError, match=rf"gcc-99' is not installed .*{said}$"):
        build_variants(request(tmp_path, replace(GCC_O2, compiler="gcc-99")), ports)


@pytest.mark.usefixtures("project")
def test_a_missing_compiler_is_one_line(
    tmp_path: Path, ports: BuildPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalPrograms, "packages", lambda _: frozenset())
    missing = replace(GCC_O2, compiler="gcc-99")
    with pytest.raises(InputError, match=r"'gcc-99' is not .*gcc-12.*apt-get install gcc-99'$"):
        build_variants(request(tmp_path, missing), ports)


@pytest.mark.usefixtures("project")
def test_an_estimate_uses_what_the_last_build_took(tmp_path: Path, ports: BuildPorts) -> None:
    before = outlook(request(tmp_path, GCC_O2, GCC_O3), ports).estimate
    assert (before.builds.waiting, before.builds.basis) == (3, "unknown")
    assert (before.builds.wall_s, before.builds.disk_bytes, before.seconds) == (None, None, {})
    assert before.relinks.waiting == 0
    build_variants(request(tmp_path, GCC_O2, GCC_O3), ports)
    changed = replace(GCC_O3, flags="-fno-inline")
    after = outlook(request(tmp_path, GCC_O2, changed), ports).estimate
    assert (after.builds.waiting, after.builds.there) == (1, 2)
    assert after.builds.basis == "measured"
    assert after.builds.wall_s is not None
    assert after.builds.disk_bytes is not None
    assert 0 < after.builds.wall_s < 60
    assert 0 < after.builds.disk_bytes < 2**20


@pytest.mark.usefixtures("project")
def test_a_build_that_never_was_takes_what_the_baseline_took(
    tmp_path: Path, ports: BuildPorts
) -> None:
    (result,) = build_variants(request(tmp_path, GCC_O2), ports).results
    took_s = result.facts.build_s
    assert took_s is not None
    ahead = outlook(request(tmp_path, GCC_O2, GCC_O3), ports).estimate
    assert (ahead.builds.waiting, ahead.builds.basis) == (1, "alike")
    assert ahead.builds.wall_s == pytest.approx(took_s)
    assert list(ahead.seconds.values()) == [pytest.approx(took_s)]


@pytest.mark.usefixtures("project")
def test_kept_files_come_with_the_artifact(tmp_path: Path, ports: BuildPorts) -> None:
    report = build_variants(request(tmp_path, GCC_O2, runtime_files=["*.c"]), ports)
    files = report.results[0].files
    assert files is not None
    assert sorted(path.name for path in files.iterdir()) == [
        "main.c",
        "part.c",
        "program",
        "tool",
        "twice.c",
    ]


@pytest.mark.usefixtures("project")
def test_a_keyboard_interrupt_ends_builds_and_is_an_error_of_ours(
    tmp_path: Path, ports: BuildPorts
) -> None:
    def interrupt(event: BuildEvent) -> None:
        if event.kind == "started" and event.label == "gcc-O2":
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        build_variants(request(tmp_path, GCC_O2), ports, interrupt)
    with pytest.raises(Interrupted):
        build_variants(request(tmp_path, GCC_O2), ports)
    assert list((tmp_path / "cache/temporary").iterdir()) == []


@pytest.mark.usefixtures("project")
def test_a_stripped_program_was_judged_before_and_is_smaller(
    tmp_path: Path, ports: BuildPorts
) -> None:
    stripped = replace(GCC_O2, name="stripped", strip="yes")
    report = build_variants(request(tmp_path, GCC_O2, stripped), ports)
    whole, bare = (result.facts for result in report.results)
    assert bare.size_bytes < whole.size_bytes
    assert bare.evidence == whole.evidence
    assert bare.said == "same as gcc-O2"
    out = subprocess.run(
        [str(report.results[1].artifact)], capture_output=True, text=True, check=True
    )
    assert out.stdout.startswith("sum 376")


@pytest.mark.usefixtures("project")
def test_what_cannot_be_is_left_out_with_the_reason(tmp_path: Path, ports: BuildPorts) -> None:
    thin = replace(GCC_O2, name="thin", lto="thin")
    wanted = request(tmp_path, GCC_O2, thin)
    assert dict(outlook(wanted, ports).left_out) == {"thin": "gcc has no thin LTO"}
    report = build_variants(wanted, ports)
    assert [result.facts.status for result in report.results] == ["built", "left out"]
    assert [finding.code for finding in report.findings] == ["variant-left-out"]
    with pytest.raises(CommandFailed, match="baseline cannot be built: gcc has no thin LTO"):
        build_variants(request(tmp_path, thin, GCC_O2), ports)
