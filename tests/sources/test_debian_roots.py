"""Roots of Debian: what is missing to make one is one line; a snapshot is the way out of drift."""

import os
from pathlib import Path

import pytest

from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.study_environment import Environment
from ensign.sources import debian_roots
from ensign.sources.debian_roots import Maker, NoEnvironment, made_root

_BULLSEYE = Environment(debian="bullseye", packages=["make"])


class _Debootstrap:
    """Makes the files that debootstrap leaves, or fails as it does."""

    def __init__(self) -> None:
        self.fails = False
        self.asked: list[ProcessRequest] = []

    def run(self, request: ProcessRequest) -> Outcome:
        self.asked.append(request)
        if self.fails:
            return Outcome(1, None, "exited", tail="I: first\nE: Couldn't find these debs: make\n")
        if Path(request.argv[0]).name == "debootstrap":
            root = Path(request.argv[-2])
            (root / "var/lib/apt/lists").mkdir(parents=True)
            (root / "var/lib/dpkg").mkdir()
            paragraph = "Package: make\nVersion: 4.3\n"
            (root / "var/lib/apt/lists/x_Packages").write_text(f"{paragraph}SHA256: aa\n")
            (root / "var/lib/dpkg/status").write_text(f"{paragraph}Status: install ok installed\n")
        return Outcome(0, None, "exited")

    def interrupt(self) -> None:
        """Nothing runs."""


def _maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> _Debootstrap:
    monkeypatch.setattr(debian_roots, "_SBIN", str(tmp_path))
    monkeypatch.setattr(
        debian_roots,
        "system_stanzas",
        lambda: [{"types": "deb", "components": "main", "uris": "https://example.org/debian"}],
    )
    for name in names:
        (tmp_path / name).touch(mode=0o755)
    return _Debootstrap()


def test_without_either_program_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = _maker(tmp_path, monkeypatch)
    with pytest.raises(NoEnvironment, match="'b' needs mmdebstrap; apt-get install mmdebstrap"):
        made_root("b", _BULLSEYE, Maker(fake, {"PATH": str(tmp_path)}), tmp_path)
    _maker(tmp_path, monkeypatch, "debootstrap")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NoEnvironment, match="debootstrap, which is here, needs root"):
        made_root("b", _BULLSEYE, Maker(fake, {"PATH": str(tmp_path)}), tmp_path)
    assert fake.asked == []


def test_root_can_do_with_debootstrap_and_packages_have_their_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = _maker(tmp_path, monkeypatch, "debootstrap")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    archive, packages = made_root("b", _BULLSEYE, Maker(fake, {"PATH": ""}), tmp_path)
    assert packages == {"make": "4.3 aa"}
    assert archive == tmp_path / "root.tar"
    assert [Path(each.argv[0]).name for each in fake.asked] == ["debootstrap", "tar"]
    fake.fails = True
    with pytest.raises(NoEnvironment, match="debootstrap: E: Couldn't find these debs: make"):
        made_root("b", _BULLSEYE, Maker(fake, {"PATH": ""}), tmp_path)
