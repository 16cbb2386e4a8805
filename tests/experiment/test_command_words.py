import pytest

from ensign.experiment.compare.options import parse_cpus, parse_ports, split_command
from ensign.model.errors import InputError


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("gzip -6 -c file", ("gzip", "-6", "-c", "file")),
        ("awk '{ print $1 | \"x\" }' f", ("awk", '{ print $1 | "x" }', "f")),
        ('echo "a|b"', ("echo", "a|b")),
        (r"echo \$HOME", ("echo", "$HOME")),
        ("server --port {port}", ("server", "--port", "{port}")),
    ],
)
def test_a_command_is_split_as_a_shell_would(text: str, argv: tuple[str, ...]) -> None:
    assert split_command(text, shell="") == argv


@pytest.mark.parametrize(
    ("text", "character"),
    [("a | b", "|"), ("a > b", ">"), ("echo $HOME", "$"), ('echo "$HOME"', "$"), ("ls *", "*")],
)
def test_shell_characters_are_an_error_that_names_them(text: str, character: str) -> None:
    with pytest.raises(InputError, match="--shell") as caught:
        split_command(text, shell="")
    assert f"'{character}'" in str(caught.value)


def test_with_a_shell_the_text_is_left_alone() -> None:
    assert split_command("a | b", shell="/bin/sh") == ("/bin/sh", "-c", "a | b")


@pytest.mark.parametrize("text", ["", "  ", "echo 'open"])
def test_what_is_no_command_is_an_error(text: str) -> None:
    with pytest.raises(InputError):
        split_command(text, shell="")


@pytest.mark.parametrize(("text", "cpus"), [("1", (1,)), ("0,2", (0, 2)), ("0-2,2", (0, 1, 2))])
def test_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "2-1", "0-99999999999"])
def test_wrong_cpus(text: str) -> None:
    with pytest.raises(InputError, match="list of CPUs"):
        parse_cpus(text)


def test_ports() -> None:
    assert parse_ports("20000-20009") == (20000, 20009)


@pytest.mark.parametrize("text", ["", "20000", "20009-20000", "0-9", "60000-70000", "a-b", "1-²"])
def test_wrong_ports(text: str) -> None:
    with pytest.raises(InputError, match="range of ports"):
        parse_ports(text)


def test_bytes_that_are_no_utf_8_are_named() -> None:
    with pytest.raises(InputError, match=r"'caf\\xe9 -x' is not UTF-8 text"):
        split_command("caf\udce9 -x", shell="")
