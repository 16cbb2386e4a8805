import pytest

from ensign.builders.check_run import difference


def test_equal_output_has_no_difference() -> None:
    assert difference("a 1\nb\n", "a 1\nb\n") == ""
    assert difference("", "", 0.1) == ""


def test_without_tolerance_every_byte_counts() -> None:
    assert difference("sum 1.0\n", "sum 1.00\n") == "line 1: 'sum 1.00' instead of 'sum 1.0'"
    assert difference("a\n", "a") == "the ends of its lines differ"
    assert difference("a\nb\n", "a\n") == "it ends before line 2: 'b'"
    assert difference("a\n", "a\nb\n") == "line 2: 'b' where the baseline ends"


def test_of_bytes_that_are_no_text_the_first_is_told() -> None:
    def text(given: bytes) -> str:
        return given.decode(errors="surrogateescape")

    packed = bytes.fromhex("1f8b0800aabbccdd")
    later = bytes.fromhex("1f8b0800abbbccdd")
    assert difference(text(packed), text(later)) == "byte 5: 0xab instead of 0xaa"
    assert difference(text(packed), text(packed[:3])) == "3 bytes where the baseline has 8"


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("x = 1000 y", "x = 1000.5 y"),
        ("-1.0e-3", "-.0010004"),
        ("1e300", "1.0002e300"),
        ("nan inf", "NaN Infinity"),
        ("(1,2,3)", "(1,2.0005,3)"),
        ("0", "0.0"),
    ],
)
def test_numbers_within_the_tolerance_are_the_same(wanted: str, given: str) -> None:
    assert difference(wanted, given, 0.001) == ""
    assert difference(wanted, given) != ""


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("x = 1000", "x = 1002"),
        ("x = 1", "y = 1"),
        ("x = 1", "x = -1"),
        ("x =  1", "x = 1"),
        ("1 2", "1 2 3"),
        ("nan", "1"),
        ("inf", "-inf"),
        ("0", "1e-30"),
        ("a b", "a 1"),
    ],
)
def test_what_no_tolerance_covers(wanted: str, given: str) -> None:
    assert difference(wanted, given, 0.001).startswith("line 1: ")


def test_long_lines_are_shown_in_part() -> None:
    assert len(difference("x" * 500, "y" * 500)) < 200
