"""Commands that look run nothing of what they look at, and end soon whatever it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ensign.cli.main import run_command_line
from ensign.host.search_path import apart_from, is_installed, not_tried

ENSIGN = str(Path(sys.executable).with_name("ensign"))
STRACE = shutil.which("strace")
TRAPS = (
    "gcc", "gcc-12", "cc", "clang", "clang-19", "g++", "as", "ld", "ld.bfd", "ld.lld", "ld.mold",
    "mold", "ar", "nm", "ranlib", "make", "git", "bwrap", "setpriv", "llvm-nm", "llvm-profdata",
    "gcov-dump", "llvm-bolt", "merge-fdata", "perf", "apt-cache", "ldd", "gzip",
    "ensign-meter",     "hyperfine", "ssh-keygen", "pip", "python3", "sh",
)  # fmt: skip
STUDY = """\
name = "s"
layouts = "natural"
[source]
kind = "path"
path = "source"
[build]
commands = [["make", "CC={{cc}}"]]
artifact = "program"
[axes]
compiler = [{compilers}]
[baseline]
compiler = "{first}"
[[workloads]]
name = "w"
command = ["{{artifact}}"]
"""


class Trapped:
    """A folder of traps: each leaves a mark when it is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marks = folder / "marks"
        self.bin = folder / "study/bin"
        self.marks.mkdir()
        self.set_traps(self.bin)
        self.set_traps(folder / "study")
        source = folder / "study/source"
        self.set_traps(source)
        (source / "Makefile").write_text(
            f"X := $(shell touch {self.marks}/shell)\n"
            f"include made.mk\nmade.mk:\n\ttouch {self.marks}/recipe; touch made.mk\n"
            "program: main.c\n\t+$(CC) -o program main.c\n"
        )
        (source / "main.c").write_text("int main(void) { return 0; }\n")

    def set_traps(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in TRAPS:
            trap = folder / name
            trap.write_text(f'#!/bin/sh\n: > "{self.marks}/$$-{name}"\nexit 1\n')
            trap.chmod(0o755)

    def study(self, *compilers: str) -> Path:
        listed = ", ".join(f'"{each}"' for each in compilers)
        path = self.folder / "study/s.toml"
        path.write_text(STUDY.format(compilers=listed, first=compilers[0]))
        return path

    def look(
        self, *arguments: str, path: str = os.environ["PATH"]
    ) -> subprocess.CompletedProcess[str]:
        """Runs ensign in the study's folder; asserts that no trap was sprung."""
        trace = self.folder / "trace"
        traced = (
            STRACE,
            "-f",
            "--seccomp-bpf",  # other calls are not stopped at: several times as quick
            "-qq",
            "-e",
            "trace=execve,execveat",
            "-s",
            "4096",
            "-o",
            str(trace),
        )
        argv = [*(each for each in traced if STRACE and each), ENSIGN, *arguments]
        env = {"PATH": path, "HOME": str(self.folder), "ENSIGN_CACHE": str(self.folder / "cache")}
        done = subprocess.run(
            argv, cwd=self.folder / "study", env=env, capture_output=True, text=True, timeout=240,
            check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode != 5, done.stderr
        assert [each.name for each in self.marks.iterdir()] == []
        if STRACE:
            run = [line for line in trace.read_text().splitlines() if "= 0" in line]
            inside = f'"{self.folder}/study'
            assert not [line for line in run if inside in line.partition("exec")[2].split(", ")[0]]
            assert not [line for line in run if 'execve("./' in line]
        return done


@pytest.fixture
def trapped(tmp_path: Path) -> Trapped:
    return Trapped(tmp_path)


def paths(trapped: Trapped) -> list[str]:
    usual = os.environ["PATH"]
    return [f".:{usual}", f":{usual}", f"bin:{usual}", f"{trapped.bin}:{usual}", f"{usual}:"]


def test_plan_and_doctor_try_no_compiler_of_the_study(trapped: Trapped) -> None:
    link = trapped.folder / "study/elsewhere"
    link.mkdir()
    (link / "gcc").symlink_to("../gcc")
    outside = trapped.folder / "outside"
    outside.mkdir()
    (outside / "gcc").symlink_to(trapped.bin / "gcc")
    named = ("./gcc", "bin/gcc", "../study/gcc", str(trapped.bin / "gcc"), str(outside / "gcc"))
    study = trapped.study(*named)
    done = trapped.look("plan", str(study))
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).count("not tried") == len(named)
    for each in ("./gcc", "bin/gcc"):
        assert f"'{each}'" in done.stdout
    done = trapped.look("doctor", str(study), "--no-race")
    assert " ".join(done.stdout.split()).count("not tried") == len(named)


def test_plan_and_doctor_take_nothing_from_a_search_path_of_the_study(trapped: Trapped) -> None:
    study = trapped.study("gcc")
    for path in paths(trapped)[:4]:
        done = trapped.look("plan", "s.toml", path=path)
        assert "not tried" in done.stdout, done.stdout + done.stderr
        assert "'gcc'" in done.stdout
    trapped.look("doctor", str(study), "--no-race", path=paths(trapped)[3])
    trapped.look("doctor", path=paths(trapped)[0])


def test_a_study_may_not_name_any_program_as_its_compiler(trapped: Trapped) -> None:
    trapped.study("reboot", "gcc")
    done = trapped.look("plan", "s.toml")
    assert "its name is not one of a compiler" in " ".join(done.stdout.split())


def test_doctor_of_a_folder_reads_a_makefile_and_does_not_ask_make(trapped: Trapped) -> None:
    done = trapped.look("doctor", "source")
    assert done.returncode == 2
    assert "--dry-run asks" in done.stderr
    source = trapped.folder / "study/source"
    (source / "compile_commands.json").write_text(
        json.dumps([{"directory": str(source), "file": "main.c", "command": "./gcc -O2 -c main.c"}])
    )
    for each in ("source", "source/gcc", "source/main.c", "."):
        trapped.look("doctor", each)


def test_a_dry_run_is_asked_for(trapped: Trapped) -> None:
    source = trapped.folder / "study/source"
    (source / "Makefile").write_text("program: main.c\n\tgcc -O2 -o program main.c\n")
    done = subprocess.run(
        [ENSIGN, "doctor", "--dry-run", str(source)],
        env={"PATH": os.environ["PATH"], "HOME": str(trapped.folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "a dry run of make" in done.stdout, done.stderr
    assert not (source / "program").exists()


def test_other_commands_that_look_run_nothing_of_the_study(trapped: Trapped) -> None:
    study = str(trapped.study("gcc"))
    path = f".:{trapped.bin}:{os.environ['PATH']}"
    for arguments in (
        ("report", study),
        ("report", study, "--json", "-"),
        ("bundle", study),
        ("diff-studies", study, study),
        ("merge", study, study),
        ("unbundle", study, "out"),
        ("schema",),
        ("schema", "results"),
        ("suites", "--path", "source"),
        ("--version",),
        ("--help",),
    ):
        trapped.look(*arguments, path=path)


KERNELS = ("/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/kmsg", "/proc/kcore",
           "/proc/self/environ", "/proc/self/pagemap", "/proc", "/sys")  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        *("pipe", "loop", "empty", "holes", "text", "missing/x"),
        *(each for each in KERNELS if Path(each).exists()),  # not every kernel has all of them
    ],
)
def test_doctor_of_anything_ends_soon_with_one_line(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello\n" * 1000)
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 43)
    for command in ("doctor", "plan", "report", "unbundle"):
        more = ("out",) if command == "unbundle" else ()
        status = run_command_line([command, name, *more])
        said = capfd.readouterr().err
        assert status == 2, (command, said)
        assert "Traceback" not in said
        assert said.count("\n") == 1, (command, said)


def test_doctor_of_a_folder_with_special_files_and_many_files_ends(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(20_000):
        (folder / f"{number}.o").touch()
    for name in ("a.o", "b.a", "Makefile", "compile_commands.json", "x.map", "build.ninja"):
        os.mkfifo(folder / name)
    (folder / "loop").symlink_to(".")
    (folder / "out.o").symlink_to("/dev/zero")
    done = subprocess.run(
        [ENSIGN, "doctor", str(folder)], env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_of_this_machine_and_what_is_not(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    gcc = study / "gcc"
    gcc.write_text("#!/bin/sh\n")
    gcc.chmod(0o755)
    assert apart_from(f".::bin:/usr/bin:{study}:{study}/sub", (study,)) == "/usr/bin"
    assert "study's" in not_tried("gcc", str(study), (study,))
    assert "study's" in not_tried(str(gcc), "/usr/bin", (study,))
    assert "relative" in not_tried("./gcc", "/usr/bin", (study,))
    assert not_tried("absent-gcc", "/usr/bin", (study,)) == ""
    gcc.chmod(0o777)
    assert "any user" in not_tried("gcc", str(study))
    if os.geteuid() == 0:
        gcc.chmod(0o755)
        os.chown(gcc, 65534, 65534)
        assert "another user" in not_tried("gcc", str(study))
    assert not is_installed(gcc, "/usr/bin", (study,))
    assert is_installed(Path("/usr/bin/env"), "", (study,))
    # Who keeps a study in / or in the home folder has not made the whole machine a stranger's.
    assert apart_from("/usr/bin", (Path("/"),)) == "/usr/bin"
