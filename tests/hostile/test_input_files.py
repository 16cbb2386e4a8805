"""Files that studies have made or fetched: pinned, contained, one clear line where they are not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from build_fixtures import cache, ports
from ensign.builders.input_files import make_inputs, missing_inputs
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.meter.client import LocalMeter
from ensign.meter.processes import MeterProcesses
from ensign.model.errors import CommandFailed, EnsignError, InputError
from ensign.model.study import Study
from ensign.model.study_problems import check_shape

__all__ = ["cache", "ports"]

HELLO = hashlib.sha256(b"hello\n").hexdigest()
PATH = "data/hello.txt"


def _table(path: str, **said: object) -> dict[str, object]:
    return {
        "name": "s",
        "layouts": "natural",
        "source": {"kind": "path", "path": "source"},
        "build": {"commands": [["make"]], "artifact": "a"},
        "axes": {"compiler": ["gcc"]},
        "baseline": {},
        "sandbox": {"memory": "1GiB"},
        "inputs": {path: {"sha256": HELLO, **said}},
    }


def _request(folder: Path, **said: object) -> BuildRequest:
    study = Study.model_validate(_table(PATH, **said))
    return BuildRequest(study, folder / "study.toml", (), "a")


@pytest.fixture
def processes() -> MeterProcesses:
    """As in a run: they end what writes or takes too much."""
    return MeterProcesses(LocalMeter())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "source").mkdir()
    return tmp_path / "study"


def test_a_command_in_the_studys_folder_makes_the_file_once(
    ports: BuildPorts, folder: Path
) -> None:
    (folder / "say.sh").write_text("echo hello\n")
    request = _request(folder, command=["sh", "say.sh"])
    make_inputs(request, ports)
    assert (folder / PATH).read_text() == "hello\n"
    (folder / "say.sh").unlink()
    make_inputs(request, ports)
    (folder / PATH).write_text("other\n")
    with pytest.raises(InputError, match="delete the file to have it made again"):
        missing_inputs(request)


def test_a_file_is_fetched_by_its_address(ports: BuildPorts, folder: Path) -> None:
    (folder / "there").write_text("hello\n")
    make_inputs(_request(folder, url="there"), ports)
    assert (folder / PATH).read_text() == "hello\n"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"command": ["echo", "other"]}, "has the SHA-256"),
        ({"command": ["sh", "-c", "echo no >&2; exit 3"]}, "ended with status 3; it said: 'no'"),
        (
            {"command": ["sh", "-c", "rm -f $TMPDIR/input"]},
            "deleted or moved its|SHA-256",
        ),
        (
            {"command": ["sh", "-c", "ln -sf /etc/passwd $TMPDIR/input"]},
            "deleted or moved its|SHA-256",
        ),
        (
            {"command": ["sh", "-c", "head -c 64M /dev/zero; sleep 60"], "limit": "1MiB"},
            "wrote more than it may.*'limit' is 1MiB",
        ),
        ({"command": ["sleep", "60"], "deadline": "1s"}, "timed out"),
        ({"command": ["no-such-program"]}, "ended with status|was not found"),
        ({"url": "gone"}, "gone is not there"),
        ({"url": "gopher://x/y"}, "only https"),
        ({"url": "study.toml"}, "has the SHA-256"),
    ],
)
def test_what_is_not_as_pinned_is_one_line_and_leaves_nothing(
    ports: BuildPorts, folder: Path, said: dict[str, object], why: str
) -> None:
    (folder / "study.toml").write_text("")
    before = sorted(folder.rglob("*"))
    with pytest.raises((InputError, CommandFailed), match=why) as raised:
        make_inputs(_request(folder, **said), ports)
    assert str(raised.value).isprintable()
    assert sorted(folder.rglob("*")) == before


def test_a_link_that_leads_out_of_the_folder_is_not_written_through(
    ports: BuildPorts, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "data").symlink_to(tmp_path / "outside")
    with pytest.raises(EnsignError, match="outside of the study's folder"):
        make_inputs(_request(folder, command=["echo", "hello"]), ports)
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", ".ensign/x", "a\nb"])
def test_a_path_outside_of_the_folder_is_refused(path: str) -> None:
    study, problems = check_shape(_table(path, command=["true"]))
    assert study is None or problems
    assert any("must be a path in the study's folder" in each.text for each in problems)
