"""`compare --confine`: commands of others see the machine as the programs of a study do."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from end_to_end.conftest import SOON, Ensign, Programs

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap")

SPIN = "2000000"


def prying(folder: Path, secret: Path, port: int) -> str:
    """A program that works, and fails with a status of its own wherever it gets at something."""
    path = folder / "prying"
    path.write_text(
        "#!/bin/bash\n"
        f"(echo x > {folder}/written) 2>/dev/null && exit 21\n"
        f"cat {secret} >/dev/null 2>&1 && exit 22\n"
        f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 23\n"
        'test -n "$A_TOKEN" && exit 24\n'
        'echo x > "$1/own" || exit 25\n'
        'shift; exec "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_a_command_of_others_reaches_its_own_folder_alone(
    ensign: Ensign, programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "somebody"
    home.mkdir()
    (home / "secret").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("A_TOKEN", "t0ken")
    monkeypatch.delenv("PYTHONHOME", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        bad = prying(ensign.folder, home / "secret", server.getsockname()[1])
        done = ensign(
            "compare", "--confine", f"{bad} {{tmp}} {programs.cheap} {SPIN}",
            f"{programs.dear} {SPIN}", *SOON, "--json", "out.json",
        )  # fmt: skip
    assert done.status == 0, done.err
    assert not (ensign.folder / "written").exists()
    said = json.loads((ensign.folder / "out.json").read_text())
    assert "bubblewrap" in said["experiment"]["confinement"]
    assert "failed" not in done.out


def test_without_it_commands_run_as_they_are(ensign: Ensign, programs: Programs) -> None:
    command = f"sh -c 'echo x > {ensign.folder}/written; {programs.cheap} {SPIN}'"
    done = ensign("compare", command, f"{programs.dear} {SPIN}", *SOON)
    assert done.status == 0, done.err
    assert (ensign.folder / "written").exists()
