import pytest

from ensign.cli.study import with_optional_values


@pytest.mark.parametrize(
    ("argv", "filled"),
    [
        (["report", "s.toml", "--json"], ["report", "s.toml", "--json", "-"]),
        (["report", "--html", "s.toml"], ["report", "--html", "-", "s.toml"]),
        (
            ["report", "s.toml", "--csv", "--json", "o"],
            ["report", "s.toml", "--csv", "-", "--json", "o"],
        ),
        (["report", "s.toml", "--json", "-"], ["report", "s.toml", "--json", "-"]),
        (["doctor", "--json"], ["doctor", "--json"]),
    ],
)
def test_report_options_may_stand_without_a_file(argv: list[str], filled: list[str]) -> None:
    assert with_optional_values(argv) == filled
