from __future__ import annotations

from ensign.toolchains.profiling import (
    ProfileCount,
    bolt_count,
    gcov_count,
    gcov_functions,
    profdata_count,
    profdata_names,
    profile_warnings,
)

_GCOV = """\
a.gcda:data:magic `gcda':version `B22*'
a.gcda:  01000000:  12:FUNCTION ident=108032747, lineno_checksum=0x89ca533a, cfg_checksum=0xf515ed
a.gcda:    01a10000:  40:COUNTERS arcs 9 counts
a.gcda:                   0: 0 0 0 0 0 0 0 0
a.gcda:                   8: 1
a.gcda:    01af0000:   8:COUNTERS time_profiler 1 counts
a.gcda:                   0: 1
a.gcda:  01000000:  12:FUNCTION ident=1618085476, lineno_checksum=0x353808a5, cfg_checksum=0xa4308
a.gcda:    01a10000:   8:COUNTERS arcs 1 counts (all zero)
a.gcda:                   0: 0
a.gcda:    01af0000:   8:COUNTERS time_profiler 1 counts
a.gcda:                   0: 7
"""


def test_functions_with_a_profile_are_those_with_a_taken_arc() -> None:
    assert gcov_count(_GCOV.splitlines()) == ProfileCount(functions=2, profiled=1)
    assert gcov_count([]) == ProfileCount(0, 0)


def test_functions_have_numbers_and_whether_they_ran() -> None:
    assert list(gcov_functions(_GCOV.splitlines())) == [(108032747, True), (1618085476, False)]
    assert list(gcov_functions([])) == []


def test_functions_that_llvm_profdata_names() -> None:
    every = (
        "Counters:\n  main:\n    Hash: 0x1\n    Counters: 2\n  a.c;idle:\n    Counters: 1\n"
        "  a.c:old:\n    Counters: 1\nInstrumentation level: IR  entry_first = 0\n"
    )
    assert profdata_names(every) == {"main", "idle", "old"}
    assert profdata_names("main\na.c;f\n") == {"main", "f"}
    assert profdata_names("") == set()


def test_what_llvm_profdata_says() -> None:
    text = (
        "Instrumentation level: IR  entry_first = 0\nTotal functions: 3\n"
        "Number of functions with maximum count (< 1): 1\n"
        "Number of functions with maximum count (>= 1): 2\nMaximum function count: 1000000\n"
    )
    assert profdata_count(text) == ProfileCount(3, 2)
    assert profdata_count("error: no such file\n") is None


def test_what_bolt_says() -> None:
    line = (
        "BOLT-INFO: 7 out of 11 functions in the binary (63.6%) have non-empty execution profile\n"
    )
    assert bolt_count(f"BOLT-INFO: enabling lite mode\n{line}") == ProfileCount(11, 7)
    assert bolt_count("BOLT-ERROR: no\n") is None


def test_warnings_are_counted_by_flag() -> None:
    lines = [
        "a.c:1:1: warning: profile count data file not found [-Wmissing-profile]",
        "b.c:1:1: warning: profile count data file not found [-Wmissing-profile]",
        "warning: profile data may be out of date [-Wprofile-instr-out-of-date]",
        "b.c:9:1: error: does not match its profile data [-Werror=coverage-mismatch]",
        "c.c:1:1: warning: unused variable [-Wunused-variable]",
        "gcc -Wmissing-profile -c a.c",
    ]
    assert profile_warnings(lines) == {
        "coverage-mismatch": 1,
        "missing-profile": 2,
        "profile-instr-out-of-date": 1,
    }
