"""`compare --environments`: which they are, and what is told of them, before anything is run."""

from pathlib import Path

import pytest

from ensign.experiment.compare.commands import command_variants
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.tracing import environment_files
from ensign.experiment.environments import in_environments, system_of
from ensign.experiment.ports import Ports
from ensign.host.root_directory import RootDirectory
from ensign.model.errors import InputError
from ensign.model.traced_execution import MappedFile, TracedExecution


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("usr/bin", "etc", "var/lib/dpkg", "lib"):
        (tmp_path / "r" / name).mkdir(parents=True)
    (tmp_path / "r/etc/os-release").write_text('NAME=x\nPRETTY_NAME="Tiny 1"\n')
    (tmp_path / "r/usr/bin/tool").touch(mode=0o755)
    (tmp_path / "r/lib/ld-musl-x86_64.so.1").touch()
    (tmp_path / "r/var/lib/dpkg/status").write_text(
        "Package: a\nStatus: install ok installed\nVersion: 1\n\n"
        "Package: b\nStatus: deinstall ok config-files\nVersion: 2\n"
    )
    return tmp_path / "r"


@pytest.fixture
def ports(tmp_path: Path) -> Ports:
    return Ports(env={"ENSIGN_CACHE": str(tmp_path / "cache")})


def test_a_system_is_known_by_its_files_alone(root: Path) -> None:
    found = system_of(RootDirectory("r", root, ""))
    assert (found.distribution, found.libc) == ("Tiny 1", "musl")
    assert (found.packages, found.choices) == ({"a": "1"}, {})


def test_the_command_runs_once_in_each(root: Path, ports: Ports) -> None:
    with in_environments(f"host,{root}", None, Options(("tool",)), ports) as (options, findings):
        pass
    commands = command_variants(options)
    assert [each.root for each in commands] == [None, str(root)]
    assert [each.name for each in commands] == ["host", str(root)]
    assert [each.argv for each in commands] == [("tool",)] * 2
    (told,) = findings
    assert f"{root} is Tiny 1, musl. All run on this kernel" in told.text


@pytest.mark.parametrize(
    ("said", "command", "why"),
    [
        ("host", "tool", "names no two environments"),
        ("host,host", "tool", "names 'host' twice"),
        ("host,", "tool", "names no two environments"),
        ("host,nowhere", "tool", "there is no environment 'nowhere'"),
        ("host,./nowhere", "tool", "is not there"),
        ("host,debian:BULL/..", "tool", "environment 'debian:BULL/..'"),
        ("host,ROOT", "other", "has no program 'other'"),
        ("host,ROOT", "/usr/bin/other", "has no /usr/bin/other, and /usr is its own there"),
    ],
)
def test_what_is_wrong_is_one_line(
    root: Path, ports: Ports, said: str, command: str, why: str
) -> None:
    said = said.replace("ROOT", str(root))
    with (
        pytest.raises(InputError, match=why) as error,
        in_environments(said, None, Options((command,)), ports),
    ):
        pass
    assert "\n" not in str(error.value)


def test_several_commands_and_names_are_refused(root: Path, ports: Ports) -> None:
    for options, why in (
        (Options(("a", "b")), "races one command; if that is one, quote it: 'a b'"),
        (Options(("a",), names=("x",)), "named after them"),
    ):
        with (
            pytest.raises(InputError, match=why),
            in_environments(f"host,{root}", None, options, ports),
        ):
            pass
    with (
        pytest.raises(InputError, match="--study names the file"),
        in_environments(None, root, Options(("a", "b")), ports),
    ):
        pass


def test_files_that_ran_and_differ_are_named() -> None:
    commands = command_variants(Options(("p", "p"), names=("host", "old"), roots=("", "/r")))
    seen = {
        "1": _ran(("/lib/libc.so.6", "1"), ("/p", "2")),
        "2": _ran(("/r/lib/libc.so.6", "3"), ("/p", "2")),
    }
    (found,) = environment_files(commands, seen)
    assert found.text == "other files ran than in host: libc.so.6; the same in both: p"
    assert found.subject == "old"


def _ran(*files: tuple[str, str]) -> TracedExecution:
    mapped = tuple(MappedFile(path, sha256) for path, sha256 in files)
    return TracedExecution(mapped, (), 0, 1, 1, "")
