"""`meter/Cargo.toml` has the version of the whole project; what is installed may not lag behind."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ensign

ROOT = Path(__file__).parent.parent


def the_version() -> str:
    manifest = tomllib.loads((ROOT / "meter" / "Cargo.toml").read_text("utf-8"))
    version: str = manifest["workspace"]["package"]["version"]
    return version


def test_the_package_has_the_meters_version() -> None:
    assert ensign.__version__ == the_version(), "make setup"


def test_the_meter_that_is_installed_has_it() -> None:
    meter = Path(sys.executable).parent / "ensign-meter"
    said = subprocess.run([meter, "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"ensign-meter {the_version()}\n", "make setup"


def test_the_crates_take_it_from_there() -> None:
    for manifest in (ROOT / "meter").glob("*/Cargo.toml"):
        package = tomllib.loads(manifest.read_text("utf-8"))["package"]
        assert package["version"] == {"workspace": True}, manifest


def test_the_changelog_begins_with_it() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == the_version()
