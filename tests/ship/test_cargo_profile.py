"""A Rust variant as a change of the project's release profile and of Cargo's configuration."""

from __future__ import annotations

import tomllib

import pytest

from ensign.model.errors import InputError
from ensign.ship.source_change import (
    manifests_of,
    with_profile,
    with_rustflags,
    workspace_manifest,
)
from ensign.toolchains.table import Flags

HOST = "x86_64-unknown-linux-gnu"
WANTED = ("-Copt-level=2", "-Cdebuginfo=1", "-Clto=fat", "-Ccodegen-units=1", "-Cpanic=abort")
PACKAGE = '[package]\nname = "x"\n'


def release(text: str) -> object:
    return tomllib.loads(text)["profile"]["release"]


@pytest.mark.parametrize(
    "text",
    [
        PACKAGE,
        f"{PACKAGE}\n[profile.release]\nlto = true\n\n[dependencies]\n",
        f"{PACKAGE}[profile.release]   # fast\nopt-level='s'# small\npanic = \"abort\"\n",
        f"{PACKAGE}[ profile . release ]",
        "",
    ],
)
def test_the_profile_says_what_was_measured_and_the_rest_stays(text: str) -> None:
    edited = with_profile("Cargo.toml", text, Flags(WANTED, ()))
    there = release(edited)
    assert isinstance(there, dict)
    assert there | {"lto": str(there["lto"]).replace("True", "fat")} == {
        "opt-level": 2,
        "lto": "fat",
        "codegen-units": 1,
        "panic": "abort",
    }
    rest = tomllib.loads(edited) | {"profile": None}
    assert rest == tomllib.loads(text or PACKAGE[:0]) | {"profile": None}
    assert all(line in edited for line in text.splitlines() if "=" in line and "name" in line)


def test_what_cargo_does_by_itself_is_not_written() -> None:
    plain = Flags(("-Copt-level=3", "-Cdebuginfo=1"), ())
    assert with_profile("Cargo.toml", PACKAGE, plain) == PACKAGE
    other = f"{PACKAGE}[profile.release]\nlto = true\nopt-level = 1\n"
    assert release(with_profile("Cargo.toml", other, plain)) == {"lto": False, "opt-level": 3}


@pytest.mark.parametrize(
    "text",
    [
        f"{PACKAGE}[profile]\nrelease = {{ lto = true }}\n",
        'profile.release.opt-level = "s"\n',
        "[package\n",
        f"{PACKAGE}[profile.release]\nopt-level = [\n1 ]\n",
        'x = """\n[profile.release]\n"""\n',
    ],
)
def test_what_cannot_be_edited_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"Cargo\.toml"):
        with_profile("Cargo.toml", text, Flags(WANTED, ()))


def test_the_profile_of_a_member_belongs_to_its_workspace() -> None:
    texts = {"a/b/Cargo.toml": PACKAGE, "a/Cargo.toml": "[workspace]\n", "Cargo.toml": "[x]\n"}
    assert manifests_of("a/b") == ("a/b/Cargo.toml", "a/Cargo.toml", "Cargo.toml")
    assert manifests_of(".") == ("Cargo.toml",)
    assert workspace_manifest("a/b", texts) == "a/Cargo.toml"
    assert workspace_manifest(".", texts) == "Cargo.toml"
    elsewhere = texts | {"a/b/Cargo.toml": f'{PACKAGE}workspace = "../.."\n'}
    assert workspace_manifest("a/b", elsewhere) == "Cargo.toml"
    with pytest.raises(InputError, match=r"no c/Cargo\.toml"):
        workspace_manifest("c", texts)


def test_other_flags_are_rustflags_of_the_target() -> None:
    flags = Flags((*WANTED, "-Ctarget-cpu=x86-64-v3"), ("-Clink-arg=-fuse-ld=mold",))
    edited = with_rustflags("[net]\noffline = true\n", HOST, flags)
    words = ["-Ctarget-cpu=x86-64-v3", "-Clink-arg=-fuse-ld=mold"]
    assert tomllib.loads(edited) == {
        "net": {"offline": True},
        "target": {HOST: {"rustflags": words}},
    }
    assert with_rustflags("", HOST, Flags(WANTED, ())) == ""
    with pytest.raises(InputError, match="already"):
        with_rustflags(edited, HOST, flags)
