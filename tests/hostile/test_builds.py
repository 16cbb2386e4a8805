"""Builds that mean harm: each contained, ended within its limit, told in one line."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from end_to_end.conftest import Done, Ensign, ensign, wait_for
from ensign.host.confinement_probe import probe_confinement
from ensign.meter.client import find_meter
from found_compilers import compilers_found_once, found_compilers
from real_processes import PlainProcesses

__all__ = ["compilers_found_once", "ensign", "found_compilers"]  # fixtures

CONFINED = probe_confinement(PlainProcesses(), dict(os.environ), find_meter()).works
confined = pytest.mark.skipif(not CONFINED, reason="needs bubblewrap")
AS_ROOT = os.geteuid() == 0
SECRET = {"GITHUB_TOKEN": "a-token"}

STUDY = """\
name = "hostile"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "act.sh"]]
artifact = "program"
disk = "20MiB"
deadline = "60s"

[axes]
compiler = ["gcc-12"]
optimization = ["-O1"]

[baseline]
optimization = "-O1"

[race]
budget = "20s"
rounds = 3

[[workloads]]
name = "run"
command = ["{artifact}"]
"""
PROGRAM = "int main(void) { volatile long n = 2000000; while (n) n--; return 0; }\n"
GOOD = "cc -O1 -o program program.c"


@dataclass(frozen=True)
class Hostile:
    """Runs a study whose build does what a script says."""

    ensign: Ensign

    @property
    def folder(self) -> Path:
        return self.ensign.folder

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def write(self, act: str, *changes: tuple[str, str]) -> None:
        text = STUDY
        for before, after in changes:
            assert before in text, before
            text = text.replace(before, after, 1)
        (self.folder / "study.toml").write_text(text)
        source = self.folder / "source"
        source.mkdir(exist_ok=True)
        (source / "program.c").write_text(PROGRAM)
        (source / "act.sh").write_text(act)
        (self.folder / "study.lock.json").unlink(missing_ok=True)

    def run(self, act: str, *changes: tuple[str, str], **env: str) -> Done:
        self.write(act, *changes)
        return self.ensign.brief("run", "study.toml", "--update-lock", **env)

    def refused(self, act: str, *changes: tuple[str, str], **env: str) -> str:
        """Run one whose build fails in the end; what ensign says of that."""
        done = self.run(act, *changes, **env)
        assert done.status == 3, done.err
        assert "could not be built" in done.complaint
        return done.err


@pytest.fixture
def hostile(ensign: Ensign) -> Hostile:
    return Hostile(ensign)


@contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


LOOK = """
tell() { echo "SAW $*"; }
for secret in $SECRETS; do cat $secret >/dev/null 2>&1 && tell secret $secret; done
cat /etc/shadow >/dev/null 2>&1 && tell shadow
for place in $PLACES; do (echo x > $place/ensign-was-here) 2>/dev/null; done
for place in / /etc /usr /usr/local /var /opt /run /dev /sys /sys/fs/cgroup; do
    (echo x > $place/ensign-was-here) 2>/dev/null && tell wrote $place
done
(echo 0 > /proc/sys/kernel/randomize_va_space) 2>/dev/null && tell sysctl
for process in /proc/[0-9]*; do
    grep -qa NOT-YOURS $process/cmdline 2>/dev/null && tell process $process
done
kill -9 $VICTIM 2>/dev/null && tell killed
mknod device c 1 5 2>/dev/null && tell device
mount -t tmpfs none /mnt 2>/dev/null && tell mounted
(exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && tell port
test "$(id -u)" = 0 && tell root
grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && tell capabilities
grep -q 'NoNewPrivs:.*0' /proc/self/status && tell privileges
env | sed 's/=.*//' | sort | tr '\\n' ' ' | sed 's/^/VARIABLES /'; echo
echo DONE
exit 1
"""
VARIABLES = {
    "ENSIGN_RECORDER", "GIT_CEILING_DIRECTORIES", "HOME", "LC_ALL", "PATH", "PWD", "RUSTUP_HOME",
    "SHLVL", "SOURCE_DATE_EPOCH", "TMPDIR", "TZ", "_", "OLDPWD", "ENSIGN_RECORDED",
}  # fmt: skip


@confined
def test_nothing_private_is_seen_and_nothing_outside_is_changed(hostile: Hostile) -> None:
    home = hostile.folder / "home"
    (home / ".ssh").mkdir(parents=True)
    secrets = [home / "private", home / ".ssh/id", hostile.folder / "beside"]
    for secret in secrets:
        secret.write_text("secret\n")
        secret.chmod(0o600)
    victim = subprocess.Popen(["sleep", "1000"])
    mine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)  # NOT-YOURS"])
    before = sorted(each.name for each in hostile.folder.iterdir())
    try:
        with listening() as port:
            act = "\n".join(
                (
                    f"SECRETS='{' '.join(map(str, secrets))}'",
                    f"PLACES='{hostile.folder} {home} {hostile.cache} {Path.home()}'",
                    f"VICTIM={victim.pid} PORT={port}",
                    LOOK,
                )
            )
            command = ('["sh", "act.sh"]', '["bash", "act.sh"]')
            said = hostile.refused(act, command, HOME=str(home), **SECRET)
        assert victim.poll() is None
        assert mine.poll() is None
    finally:
        for each in (victim, mine):
            each.kill()
            each.wait()
    assert "DONE" in said
    assert "SAW" not in said, said
    (line,) = (line for line in said.splitlines() if "VARIABLES" in line)
    assert set(line.split()[1:]) <= VARIABLES
    made = {"cache", "source", "study.toml", "study.lock.json", ".ensign"}
    assert {each.name for each in hostile.folder.iterdir()} - set(before) <= made
    for place in (hostile.folder, home, hostile.cache, Path.home()):
        assert not (place / "ensign-was-here").exists()


@confined
@pytest.mark.skipif(not AS_ROOT, reason="only root can make devices, and is somebody else inside")
def test_a_hard_link_to_a_private_file_cannot_be_made(hostile: Hostile) -> None:
    said = hostile.refused("ln /etc/shadow taken && echo SAW; cat taken && echo SAW; exit 1")
    assert "SAW" not in said


LONG = "n" * 200
# Each writes 40 MiB, where 20 MiB are allowed; the last ones hide that.
WRITING = {
    "one file": "head -c 40M /dev/zero > big; sleep 60",
    "many files": "for n in $(seq 40); do head -c 1M /dev/zero > $n; done; sleep 60",
    "below a path longer than a path may be": (
        f"for n in $(seq 30); do mkdir {LONG}; cd {LONG}; done; "
        "for n in $(seq 4); do head -c 10M /dev/zero > $n; done; sleep 60"
    ),
    "deleted, and still open": (
        'for n in 3 4 5 6; do eval "exec $n>gone"; rm gone; head -c 10M /dev/zero >&$n; done; '
        "sleep 60"
    ),
    "many empty files": "for n in $(seq 9000); do : > $n; done; sleep 60",
    "in a folder that nobody may look into": (
        "mkdir dark; for n in $(seq 4); do head -c 10M /dev/zero > dark/$n; done; chmod 0 dark; "
        "sleep 60"
    ),
    "in its home": "for n in $(seq 4); do head -c 10M /dev/zero > $HOME/$n; done; sleep 60",
    "what it says": "head -c 1G /dev/zero; sleep 60",
    "files with holes": "for n in $(seq 40); do truncate -s 10M $n; done; exit 0",
}


@pytest.mark.parametrize("how", WRITING)
def test_no_more_is_written_than_allowed(hostile: Hostile, how: str) -> None:
    said = hostile.refused(WRITING[how])
    assert "wrote more than it may, and was stopped ('build.disk' is 20.0 MiB)" in said


@confined
def test_writing_elsewhere_ends_at_the_size_of_the_place(hostile: Hostile) -> None:
    act = """
    for place in /tmp /var/tmp /dev/shm; do
        for n in $(seq 40); do head -c 19M /dev/zero > $place/$n 2>/dev/null || break; done
        echo "$place $(du -sm $place | cut -f1)"; rm -f $place/*
    done
    exit 1
    """
    said = hostile.refused(act)
    for place in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108  # those of the build
        (line,) = (line for line in said.splitlines() if line.strip().startswith(f"{place} "))
        # Of 256 MiB; the kernel counts the pages of each CPU apart, and finds out a little late.
        assert int(line.split()[1]) <= 256 + 16


def test_a_fork_bomb_ends_and_is_called_one(hostile: Hostile) -> None:
    bomb = "i=0; while [ $i -lt 400 ]; do sleep 61.5 & i=$((i+1)); done; wait"
    sandbox = ("[race]", "[sandbox]\nprocesses = 100\n\n[race]")
    said = hostile.refused(bomb, sandbox)
    assert "as many processes as it may ('sandbox.processes' is 100)" in said


def test_memory_is_bounded(hostile: Hostile) -> None:
    eat = """awk 'BEGIN { x = "0123456789"; while (1) x = x x }'"""
    sandbox = ("[race]", '[sandbox]\nmemory = "100MiB"\n\n[race]')
    said = hostile.refused(eat, sandbox)
    assert "exceeded its memory limit and was killed ('sandbox.memory' is 100.0 MiB)" in said


def test_signals_are_no_way_to_go_on(hostile: Hostile) -> None:
    stay = (
        "trap '' TERM INT HUP QUIT; (setsid sleep 4321.5 &) & sleep 4321.5 & "
        "while :; do sleep 1; done"
    )
    said = hostile.refused(stay, ('deadline = "60s"', 'deadline = "3s"'))
    assert "timed out" in said
    wait_for(lambda: not running("sleep 4321.5"), "all of it is gone")


def test_a_daemon_does_not_outlive_its_build_and_is_named(hostile: Hostile) -> None:
    daemon = f"(setsid sh -c 'exec sleep 4322.5' &) ; {GOOD}"
    done = hostile.run(daemon, ("rounds = 3", "rounds = 3\nstopping = 'fixed'"))
    assert done.status == 0, done.err
    assert not running("sleep 4322.5")
    assert hostile.ensign.brief("report", "study.toml", "--json", "out.json").status == 0
    found = json.loads((hostile.folder / "out.json").read_text())["findings"]
    (text,) = (each["text"] for each in found if each["code"] == "left-running")
    assert "sleep" in text
    assert "bwrap" not in text


def running(command: str) -> bool:
    def words(entry: Path) -> str:
        try:
            return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            return ""

    return any(words(each) == command for each in Path("/proc").glob("[0-9]*"))


ARTIFACTS = {
    "a pipe": "rm -f program; mkfifo program",
    "a link to a device": "ln -sf /dev/zero program",
    "a link to a private file": "ln -sf /etc/shadow program",
    "a link to itself": "ln -sf program program",
    "a folder": "rm -f program; mkdir program",
    "a file with a hole": "truncate -s 19M program; truncate -s 1E program",
    "nothing but zeros": "head -c 1M /dev/zero > program",
    "a socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"program\")'",
}


@pytest.mark.parametrize("what", ARTIFACTS)
def test_an_artifact_that_is_none(hostile: Hostile, what: str) -> None:
    said = hostile.refused(f"{ARTIFACTS[what]}; exit 0")
    assert "program" in said


def test_a_program_with_the_rights_of_its_owner_is_kept_without_them(hostile: Hostile) -> None:
    done = hostile.run(f"{GOOD}; chmod 6777 program; mkdir -m 0 dark; touch -d @0 program")
    assert done.status == 0, done.err
    (kept,) = hostile.cache.glob("entries/program-*/files/program")
    assert stat.S_IMODE(kept.stat().st_mode) in (0o555, 0o755)
    assert kept.stat().st_uid == os.geteuid()


def test_deep_trees_and_folders_without_permissions_are_removed(hostile: Hostile) -> None:
    deep = "for n in $(seq 500); do mkdir d; cd d; done; mkdir -m 0 dark; exit 1"
    said = hostile.refused(deep)
    assert "ended with status 1" in said
    assert not [*hostile.cache.glob("temporary/*")]
    assert hostile.ensign.brief("clean").status == 0


@confined
def test_ensigns_own_files_are_out_of_reach(hostile: Hostile) -> None:
    assert hostile.run(GOOD).status == 0
    (kept,) = hostile.cache.glob("entries/program-*/files/program")
    (raw,) = (hostile.folder / ".ensign").glob("*/study.json")
    before = [kept.read_bytes(), raw.read_bytes()]
    act = f"""
    for file in {kept} {raw} {find_meter()}; do
        (echo harm >> $file) 2>/dev/null && echo SAW $file
    done
    rm -rf {hostile.cache} {raw.parent} 2>/dev/null
    exit 1
    """
    assert "SAW" not in hostile.refused(act)
    assert [kept.read_bytes(), raw.read_bytes()] == before
    # A later study on the same cache gives what it gave.
    again = hostile.run(GOOD)
    assert again.status == 0, again.err
    assert [kept.read_bytes()] == before[:1]


def test_without_confinement_that_is_said(hostile: Hostile) -> None:
    sandbox = ("[race]", "[sandbox]\nconfined = false\n\n[race]")
    done = hostile.run(GOOD, sandbox)
    assert done.status == 0, done.err
    assert hostile.ensign.brief("report", "study.toml", "--json", "out.json").status == 0
    result = json.loads((hostile.folder / "out.json").read_text())
    (finding,) = (each for each in result["findings"] if each["code"] == "not-confined")
    assert ("as root" in finding["text"]) == AS_ROOT
    assert result["experiment"]["confinement"].startswith("not confined")


@confined
def test_the_report_says_what_confined_the_programs(hostile: Hostile) -> None:
    assert hostile.run(GOOD).status == 0
    assert hostile.ensign.brief("report", "study.toml", "--json", "out.json").status == 0
    result = json.loads((hostile.folder / "out.json").read_text())
    assert result["experiment"]["confinement"].startswith("confined by bubblewrap")
    assert "not-confined" not in {each["code"] for each in result["findings"]}


@confined
def test_what_a_study_names_may_be_reached(hostile: Hostile) -> None:
    place = hostile.folder / "given"
    place.mkdir()
    place.chmod(0o777)  # started by root, builds run as somebody else
    (hostile.folder / "words").write_text("known\n")
    sandbox = (
        "[race]",
        (
            '[sandbox]\nread = ["words"]\nwrite = ["given"]\nnetwork = true\n'
            'env = ["GITHUB_TOKEN"]\n\n[race]'
        ),
    )
    with listening() as port:
        act = f"""
        cat {hostile.folder}/words; echo mine > {place}/file
        (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo connected
        echo $GITHUB_TOKEN; exit 1
        """
        bash = ('["sh", "act.sh"]', '["bash", "act.sh"]')
        said = hostile.refused(act, sandbox, bash, **SECRET)
    for word in ("known", "connected", "a-token"):
        assert word in said.split()
    assert (place / "file").read_text() == "mine\n"


def test_a_root_who_keeps_files_to_itself_builds_as_well(hostile: Hostile) -> None:
    before = os.umask(0o077)
    try:
        done = hostile.run(GOOD)
    finally:
        os.umask(before)
    assert done.status == 0, done.err
    (kept,) = hostile.cache.glob("entries/program-*/files/program")
    assert stat.S_IMODE(kept.stat().st_mode) in (0o555, 0o755)


@confined
@pytest.mark.parametrize(
    ("act", "key"),
    [
        ("echo x > /usr/x", "sandbox.write"),
        ("echo 'Could not resolve host: example.org'; exit 1", "sandbox.network"),
    ],
)
def test_who_needs_more_is_told_how_to_get_it(hostile: Hostile, act: str, key: str) -> None:
    assert key in hostile.refused(act)
