"""What `make test` runs: its parts, those of different lanes at the same time.

The Python tests are seen while they run; other parts are shown when each has ended. At the end
stands how each part ended, how long it took, and the closing lines of its runners. The exit status
is 1 if any part failed. A part that hangs is ended, and says which processes it had and where its
Python stood.
"""

from __future__ import annotations

import codecs
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

# The Rust tests mostly wait, as do some of the Python tests: together they fill two cores.
LANES = (("size", "lint", "meter-test", "lowest"), ("unit",))
SEEN = "unit"
LONGEST_S = 45 * 60  # three times as long as the longest takes on two cores
_LAST_WORDS_S = 5
_PS = ("ps", "-ww", "-e", "-o", "pid,ppid,etimes,stat,wchan:20,args")
_CLOSING = re.compile(
    r"All checks passed|files? already formatted|no issues found|Contracts: |test result: "
    r"|Finished |^size: |=+ .* in [\d.]+s|^\d+ (passed|failed)|^(ERROR|FAILED) |^make.*Error|^error"
)


@dataclass(frozen=True)
class Part:
    """A part that has ended."""

    name: str
    status: int
    took_s: float
    output: str

    @property
    def closing(self) -> list[str]:
        """What its runners said last."""
        lines = [line for line in self.output.splitlines() if _CLOSING.search(line)]
        return [line for line in lines if "; 0 failed;" not in line or " 0 passed;" not in line]


def run(name: str, deadline: float) -> Part:
    """Make one part; its output is shown as it comes, or at its end."""
    began = time.monotonic()
    pieces: list[str] = []
    argv = ["make", "--no-print-directory", name]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for piece in said(process, deadline):
            pieces.append(piece)
            if name == SEEN:
                show(piece)
    part = Part(name, process.returncode, time.monotonic() - began, "".join(pieces))
    if name != SEEN:
        show(f"\n--- {name}\n{part.output}--- {name}: {verdict(part)}\n\n")
    return part


def said(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """What it says, as it comes. Who says nothing any more at the deadline is ended."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    ended = False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0 and ended:
                return
            if left_s <= 0:
                yield from end(process.pid)
                ended, deadline = True, time.monotonic() + _LAST_WORDS_S
            elif selector.select(left_s):
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    return
                yield decoder.decode(data)


def end(pid: int) -> Iterator[str]:
    """End a process and all below it; Python says first where it stands (SIGABRT)."""
    table = subprocess.run(_PS, capture_output=True, text=True, check=False).stdout.splitlines()
    parents = {int(line.split()[0]): int(line.split()[1]) for line in table[1:]}
    family = {pid}
    while more := {each for each, parent in parents.items() if parent in family} - family:
        family |= more
    lines = [table[0], *(line for line in table[1:] if int(line.split()[0]) in family)]
    yield f"\nall took more than {LONGEST_S} s, and this is ended; its processes were\n"
    yield "".join(f"{line[:200]}\n" for line in lines)
    for number in (signal.SIGABRT, signal.SIGKILL):
        for each in family:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        time.sleep(_LAST_WORDS_S)


def verdict(part: Part) -> str:
    """How it ended, and how long it took."""
    return f"{'passed' if part.status == 0 else 'FAILED'} in {part.took_s:.0f} s"


def show(text: str) -> None:
    """Write at once, whole."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> int:
    """Run all lanes."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(LANES)) as pool:
        lanes = pool.map(lambda lane: [run(name, began + LONGEST_S) for name in lane], LANES)
        parts = [part for lane in lanes for part in lane]
    show("\n")
    for part in parts:
        show(f"{part.name}: {verdict(part)}\n")
        show("".join(f"    {line}\n" for line in part.closing))
    show(f"make test: {time.monotonic() - began:.0f} s\n")
    return int(any(part.status != 0 for part in parts))


if __name__ == "__main__":
    sys.exit(main())
