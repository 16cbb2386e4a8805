"""Findings on what makes measurements on this machine worse."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

GOVERNOR = FindingKind(
    "governor",
    Severity.WARNING,
    "The CPU frequency governor is not `performance`, so the clock follows the load.",
    "Set it: `cpupower frequency-set -g performance`.",
)
TURBO = FindingKind(
    "turbo",
    Severity.NOTE,
    "Turbo is on: the clock depends on temperature and on what the other cores do.",
    "Interleaving evens most of it out. On a machine of your own, turn turbo off for long races.",
)
SMT = FindingKind(
    "smt",
    Severity.NOTE,
    "Two CPUs share each core. ensign uses one CPU per core, but other programs may run on the "
    "sibling.",
    "Nothing, unless other programs run; then stop them, or turn SMT off.",
)
VIRTUAL_MACHINE = FindingKind(
    "virtual-machine",
    Severity.NOTE,
    "This is a virtual machine, and its speed drifts with what its neighbors do.",
    "Trust interleaved races only, or measure on a dedicated host.",
)
STEAL = FindingKind(
    "steal",
    Severity.WARNING,
    "The hypervisor gave more than 1 % of the CPU time to other machines.",
    "Expect wider intervals. Repeat the race at a quieter time, or on a dedicated host.",
)
BUSY_MACHINE = FindingKind(
    "busy-machine",
    Severity.WARNING,
    "Other processes use more than 5 % of a CPU; the text names them.",
    "Stop them for narrower intervals.",
)
LOAD_AVERAGE = FindingKind(
    "load-average",
    Severity.WARNING,
    "The load average shows that other programs are running.",
    "Stop them, or wait until they are done.",
)
ASLR = FindingKind(
    "aslr",
    Severity.WARNING,
    "Address-space randomization is not at its full level, so all executions share one layout and "
    "intervals do not cover others.",
    "Turn it on: `sysctl kernel.randomize_va_space=2`.",
)
LOW_MEMORY = FindingKind(
    "low-memory",
    Severity.WARNING,
    "Little memory is free: programs may be swapped out or killed.",
    "Stop what uses it, or take a smaller input.",
)
SWAP_USED = FindingKind(
    "swap-used",
    Severity.WARNING,
    "Much of the swap is in use, so memory has been short.",
    "Stop what uses the memory before racing.",
)
ONE_CORE = FindingKind(
    "one-core",
    Severity.WARNING,
    "Programs, load generators and the meter share the only core and take time from each other.",
    "Use a machine with two cores or more.",
)
TWO_CORES = FindingKind(
    "two-cores",
    Severity.NOTE,
    "There are two cores, so load generators and the meter share one.",
    "Nothing for batch programs. For servers, prefer a machine with three cores or more.",
)
NO_RACE_LOCK = FindingKind(
    "no-race-lock",
    Severity.NOTE,
    "The lock file that keeps races on one machine apart cannot be used, so another race would "
    "not be noticed.",
    "Name another file in `ENSIGN_RACE_LOCK`.",
)
SHARED_MACHINE = FindingKind(
    "shared-machine",
    Severity.WARNING,
    "Another race ran on this machine at the same time, as `--share-machine` allowed. Each widens "
    "the other's intervals.",
    "Leave `--share-machine` out, and the races wait for each other.",
)
NOT_CONFINED = FindingKind(
    "not-confined",
    Severity.WARNING,
    "Builds, checks and programs that others wrote ran with all rights of the user who started "
    "ensign: files, network and processes were in their reach. Worst where that was root.",
    "Install bubblewrap, and let it make namespaces; until then run only what you trust.",
)
