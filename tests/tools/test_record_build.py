"""`ensign record`, and what `ensign doctor` makes of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ensign.builders.record_file import RECORD_FILE, read_record
from ensign.experiment.ports import Ports
from ensign.model.checkup import ArtifactCheckup
from ensign.model.errors import InputError
from ensign.tools.doctor.artifact import examine_path
from ensign.tools.record_build import watch_build
from real_processes import PlainProcesses

ENSIGN = str(Path(sys.executable).parent / "ensign")
MAKEFILE = """CC = gcc-12
CFLAGS = -O2 -g
app: m.o libf.a
\t$(CC) -o $@ m.o -L. -lf
libf.a: f.o
\tgcc-ar-12 rcs $@ f.o
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "f.c").write_text("int f(int a) { return a * 2; }\n")
    (folder / "m.c").write_text("int f(int);\nint main(int c, char **v) { return f(c) - 2; }\n")
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSIGN_CACHE", str(tmp_path / "cache"))


def record(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    argv = [ENSIGN, "record", "--", *command]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def examine(path: Path, record: Path | None = None) -> ArtifactCheckup:
    return examine_path(path, PlainProcesses(), record=record)


def codes(found: ArtifactCheckup) -> list[str]:
    return [each.code for each in found.findings if each.code != "not-judged"]


def test_a_recorded_build_is_known_call_by_call(tree: Path) -> None:
    done = record(tree, "make", "-j2")
    assert done.returncode == 0
    assert "recorded 4 calls (2 compiled, 1 linked)" in done.stderr
    assert "gcc-12 -O2 -g" in done.stdout  # what the build prints is untouched
    found = examine(tree / "app")
    assert codes(found) == []
    evidence = found.examined[0].evidence
    assert "app: 2 objects come from recorded calls of this build" in evidence
    assert "link order judged by the symbols of the artifact" in evidence
    assert codes(examine(tree)) == []


def test_what_is_built_by_a_record_is_what_is_built_without(tree: Path) -> None:
    record(tree, "make")
    recorded = (tree / "app").read_bytes()
    for name in ("app", "m.o", "f.o", "libf.a"):
        (tree / name).unlink()
    subprocess.run(["make"], cwd=tree, check=True, capture_output=True)
    assert (tree / "app").read_bytes() == recorded


def test_an_unused_archive_is_named_by_the_record(tree: Path) -> None:
    makefile = (tree / "Makefile").read_text().replace("m.o -L. -lf", "libf.a m.o f.o")
    (tree / "Makefile").write_text(makefile.replace("app: m.o", "app: m.o f.o"))
    record(tree, "make")
    assert "archive-before-objects" in codes(examine(tree)) or "archive-unused" in codes(
        examine(tree)
    )


def test_a_part_built_later_keeps_what_still_holds(tree: Path) -> None:
    record(tree, "make")
    (tree / "m.c").write_text("int f(int);\nint main(int c, char **v) { return f(c) - 1; }\n")
    for name in ("app", "m.o"):
        os.utime(tree / name, (0, 0))
    done = record(tree, "make")
    assert "2 calls of earlier builds still hold" in done.stderr
    assert codes(examine(tree / "app")) == []


def test_a_part_alone_is_not_taken_for_the_whole(tree: Path) -> None:
    subprocess.run(["make", "libf.a"], cwd=tree, check=True, capture_output=True)
    record(tree, "make")
    found = examine(tree / "app")
    assert "record-partial" in codes(found)
    [partial] = [each for each in found.findings if each.code == "record-partial"]
    assert "1 of the 2 objects" in partial.text
    assert "libf.a(f.o)" in partial.text


def test_a_program_changed_afterwards_is_not_what_was_recorded(tree: Path) -> None:
    record(tree, "make")
    with (tree / "app").open("ab") as file:
        file.write(b"more")
    assert "record-stale" in codes(examine(tree / "app"))


def test_a_program_of_another_build_is_not_judged_by_the_record(tree: Path) -> None:
    record(tree, "make")
    shutil.copyfile("/bin/true", tree / "other")
    found = examine(tree / "other")
    assert "link order: unknown, because no recorded call linked it" in found.examined[0].evidence


def test_a_tree_that_was_moved_is_still_known(tree: Path) -> None:
    record(tree, "make")
    moved = tree.rename(tree.with_name("moved"))
    found = examine(moved / "app")
    assert "app: 2 objects come from recorded calls of this build" in found.examined[0].evidence
    assert f"recorded in {tree}" in found.sources[0]


def test_a_stripped_program_is_followed_to_its_link(tree: Path) -> None:
    record(tree, "sh", "-c", "make && strip app")
    assert "app: 2 objects come from recorded calls of this build" in (
        examine(tree / "app").examined[0].evidence
    )


def test_a_file_elsewhere_is_named(tree: Path, tmp_path: Path) -> None:
    argv = [ENSIGN, "record", "--output", str(tmp_path / "r"), "make"]
    subprocess.run(argv, cwd=tree, check=True, capture_output=True)
    assert not (tree / RECORD_FILE).exists()
    assert read_record(tmp_path / "r").header.command == ("make",)
    # Its paths are those of the tree, wherever the file lies.
    assert "link order judged" in " ".join(
        examine(tree / "app", tmp_path / "r").examined[0].evidence
    )


@pytest.mark.parametrize("how", ["cut", "changed", "foreign", "deep"])
def test_a_damaged_record_is_told(tree: Path, how: str) -> None:
    record(tree, "make")
    file = tree / RECORD_FILE
    data = file.read_bytes()
    file.write_bytes(
        {
            "cut": data[:-20],
            "changed": data.replace(b"-O2", b"-O3"),
            "foreign": b'{"a": 1}\n',
            "deep": b"[" * 100_000,
        }[how]
    )
    with pytest.raises(InputError, match="no whole record"):
        examine(tree)


@pytest.mark.parametrize(
    ("command", "status"),
    [(("sh", "-c", "exit 7"), 7), (("sh", "-c", "kill -9 $$"), 137), (("./none",), 2)],
)
def test_the_exit_status_is_the_commands(tree: Path, command: tuple[str, ...], status: int) -> None:
    assert record(tree, *command).returncode == status


def test_a_signal_goes_to_the_build(tree: Path) -> None:
    script = "trap 'echo stopped; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen(
        [ENSIGN, "record", "sh", "-c", script], cwd=tree, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 5
        assert process.stdout.read() == "stopped\n"


def test_a_signal_of_the_moment_in_which_the_build_starts_goes_to_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SignalledAtOnce(subprocess.Popen[bytes]):
        def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
            super().__init__(command, env=env, stdout=subprocess.PIPE)
            assert self.stdout is not None
            with self.stdout:
                self.stdout.readline()
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.chdir(tree)
    monkeypatch.setattr("ensign.tools.record_build.subprocess.Popen", SignalledAtOnce)
    script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    assert watch_build(["sh", "-c", script], None, Ports()).exit == 5


def test_a_compiler_that_a_build_system_remembers_works_later(tree: Path) -> None:
    record(tree, "sh", "-c", "command -v gcc-12 > where")
    remembered = (tree / "where").read_text().strip()
    assert "recorders" in remembered
    env = {name: value for name, value in os.environ.items() if name != "ENSIGN_RECORDER"}
    subprocess.run([remembered, "-c", "f.c"], cwd=tree, check=True, env=env)
    assert (tree / "f.o").exists()


def test_nothing_is_left_over(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    record(tree, "make")
    assert list(temporary.iterdir()) == []
    assert json.loads((tree / RECORD_FILE).read_text().splitlines()[0])["exit"] == 0
