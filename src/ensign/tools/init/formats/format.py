"""How a file of a format is made: records of words and numbers that look random. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

_WORDS = """
amber basin cedar delta ember fable grove harbor island jasper kernel ladder
meadow needle orchard pebble quarry river saddle timber umbrella valley window
yonder zephyr of the and to in with from under over between
""".split()  # noqa: SIM905  # a list would be forty lines
RECORDS = 1000

Make = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Format:
    """How files of a kind are made of so many records; `names` has the suffix first."""

    names: tuple[str, ...]
    make: Make
    records: int = RECORDS


def numbers(seed: int = 1) -> Iterator[int]:
    """Numbers below 2³¹ that look random.

    The linear congruential generator of ISO C's `rand` example, without its last bits.
    """
    state = seed
    while True:
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        high = state >> 16
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        yield (high << 15) | (state >> 17)


def words(count: int, seed: int) -> str:
    """So many words, the same for the same seed."""
    return " ".join(_WORDS[each % len(_WORDS)] for each in islice(numbers(seed), count))


def lines(record: Callable[[int, int], str], head: str = "", foot: str = "") -> Make:
    """A text of records, each of its place and a number."""

    def make(records: int) -> bytes:
        numbered = enumerate(islice(numbers(), records))
        return (head + "".join(record(at, number) for at, number in numbered) + foot).encode()

    return make


def ratio(number: int) -> float:
    """One of `numbers` as a part of 1."""
    return number / 2**31


def prose(_at: int, number: int) -> str:
    """A record of `lines`: a sentence of twelve words."""
    return f"{words(12, number).capitalize()}.\n"
