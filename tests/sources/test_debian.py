"""Against a real Debian mirror, with apt itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensign.host.cache import Cache
from ensign.model.errors import InputError
from ensign.model.study_source import DebianSource
from ensign.sources.obtain import SourcePorts, obtain
from real_processes import PlainProcesses

HELLO = "31e066137a962676e89f69d1b65382de95a7ef7d914b8cb956f41ea72e0f516b"

pytestmark = pytest.mark.network


def hello(**changes: object) -> DebianSource:
    asked = {"kind": "debian", "package": "hello", "version": "2.10", "sha256": HELLO}
    return DebianSource.model_validate(asked | changes)


def test_the_orig_archive_without_and_with_debians_patches(tmp_path: Path, cache: Cache) -> None:
    system = sorted(Path("/var/lib/apt/lists").glob("*"))
    ports = SourcePorts(PlainProcesses(), cache, dict(os.environ))
    plain = obtain(hello(), tmp_path / "plain.toml", ports, update_lock=False)
    assert (plain.tree / "src/hello.c").exists()
    assert not (plain.tree / "debian").exists()
    patched = obtain(hello(patches=True), tmp_path / "patched.toml", ports, update_lock=False)
    assert (patched.tree / "debian/rules").exists()
    assert dict(patched.facts)["revision"].startswith("2.10-")
    assert sorted(Path("/var/lib/apt/lists").glob("*")) == system


def test_a_package_that_does_not_exist_is_one_line(tmp_path: Path, cache: Cache) -> None:
    ports = SourcePorts(PlainProcesses(), cache, dict(os.environ))
    with pytest.raises(InputError, match=r"have no source package 'no-such-package'$"):
        obtain(hello(package="no-such-package"), tmp_path / "s.toml", ports, update_lock=False)
