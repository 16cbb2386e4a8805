from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ensign.host import confined_view as confined_view_module
from ensign.host.confined_view import (
    ConfinementRequest,
    confined_view,
    is_someones_home,
    rustup_home,
)
from ensign.host.confinement import Bind, Link, View, bubblewrap_argv
from ensign.host.confinement_probe import Confinement, probe_confinement, unconfined
from ensign.host.foreign_files import UnprivilegedUser
from ensign.host.processes import Outcome
from ensign.meter.client import find_meter
from fakes import FakeProcesses
from real_processes import PlainProcesses, WithoutNamespaces

NOBODY = UnprivilegedUser(65534, 65534)


def pairs(argv: Sequence[str], option: str) -> list[str]:
    """What follows each of these options."""
    return [argv[at + 1] for at, word in enumerate(argv) if word == option]


def test_parents_come_before_what_lies_in_them() -> None:
    view = View(
        entries=("/etc", "/home", "/usr"),
        links=(Link("/bin", "usr/bin"),),
        hidden=("/home", "/home/me/study/.ensign", "/home/me/dark"),
        scratch=("/tmp",),  # noqa: S108
        binds=(
            Bind("/home/me/study", "/home/me/study"),
            Bind("/cache/1/tree", "/ensign/build", writable=True),
            Bind("/usr/lib", "/usr/lib"),
        ),
    )
    argv = bubblewrap_argv("bwrap", view)
    assert pairs(argv, "--tmpfs") == ["/tmp", "/home/me/study/.ensign"]  # noqa: S108
    # What is there already needs no mount, and what is hidden anyway none either.
    assert pairs(argv, "--ro-bind") == ["/etc", "/usr", "/home/me/study"]
    assert pairs(argv, "--dir") == ["/home", "/ensign", "/home/me"]
    assert pairs(argv, "--bind") == ["/cache/1/tree"]
    assert pairs(argv, "--remount-ro") == ["/home/me/study/.ensign", "/dev", "/"]
    assert argv.index("/home/me/study") > argv.index("--tmpfs")
    assert pairs(argv, "--symlink") == ["usr/bin"]
    assert "--unshare-net" in argv
    assert "--unshare-net" not in bubblewrap_argv("bwrap", View((), network=True))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for name in (
        "tool/bin", "tool/lib", "tool/share/tool-1.2", "tool/share/letters", "tool/src",
        "rust/.cargo/bin", "rust/.rustup/toolchains", ".ssh", "bin", "mail", "python/v/bin",
        "python/v/lib", "linked",
    ):  # fmt: skip
        (home / name).mkdir(parents=True)
    for name in ("tool/bin/tool", "rust/.cargo/bin/rustup", "tool/secret", "python/v/bin/python"):
        (home / name).write_text("")
    (home / "bin/python").symlink_to(home / "linked/v/bin/python")
    (home / "linked").rmdir()
    (home / "linked").symlink_to("python")
    return home


def test_programs_in_a_home_folder_come_with_what_they_need_and_nothing_else(home: Path) -> None:
    path = os.pathsep.join(str(home / each) for each in ("tool/bin", "rust/.cargo/bin", "bin"))
    view = confined_view(ConfinementRequest(path, str(home)), None)
    shown = {each.target.removeprefix(f"{home}/") for each in view.binds}
    assert {
        "tool/bin", "tool/lib", "tool/share/tool-1.2", "rust/.cargo/bin", "bin",
        "rust/.rustup/toolchains", "python/v/bin", "python/v/lib",
    } <= shown  # fmt: skip
    assert not {"", "tool/share", "tool/share/letters", "tool/src", "tool/secret", ".ssh",
                "mail"} & shown  # fmt: skip
    assert Link(f"{home}/linked", "python") in view.links
    assert rustup_home(path) == f"{home}/rust/.rustup"
    assert rustup_home("/usr/bin") == ""


def test_a_home_folder_that_is_asked_for_comes_without_credentials(home: Path) -> None:
    view = confined_view(ConfinementRequest("/bin", str(home), read=(home,)), None)
    argv = bubblewrap_argv("bwrap", view)
    assert f"{home}/.ssh" in pairs(argv, "--tmpfs")


def test_what_its_owner_alone_may_enter_is_opened_on_the_way_only(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / "open").mkdir(parents=True)
    (folder / "closed").mkdir(mode=0o700)
    (folder / "private").touch(mode=0o600)
    (folder / "public").write_text("")
    (folder / "public").chmod(0o644)
    (folder / "open").chmod(0o755)
    folder.chmod(0o700)
    view = confined_view(ConfinementRequest("/bin", read=(folder,)), NOBODY)
    inside = {Path(each.target).name for each in view.binds if each.source.startswith(str(folder))}
    assert inside == {"open", "public"}
    assert str(folder) in view.hidden


def test_sockets_that_somebody_listens_on_are_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined_view_module, "_SCRATCH", ())
    monkeypatch.chdir(tmp_path)  # its path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        listed = tmp_path / "unix"
        listed.write_text(f"Num RefCount\n0: 2 0 10000 0001 01 1 {tmp_path}/s\n1: 2 0 0 1 01 2\n")
        monkeypatch.setattr(confined_view_module, "_SOCKETS", listed)
        view = confined_view(ConfinementRequest("/bin"), None)
    assert Bind("/dev/null", f"{os.path.realpath(tmp_path)}/s") in view.binds


@pytest.mark.parametrize("path", ["/", "/home", "/home/me", "/root", "/tmp", "/x/home", "/x"])  # noqa: S108
def test_home_folders_are_not_shown_because_they_are_named(path: str) -> None:
    assert is_someones_home(Path(path), "/x/home")
    assert not is_someones_home(Path("/x/home/study"), "/x/home")


def test_devices_are_the_view_s_own_though_they_are_named() -> None:
    request = ConfinementRequest("/bin", read=(Path("/dev/zero"), Path("/proc/self/maps")))
    targets = {each.target for each in confined_view(request, None).binds}
    assert not [each for each in targets if each.startswith(("/dev/zero", "/proc"))]


def test_why_there_is_no_confinement_is_said_with_the_way_out(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path)}
    missing = probe_confinement(FakeProcesses(lambda _: Outcome(0, None, "exited")), env)
    if not missing.works:  # where it is not in the system's own folders either
        assert "bubblewrap is not installed" in missing.said
    found = probe_confinement(WithoutNamespaces(), dict(os.environ), find_meter())
    assert not found.works
    (finding,) = found.findings()
    assert finding.code == "not-confined"
    assert ("as root" in finding.text) == (os.geteuid() == 0)
    assert found.argv(ConfinementRequest("/bin")) == ()
    assert unconfined("asked").said == "not confined: asked"
    assert Confinement("bwrap").findings() == ()


def test_it_confines(tmp_path: Path) -> None:
    confinement = probe_confinement(PlainProcesses(), dict(os.environ), find_meter())
    if not confinement.works:
        pytest.skip(confinement.said)
    (tmp_path / "file").write_text("here")
    request = ConfinementRequest("/usr/bin:/bin", str(Path.home()), read=(find_meter(),))
    argv = confinement.argv(request)
    script = f"cat {tmp_path}/file 2>/dev/null; touch /usr/x /x 2>/dev/null; ls -A $HOME; id -u"
    done = subprocess.run([*argv, "sh", "-c", script], capture_output=True, text=True, check=True)
    assert "here" not in done.stdout
    assert done.stdout.split()[-1] != "0"
