from __future__ import annotations

from pathlib import Path

from ensign.host.machine import (
    CpuActivity,
    CpuTimes,
    ProcessTime,
    busy_processes,
    parse_process,
    parse_stat,
    read_activity,
    steal_share,
)


def test_the_first_line_is_summed_without_guest_time() -> None:
    text = "cpu  10 20 30 400 50 1 2 7 99 99\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    assert parse_stat(text) == CpuTimes(total=520, idle=450, steal=7)
    assert parse_stat("cpu 1 2 3 4\n") == CpuTimes(total=10, idle=4, steal=0)


def test_steal_is_a_share_of_the_time_that_was_wanted() -> None:
    before = CpuTimes(total=1000, idle=500, steal=10)
    after = CpuTimes(total=1400, idle=800, steal=13)
    assert steal_share(before, after) == 0.03
    assert steal_share(before, before) == 0
    assert steal_share(before, CpuTimes(total=1100, idle=600, steal=10)) == 0


def test_names_of_processes_may_hold_anything() -> None:
    fields = " ".join(["S", "1", *["0"] * 9, "30", "12", "0"])
    assert parse_process(f"42 (a) b (c) {fields}") == ProcessTime(42, "a) b (c", 42)


def test_threads_of_the_kernel_are_known_by_their_parent() -> None:
    zeros = " ".join("0" for _ in range(12))
    assert parse_process(f"9 (kworker/0:1) S 2 {zeros}").kernel
    assert not parse_process(f"9 (sh) S 22 {zeros}").kernel
    now = CpuActivity(CpuTimes(100, 0, 0), (ProcessTime(9, "kworker", 90, kernel=True),))
    assert busy_processes(CpuActivity(CpuTimes(0, 0, 0), ()), now, cpus=1) == ()


def test_busy_processes_by_the_share_of_one_cpu() -> None:
    def activity(total: int, *ticks: tuple[int, str, int]) -> CpuActivity:
        return CpuActivity(CpuTimes(total, 0, 0), tuple(ProcessTime(*each) for each in ticks))

    before = activity(1000, (1, "init", 5), (7, "cc1", 100), (9, "me", 0))
    after = activity(1400, (1, "init", 5), (7, "cc1", 250), (8, "new", 20), (9, "me", 90))
    busy = busy_processes(before, after, cpus=2, own={9})
    assert [(process.name, process.share) for process in busy] == [("cc1", 0.75), ("new", 0.1)]
    assert busy_processes(before, before, cpus=2) == ()


def test_reading_a_tree_skips_what_is_not_a_process(tmp_path: Path) -> None:
    (tmp_path / "proc/12").mkdir(parents=True)
    (tmp_path / "proc/13").mkdir()
    (tmp_path / "proc/stat").write_text("cpu 1 2 3 4 5 6 7 8\n")
    (tmp_path / "proc/12/stat").write_text("12 (x) S 1 " + "0 " * 9 + "3 4 0")
    (tmp_path / "proc/13/stat").write_text("")
    found = read_activity(tmp_path)
    assert found.processes == (ProcessTime(12, "x", 7),)
    assert found.cpus.steal == 8
