"""Whether a build runs on the hosts that it is for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ensign.meter.questions import read_processor
from ensign.model.errors import InputError
from ensign.model.instructions import LEVELS, InstructionSets, ProcessorSets, sets_of
from ensign.model.shipment import NOT_VERIFIED, Shipment
from ensign.report.as_pull_request import where_it_runs
from ensign.tools.ship import Host, read_host, require_hosts

V3 = InstructionSets(LEVELS["x86-64-v3"])
OLD = Host("old", ProcessorSets(LEVELS["x86-64-v2"] | {"avx"}))
NEW = Host("new", ProcessorSets(LEVELS["x86-64-v4"]))


def cpuinfo(*flags: str) -> str:
    return "".join(f"processor\t: {n}\nflags\t\t: {each}\n\n" for n, each in enumerate(flags))


def test_hosts_that_have_all_of_it_pass() -> None:
    require_hosts("v", V3, (NEW,))
    require_hosts("v", InstructionSets(frozenset()), (OLD, NEW))
    require_hosts("v", None, ())


def test_a_host_that_lacks_something_is_named_with_the_way_out() -> None:
    with pytest.raises(
        InputError, match=r"v does not run on old: it may use abm, avx2, bmi1"
    ) as no:
        require_hosts("v", V3, (NEW, OLD))
    assert "avx," not in str(no.value)
    assert "target x86-64-v2" in str(no.value)
    with pytest.raises(InputError, match="on old, and 1 more of these hosts"):
        require_hosts("v", V3, (OLD, OLD, NEW))


def test_what_nobody_knows_of_the_variant_is_not_promised() -> None:
    with pytest.raises(InputError, match="is not known"):
        require_hosts("v", None, (NEW,))


def test_what_is_not_known_of_a_host_is_said_and_refuses_nothing() -> None:
    used = InstructionSets(V3.sets | {"avx_vnni_int8"}, ("AVX99",))
    doubts = require_hosts("v", used, (NEW,))
    assert doubts.keys() == {"new"}
    assert "AVX99, avx_vnni_int8 is not known" in doubts["new"]
    with pytest.raises(InputError, match="does not run on old"):
        require_hosts("v", used, (OLD, NEW))


def test_a_host_that_was_asked_itself_lacks_what_it_does_not_name() -> None:
    used = InstructionSets(V3.sets | {"avx_vnni_int8"})
    asked = Host("asked", ProcessorSets(LEVELS["x86-64-v4"], whole=True))
    with pytest.raises(InputError, match="may use avx_vnni_int8, which"):
        require_hosts("v", used, (asked,))
    names = LEVELS["x86-64-v4"] | {"avx99"}
    newer = Host("newer", ProcessorSets(names, whole=True))
    assert not require_hosts("v", InstructionSets(V3.sets, ("AVX99",)), (newer,))
    assert require_hosts("v", InstructionSets(V3.sets, ("AVX98",)), (newer,))


def test_the_weakest_processor_of_a_host_counts(tmp_path: Path) -> None:
    path = tmp_path / "db1"
    path.write_text(cpuinfo("fpu sse2 avx2", "fpu sse2"))
    assert read_host(path).sets.names == {"fpu", "sse2"}


def test_a_sheet_tells_it_too(tmp_path: Path) -> None:
    path = tmp_path / "db1.json"
    facts = {"cpu.flags": "sse2 avx2"}
    path.write_text(json.dumps({"schema": 1, "environment": "host", "facts": facts}))
    assert read_host(path).sets == ProcessorSets(frozenset({"sse2", "avx2"}))
    facts["cpu.cpuid"] = "7.1.eax=2 7.0.ebx=100 1.0.ecx=10000000 xcr0=7"
    path.write_text(json.dumps({"schema": 1, "environment": "host", "facts": facts}))
    found = read_host(path).sets
    assert found == ProcessorSets(frozenset({"sse2", "avx2", "avx", "bmi2", "sm3"}), whole=True)


def test_this_host_is_one_too() -> None:
    own = read_host(Path("/proc/cpuinfo")).sets
    assert own.whole == bool(read_processor().registers)
    assert own.names >= sets_of(read_processor().registers)


@pytest.mark.parametrize("content", ["", "{", "{}", "[" * 9999, "processor : 0\nFeatures : fp\n"])
def test_a_file_that_tells_nothing_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    with pytest.raises(InputError, match="names no flags of an x86-64 processor"):
        read_host(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="--host"):
            read_host(path)


def where(instructions: InstructionSets | None, *hosts: str) -> str:
    shipment = Shipment("v", "gcc", (), (), (), (), NOT_VERIFIED, instructions, hosts)
    return "\n".join(where_it_runs(shipment))


def test_the_page_says_where_it_runs() -> None:
    assert where(InstructionSets(frozenset())) == "It needs x86-64: every x86-64 processor."
    assert "Haswell" in where(V3, "db1")
    assert where(V3, "db1").endswith("which have all of it: db1.")
    beyond = where(InstructionSets(LEVELS["x86-64-v3"] | {"sha_ni"}))
    assert "x86-64-v3 and, beyond that, sha_ni: no level has" in beyond
    assert "is not known" in where(None)
    assert "__AVX99__" in where(InstructionSets(frozenset(), ("__AVX99__",)))
