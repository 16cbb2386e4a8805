from __future__ import annotations

import pytest

from ensign.model.variants import Variant
from ensign.proof.evidence import BuildEvidence, Request
from ensign.proof.facts import Binary, Proof
from ensign.proof.rules.artifact import artifact_findings
from ensign.proof.rules.log import log_findings, unknown_lto, without_others
from ensign.toolchains.table import Flags


def codes(log: str) -> list[str]:
    return [
        finding.code for finding in log_findings(BuildEvidence("v", Proof(Binary("p")), log=log))
    ]


@pytest.mark.parametrize(
    "line",
    [
        "lto1: fatal error: unrecognized argument to '-flto=' option: 'thin'",
        "cc1: error: unrecognized argument to ‘-flto=’ option: ‘thin’",
        "gcc: error: unrecognized command-line option '-flto-everything'",
        "clang: error: unsupported argument 'fastest' to option '-flto='",
        "clang: warning: argument unused during compilation: '-flto' [-Wunused]",
    ],
)
def test_lto_flags_that_a_compiler_refuses(line: str) -> None:
    assert unknown_lto(f"make: hello\n{line}\nmore") == line
    assert codes(line) == ["unknown-lto-flag"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "a.c:1: warning: '/x/a.gcda' profile count data file not found [-Wmissing-profile]",
            "profile-missing",
        ),
        (
            'warning: no profile data available for file "b.c" [-Wprofile-instr-unprofiled]',
            "profile-missing",
        ),
        (
            "warning: profile data may be out of date: of 9 [-Wprofile-instr-out-of-date]",
            "profile-stale",
        ),
        ("a.c:3: error: coverage mismatch for 'f' [-Wcoverage-mismatch]", "profile-stale"),
        ("error: Could not read profile /x/y.profdata: No such file", "profile-empty"),
        (
            "BOLT-INFO: 2 out of 4102 functions in the binary (0.0%) have non-empty execution",
            "bolt-profile-thin",
        ),
    ],
)
def test_what_is_said_of_profiles(line: str, code: str) -> None:
    assert codes(f"{line}\n") == [code]


def test_a_good_log_has_no_finding() -> None:
    log = (
        "gcc -flto=auto -O2 -c a.c\n"
        "BOLT-INFO: 2102 out of 4102 functions in the binary (51.2%) have non-empty execution\n"
    )
    assert codes(log) == []


@pytest.mark.parametrize(
    ("asked", "bolted", "expected"),
    [
        ("on", False, ["bolt-not-applied"]),
        ("off", True, ["bolt-not-asked"]),
        ("on", True, []),
        ("off", False, []),
    ],
)
def test_bolt_by_the_bytes(asked: str, bolted: bool, expected: list[str]) -> None:  # noqa: FBT001
    request = Request(Variant("v", "gcc-12", "-O2", bolt=asked), Flags((), ()))
    seen = BuildEvidence("v", Proof(Binary("p", bolted=bolted)), request)
    assert [finding.code for finding in artifact_findings(seen)] == expected


def test_profiles_of_what_does_not_run_are_not_missed() -> None:
    said = "count data file not found [-Wmissing-profile]\n"
    tests = f"../tests/t.c:1:1: warning: '/b/t.gcda' profile {said}"
    own = f"/b/src/a.c:1:1: warning: '/b/a.gcda' profile {said}"
    here = f"a.c:1: warning: 'a.gcda' profile {said}"
    clang = 'warning: no profile data available for file "t.c" [-Wprofile-instr-unprofiled]\n'
    nameless = "error: no profile can be merged\n"
    log = f"gcc -c t.c\n{tests}{own}{here}{clang}{nameless}"
    kept = f"gcc -c t.c\n{own}{here}{nameless}"
    assert without_others(log, {"/b/src/a.c": ()}) == kept
    assert without_others(log, {}) == log
    # Compiled twice: for a shared library, which runs, and for an archive, which does not.
    assert without_others(own, {"/b/src/a.c": {"/b/a.o"}}) == own
    assert without_others(own, {"/b/src/a.c": {"/b/objs/a.o"}}) == ""
