"""One study from several hosts: what is claimed of a kind and of the fleet, and what is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

import report_data as data
from ensign.model.errors import InputError
from ensign.model.fleet import Fleet
from ensign.model.results import MachineFacts
from ensign.report import as_fleet
from ensign.tools.fleets import HostResults, MeasuredHost, merged, parse_host, parse_shares
from study_results import a_record, a_study, swept


def host(
    seed: int,
    kind: str = "milan",
    ratio: float = 0.9,
    sd: float = 0.002,
    facts: Sequence[tuple[str, str]] = (),
    metric: str = "cpu",
) -> MeasuredHost:
    known = {"CPU": kind, "microcode": "0x1", **dict(facts)}
    record = a_record(machine=MachineFacts(tuple(known.items())))
    trials = swept(seed, (ratio, ratio), sd=sd)
    return MeasuredHost(f"host-{seed}.zip", a_study(metric=metric), record, trials, kind)


def fleet(*hosts: MeasuredHost, **shares: float) -> Fleet:
    return merged(hosts, shares)


def codes(found: Fleet) -> list[tuple[str, str]]:
    return [(each.code, each.subject) for each in found.findings]


TWO_KINDS = [host(seed) for seed in (1, 2, 3)] + [host(seed, "rapids") for seed in (4, 5, 6)]


def test_what_is_true_of_each_kind_is_true_of_the_fleet() -> None:
    found = fleet(*TWO_KINDS)
    (row, twin) = found.suite
    assert row.fleet is not None
    assert row.fleet.low < 0.9 < row.fleet.high
    assert found.choice == "gcc-O3"
    assert twin.variant == "twin"
    assert codes(found) == []
    text = as_fleet.text(found, 200)
    assert "For the fleet gcc-O3 is 11." in text
    assert "That is shown for each kind (milan and rapids)." in text
    assert "2 kinds, 6 hosts" in text
    assert "equal because none were given" in text


def test_a_build_that_is_faster_on_one_kind_alone_is_told_though_the_fleet_gains_nothing() -> None:
    faster = [host(seed, ratio=0.95) for seed in (1, 2, 3)]
    slower = [host(seed, "genoa", ratio=1.0526) for seed in (4, 5, 6)]
    found = fleet(*faster, *slower)
    assert found.choice == ""
    assert [each.kind for each in found.own_builds] == ["milan"]
    text = as_fleet.text(found, 200)
    assert "For the fleet no variant is shown to be faster than gcc-O2" in text
    assert "On milan gcc-O3 is 5." in text
    assert "No other build" not in text


def test_one_host_that_is_given_twice_is_told() -> None:
    facts = [("host", "1a2b")]
    found = fleet(host(1, facts=facts), host(2, facts=facts), host(3, facts=[("host", "3c")]))
    assert codes(found) == [("same-host", "")]
    (said,) = found.findings
    assert said.text == "host-1.zip, host-2.zip are one host, which counts 2 times here"
    unknown = [("host", "unknown")]
    assert codes(fleet(host(1, facts=unknown), host(2, facts=unknown))) == []


def test_a_kind_of_which_no_host_was_measured_yet_leaves_the_fleet_without_a_claim() -> None:
    found = merged([host(1), host(2)], {"milan": 0.5, "genoa": 0.5}, ("milan", "genoa"))
    assert codes(found) == [("one-host", "genoa")]
    (row, _) = found.suite
    assert row.fleet is None
    text = as_fleet.text(found, 200)
    assert "a kind without a measured host" in text
    assert "no host" in text


def test_a_kind_on_which_a_build_is_slower_is_named() -> None:
    hosts = [*TWO_KINDS, *(host(seed, "alder", ratio=1.05) for seed in (7, 8, 9))]
    found = fleet(*hosts, milan=0.6, rapids=0.3, alder=0.1)
    text = as_fleet.text(found, 200)
    assert "Of the kinds that is shown for milan and rapids." in text
    assert "On alder it is slower: −" in text
    assert "On alder gcc-O2 is 5." in text
    assert "faster than gcc-O3 by CPU time, between 4." in text
    assert "milan 60 %, rapids 30 %, alder 10 %" in text
    (row, _) = found.suite
    assert row.fleet is not None
    assert row.fleet.ratio == pytest.approx(0.9**0.9 * 1.05**0.1, rel=0.01)


def test_a_single_host_tells_nothing_of_its_kind() -> None:
    found = fleet(*TWO_KINDS, host(7, "alder"))
    assert codes(found) == [("one-host", "host-7.zip")]
    (row, _) = found.suite
    assert row.fleet is None
    assert [each.comparison is None for each in row.kinds] == [False, False, True]
    assert found.choice == ""
    text = as_fleet.text(found, 200)
    assert text.startswith("Nothing is claimed of the fleet: there is a kind with a single host")


def test_what_is_not_shown_is_no_choice() -> None:
    found = fleet(*(host(seed, ratio=1.0, sd=0.02) for seed in (1, 2, 3)))
    assert found.choice == ""
    assert "no variant is shown to be faster than gcc-O2" in as_fleet.text(found, 200)


def test_a_host_unlike_its_kind_and_a_disturbed_one_are_named() -> None:
    odd = host(4, facts=[("microcode", "0x2")])
    disturbed = host(5, sd=0.05)
    found = fleet(*(host(seed) for seed in (1, 2, 3)), odd, disturbed)
    assert codes(found) == [("host-differs", "host-4.zip"), ("host-noisy", "host-5.zip")]
    text = as_fleet.text(found, 200)
    assert "microcode '0x2' instead of '0x1'" in text


def test_hosts_that_differ_are_told_with_what_the_next_one_will_see() -> None:
    ratios = (0.86, 0.88, 0.9, 0.92, 0.94)
    found = fleet(*(host(seed, ratio=ratio) for seed, ratio in enumerate(ratios, 1)))
    (row, _) = found.suite
    (kind,) = row.kinds
    assert kind.next_host is not None
    assert row.fleet is not None
    assert kind.next_host[0] < row.fleet.low < row.fleet.high < kind.next_host[1]
    assert kind.between == pytest.approx(0.035, abs=0.01)
    assert "Hosts of milan differ by 3." in as_fleet.text(found, 200)


def test_other_bytes_and_what_a_host_lacks_are_told() -> None:
    builds = (data.build("gcc-O2"), replace(data.build("gcc-O3"), loadable_sha256="11" * 32))
    other = host(3)
    other = replace(other, record=replace(other.record, builds=builds))
    more = replace(host(4), study=a_study("abc"))
    found = fleet(host(1), host(2), other, more)
    assert codes(found) == [("other-builds", "")]
    assert found.left_out == ("workload c (host-4.zip)",)


def test_a_twin_that_differs_over_all_hosts_is_a_warning() -> None:
    def off(seed: int) -> MeasuredHost:
        one = host(seed)
        trials = tuple(
            replace(
                trial,
                variants=tuple(
                    replace(each, cpu_ns=round(each.cpu_ns * 1.05))
                    if each.variant == "twin"
                    else each
                    for each in trial.variants
                ),
            )
            for trial in one.trials
        )
        return replace(one, trials=trials)

    assert ("twin-of-fleet", "twin") in codes(fleet(*map(off, (1, 2, 3))))


def test_what_cannot_be_merged_is_refused() -> None:
    with pytest.raises(InputError, match="two hosts or more"):
        fleet(host(1))
    with pytest.raises(InputError, match="trials in common"):
        fleet(host(1), host(1))
    with pytest.raises(InputError, match="different metrics"):
        fleet(host(1), host(2, metric="wall"))
    with pytest.raises(InputError, match="no such kind; there are milan"):
        fleet(host(1), host(2), rapids=1.0)
    with pytest.raises(InputError, match="--share of 'rapids' is missing"):
        fleet(*TWO_KINDS, milan=1.0)


def test_the_page_for_a_pull_request_and_the_json_have_all_of_it() -> None:
    found = fleet(*TWO_KINDS)
    page = as_fleet.markdown(found)
    assert page.startswith("**For the fleet gcc-O3 is")
    assert "gcc-O3, by workload" in page
    said = json.loads(as_fleet.as_json(found))
    assert said["choice"] == "gcc-O3"
    assert [len(row["hosts"]) for row in said["suite"]] == [6, 6]
    assert {row["workload"] for row in said["workloads"]} == {"a", "b"}


def test_words_of_the_command_line() -> None:
    assert parse_host("a.zip") == HostResults(data_path := parse_host("a.zip").path)
    assert str(data_path) == "a.zip"
    assert parse_host("milan=a.zip").kind == "milan"
    assert parse_shares(["milan=60%", "rapids=40"]) == {"milan": 60.0, "rapids": 40.0}
    for wrong in ("milan", "milan=", "milan=-1", "=2", "milan=nan"):
        with pytest.raises(InputError, match="--share"):
            parse_shares([wrong])
    with pytest.raises(InputError, match="twice"):
        parse_shares(["a=1", "a=2"])
    with pytest.raises(InputError, match="KIND=FILE"):
        parse_host("=a.zip")
