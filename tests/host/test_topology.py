from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensign.host.topology import Cpu, Topology, cpu_list, default_cpus, read_topology


def topology(cores: int, threads: int = 1, packages: int = 1) -> Topology:
    """Numbers as Linux gives them: first one thread of each core, then the second ones."""
    cpus = []
    for number in range(cores * threads):
        core = number % cores
        siblings = frozenset(core + thread * cores for thread in range(threads))
        cpus.append(Cpu(number, core * packages // cores, siblings))
    return Topology(tuple(cpus))


def choice(cores: int, threads: int = 1, packages: int = 1) -> tuple[int, int, int, list[str]]:
    made = default_cpus(range(cores * threads), topology(cores, threads, packages))
    codes = [finding.code for finding in made.findings]
    return made.variants[0], made.load[0], made.meter[0], codes


def test_what_runs_where() -> None:
    assert choice(1) == (0, 0, 0, ["one-core"])
    assert choice(1, threads=2) == (0, 0, 0, ["one-core"])
    assert choice(2) == (1, 0, 0, ["two-cores"])
    assert choice(2, threads=2) == (1, 0, 0, ["two-cores"])
    assert choice(3) == (2, 1, 0, [])
    assert choice(8, threads=2) == (7, 6, 0, [])
    assert choice(4, packages=2) == (3, 2, 0, [])


def test_the_load_stays_in_the_package_of_the_server() -> None:
    cpus = (
        Cpu(0, 0, frozenset({0})),
        Cpu(1, 1, frozenset({1})),
        Cpu(2, 0, frozenset({2})),
        Cpu(3, 1, frozenset({3})),
    )
    made = default_cpus({0, 1, 2, 3}, Topology(cpus))
    assert (made.variants, made.load, made.meter) == ((3,), (1,), (0,))


def test_slow_cores_are_not_for_the_programs() -> None:
    fast = [Cpu(number, 0, frozenset({number}), 1000) for number in range(3)]
    slow = [Cpu(number, 0, frozenset({number}), 400) for number in range(3, 6)]
    made = default_cpus(range(6), Topology((*fast, *slow)))
    assert (made.variants, made.load, made.meter) == ((2,), (1,), (0,))


@given(
    st.integers(1, 6), st.integers(1, 2), st.integers(1, 2), st.sets(st.integers(0, 11), min_size=1)
)
def test_only_allowed_cpus_and_never_two_threads_of_a_core(
    cores: int, threads: int, packages: int, wanted: set[int]
) -> None:
    machine = topology(cores, threads, packages)
    allowed = wanted & machine.numbers
    if not allowed:
        return
    made = default_cpus(allowed, machine)
    used = {*made.variants, *made.load, *made.meter}
    assert used <= allowed
    siblings = {cpu.number: cpu.siblings for cpu in machine.cpus}
    for cpu in used:
        assert siblings[cpu] & used == {cpu}
    several = len({siblings[cpu] for cpu in allowed}) > 1
    assert (made.variants not in (made.load, made.meter)) == several


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0,2-3\n", {0, 2, 3})],
)
def test_lists_of_the_kernel(text: str, numbers: set[int]) -> None:
    assert cpu_list(text) == numbers


def test_reading_a_tree(tmp_path: Path) -> None:
    base = tmp_path / "sys/devices/system/cpu"
    for number, siblings in ((0, "0,2"), (1, "1"), (2, "0,2")):
        (base / f"cpu{number}/topology").mkdir(parents=True)
        (base / f"cpu{number}/topology/thread_siblings_list").write_text(f"{siblings}\n")
        (base / f"cpu{number}/topology/physical_package_id").write_text("1\n")
    (base / "cpu1/cpu_capacity").write_text("512\n")
    (base / "online").write_text("0-2\n")
    found = read_topology(tmp_path)
    assert found.cpus[0] == Cpu(0, 1, frozenset({0, 2}))
    assert found.cpus[1] == Cpu(1, 1, frozenset({1}), 512)
    assert found.cores == 2


def test_a_tree_without_topology_still_gives_a_choice(tmp_path: Path) -> None:
    assert read_topology(tmp_path).cpus == ()
    assert default_cpus({4, 5}, Topology(())).variants == (5,)
