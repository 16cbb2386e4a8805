"""Root directories of strangers: nothing lands, or is looked up, outside of them."""

import io
import os
import re
import shutil
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from ensign.experiment.confinement import ProgramRules, Sandboxed
from ensign.host.confinement import Bind, View, bubblewrap_argv
from ensign.host.confinement_probe import probe_confinement
from ensign.host.root_directory import RootDirectory, inner_root, lies_in, root_view
from ensign.meter.client import LocalMeter, find_meter
from ensign.meter.processes import MeterProcesses
from ensign.model.errors import InputError
from ensign.sources.environments import RootPin, drift, read_pin, read_pins, write_pin
from ensign.sources.unpack import unpack


def _archive(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, link, mode
    member.size = 1 if kind == tarfile.REGTYPE else 0
    return member


def test_links_of_a_root_lead_within_it_alone(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/real").write_text("inside")
    (root / "etc/absolute").symlink_to("/etc/real")
    (root / "etc/up").symlink_to("../../../secret")
    (root / "etc/loop").symlink_to("loop")
    found = RootDirectory("r", root, "")
    assert found.text("/etc/absolute") == "inside"
    assert found.text("/etc/up") == ""
    assert found.text("/../../secret") == ""
    assert found.place("/etc/loop") is None


def test_a_member_behind_a_link_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = _archive(
        tmp_path / "a.tar", _member("etc", tarfile.SYMTYPE, str(outside)), _member("etc/passwd")
    )
    with pytest.raises(InputError, match="behind a link"):
        unpack(archive, tmp_path / "root", 0, "it", is_root=True)
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "root").exists()


def test_devices_are_passed_over_and_set_user_id_is_lost(tmp_path: Path) -> None:
    archive = _archive(
        tmp_path / "a.tar",
        _member("dev/null", tarfile.CHRTYPE),
        _member("bin/su", mode=0o4755),
        _member("bin/sh", tarfile.SYMTYPE, "/bin/su"),
    )
    unpack(archive, tmp_path / "root", 0, "it", is_root=True)
    assert not (tmp_path / "root/dev/null").exists()
    assert (tmp_path / "root/bin/su").stat().st_mode & 0o7777 == 0o755


def test_homes_of_a_root_are_not_shown(tmp_path: Path) -> None:
    for name in ("usr", "root", "home", "run", "proc"):
        (tmp_path / name).mkdir()
    argv = bubblewrap_argv("bwrap", root_view(tmp_path, (), View(entries=())))
    assert str(tmp_path / "usr") in argv
    assert not {str(tmp_path / name) for name in ("root", "home", "run", "proc")} & {*argv}


@pytest.mark.parametrize("text", ["[]", '{"environments": []}', '{"environments": {"a": 1}}', "{"])
def test_a_damaged_lock_file_is_one_clear_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.lock.json"
    path.write_text(text)
    if text == "[]":
        assert read_pins(path) == {}
        return
    with pytest.raises(InputError, match="is not a lock file"):
        read_pin(path, "a")


def test_pins_are_kept_and_drift_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.lock.json"
    pin = RootPin({"debian": "bullseye"}, {"gcc-9": "9.3.0-22 aa", "make": "4.3 bb"})
    write_pin(path, "b", pin)
    assert read_pin(path, "b") == pin
    now = {"gcc-9": "9.3.0-23 cc", "make": "4.3 dd"}
    assert drift(pin.packages, now) == "gcc-9 was 9.3.0-22, is 9.3.0-23, make 4.3 has other bytes"
    assert drift(pin.packages, pin.packages) == ""


def tiny_root(folder: Path) -> Path:
    """A root directory of this machine's shell, and the libraries that it needs."""
    shell = os.path.realpath("/bin/sh")
    said = subprocess.run(["ldd", shell], capture_output=True, text=True, check=False, timeout=60)
    for path in (shell, *re.findall(r"(/\S+)", said.stdout)):
        place = folder / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), place)
    (folder / "bin").mkdir(exist_ok=True)
    shutil.copy(shell, folder / "bin/sh")
    for name in ("etc", "home", "usr/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "etc/os-release").write_text('PRETTY_NAME="Tiny 1"\n')
    return folder


@pytest.fixture
def entering(tmp_path: Path) -> Sandboxed:
    (tmp_path / "study").mkdir()
    (tmp_path / "study/input").write_text("given\n")
    confinement = probe_confinement(MeterProcesses(LocalMeter()), os.environ, find_meter())
    if not confinement.works:
        pytest.skip(confinement.reason)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    return Sandboxed(confinement, env, ProgramRules(cwd=tmp_path / "study"))


def test_a_program_sees_the_files_of_its_root_and_of_the_study_alone(
    tmp_path: Path, entering: Sandboxed
) -> None:
    root = tiny_root(tmp_path / "root")
    # What leads out of it leads to nothing, and its own device is none.
    (root / "etc/out").symlink_to("../../../../../../../../etc/passwd")
    script = (
        "read a < input; read b < /etc/os-release; echo $a $b; (: > {tmp}/new) && echo wrote; "
        f"for f in /etc/out /etc/passwd {root}/etc/os-release; do [ -e $f ] && echo $f; done; "
        "(: > /etc/mine) || (: > input) && echo wrote; "
        "while read line; do case $line in Cap[PEA]*) echo $line;; esac; done < /proc/self/status"
    )
    process = {"argv": ["sh", "-c", script], "root": str(root), "deadline_ns": 30 * 10**9}
    with closing(
        LocalMeter(surroundings=entering).run("exec", {"schema": 1, "process": process})
    ) as run:
        said = next(each for each in run if each["type"] == "outcome")
    lines = str(said["stdout_tail"]).splitlines()
    assert lines[:2] == ['given PRETTY_NAME="Tiny 1"', "wrote"], said
    assert {line.split()[1] for line in lines[2:]} == {"0000000000000000"}, said
    assert (tmp_path / "study/input").read_text() == "given\n"
    assert not (root / "etc/mine").exists()


def test_what_a_root_has_itself_is_not_the_machines(tmp_path: Path) -> None:
    for name in ("usr", "home", "opt"):
        (tmp_path / name).mkdir()
    own = {path: lies_in(tmp_path, path) for path in ("/usr/bin/x", "/opt/x", "/proc/1", "/")}
    assert own == dict.fromkeys(own, True)
    others = {path: lies_in(tmp_path, path) for path in ("/home/me/x", "/work/x")}
    assert others == dict.fromkeys(others, False)
    binds = (Bind("/opt/x", "/opt/x"), Bind("/work/x", "/work/x"), Bind(os.devnull, "/work/socket"))
    view = View(entries=(), binds=binds)
    found = inner_root(tmp_path, view, ["/home/me"], Path("/usr/bin/ensign-meter"))
    assert [each.target for each in found.binds] == ["/work/x", "/ensign/ensign-meter"]
    assert found.begun == ("/home/me",)
    argv = bubblewrap_argv("bwrap", View(entries=(), inner_roots=(found,)))
    assert argv[argv.index("--cap-add") + 1] == "CAP_SYS_CHROOT"
    assert ("--ro-bind", "/work/x", f"{tmp_path}/work/x") in zip(
        argv, argv[1:], argv[2:], strict=False
    )
    assert "--cap-add" not in bubblewrap_argv("bwrap", View(entries=()))
