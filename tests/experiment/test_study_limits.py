from pathlib import Path

import pytest

from ensign.experiment.study_file import RunOptions, parse_study
from ensign.model.errors import InputError
from experiment.test_study_file import STUDY


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (RunOptions(budget="2"), "--budget: '2' is not a time"),
        (RunOptions(budget="0s"), "--budget: '0s' must be above 0"),
        (RunOptions(precision="5ms"), "--precision: '5ms' is not a percentage"),
        (RunOptions(precision="0%"), "--precision: '0%' must be above 0%"),
    ],
)
def test_a_wrong_limit_is_named_with_its_option(limits: RunOptions, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_study(STUDY, Path("s.toml")).with_options(limits)


def test_limits_stand_in_the_place_of_the_study_s_own() -> None:
    file = parse_study(STUDY, Path("s.toml"))
    race = file.with_options(RunOptions(budget="2h", precision="0.5%")).study.race
    assert (race.budget, race.precision) == ("2h", "0.5%")
    assert file.with_options(RunOptions()).study == file.study


def test_a_wrong_precision_in_the_study_is_a_problem_of_its_line() -> None:
    text = STUDY + '\n[race]\nprecision = "often"\n'
    with pytest.raises(InputError, match="'often' is not a percentage"):
        parse_study(text, Path("s.toml"))
