"""What a program wrote, given back to it."""

from __future__ import annotations

from ensign.tools.init.attempts import COPY, INPUT, OUTPUT, Attempt, Executable, Sample
from ensign.tools.init.doubts import doubts
from ensign.tools.init.roundtrip import undoing_of, ways_back, writers, written_sample
from ensign.tools.init.search import WANTED_NS, TriedCommand

PACK = Executable("ensign-build/pack")
SAMPLE = Sample("README", 1000)


def ran(attempt: Attempt, user_ns: int = 1) -> TriedCommand:
    return TriedCommand(
        attempt,
        ok=True,
        user_ns=user_ns,
        share_built=0.3,
        share_of_cpu=0.3,
        wall_ns=user_ns,
        how="exited",
    )


def test_options_and_first_words_that_sound_like_the_way_back_are_found() -> None:
    assert undoing_of(["-c", "-d", "--verbose", "--decompress"], []) == ("-d", "--decompress")
    assert undoing_of([], ["encode", "decode", "unpack", "debug"]) == ("decode", "unpack")
    assert undoing_of(["--gunzip", "--uncompress", "--delete"], []) == ("--uncompress",)
    assert undoing_of(["-c"], []) == ()
    assert undoing_of([], []) == ("-d",)


def test_the_other_way_takes_the_place_of_what_was_asked() -> None:
    written = written_sample(Attempt(PACK, ("-c", INPUT), SAMPLE), b"packed")
    found = list(ways_back(Attempt(PACK, ("-c", INPUT), SAMPLE), ["-d"], written))
    words = [each.words for each in found]
    assert words == [("-d", INPUT), ("-d", "-c", INPUT), ("-d",)]
    assert {each.sample for each in found} == {written}
    assert found[0].takes_files
    assert found[-1].reads_input


def test_a_filter_without_options_is_asked_by_the_option_alone() -> None:
    writer = Attempt(PACK, (), SAMPLE)
    words = [each.words for each in ways_back(writer, ["-d"], written_sample(writer, b"x"))]
    assert words == [("-d",), ("-d", INPUT)]


def test_what_is_written_keeps_the_ending_of_its_name() -> None:
    written = written_sample(Attempt(PACK, (INPUT, f"{OUTPUT}.lz"), SAMPLE), b"packed")
    assert written.suffix == ".lz"
    assert not written.is_file
    assert written.total_bytes == 6


def test_writers_are_those_that_took_as_long_as_is_wanted_each_way_of_asking_once() -> None:
    larger, largest = (Sample("README", 1000, copies=many) for many in (9, 99))
    trials = [
        ran(Attempt(PACK, (), SAMPLE), WANTED_NS // 9),
        ran(Attempt(PACK, (), larger), WANTED_NS),
        ran(Attempt(PACK, (), largest), WANTED_NS * 11),
        ran(Attempt(PACK, ("-1",), SAMPLE), WANTED_NS // 2),
        ran(Attempt(PACK, (COPY,), SAMPLE), WANTED_NS),
        ran(Attempt(PACK, ("--version",)), WANTED_NS),
        ran(Attempt(PACK, (), SAMPLE, repeat=9), WANTED_NS),
    ]
    assert writers(trials) == [Attempt(PACK, (), larger), Attempt(PACK, ("-1",), SAMPLE)]


def test_the_study_says_what_wrote_its_input() -> None:
    written = written_sample(Attempt(PACK, ("-c", INPUT), SAMPLE), b"packed")
    notes = doubts(ran(Attempt(PACK, ("-d",), written), 10**9))
    assert "ensign-input is what 'pack -c {input}' wrote" in notes[0]
