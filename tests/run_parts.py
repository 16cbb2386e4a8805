"""What `make test` runs: its parts, those of different lanes at the same time.

The Python tests are seen while they run; other parts are shown when each has ended. At the end
stands how each part ended, how long it took, and the closing lines of its runners. The exit status
is 1 if any part failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

# The Rust tests mostly wait, as do some of the Python tests: together they fill two cores.
LANES = (("lint", "meter-test", "lowest"), ("unit",))
SEEN = "unit"
_CLOSING = re.compile(
    r"All checks passed|files? already formatted|no issues found|Contracts: |test result: "
    r"|Finished |=+ .* in [\d.]+s|^\d+ (passed|failed)|^(ERROR|FAILED) |^make.*Error|^error"
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


def run(name: str) -> Part:
    """Make one part; its output is shown as it comes, or at its end."""
    began = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        ["make", "--no-print-directory", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if name == SEEN:
                show(line)
    part = Part(name, process.returncode, time.monotonic() - began, "".join(lines))
    if name != SEEN:
        show(f"\n--- {name}\n{part.output}--- {name}: {verdict(part)}\n\n")
    return part


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
        lanes = pool.map(lambda lane: [run(name) for name in lane], LANES)
        parts = [part for lane in lanes for part in lane]
    show("\n")
    for part in parts:
        show(f"{part.name}: {verdict(part)}\n")
        show("".join(f"    {line}\n" for line in part.closing))
    show(f"make test: {time.monotonic() - began:.0f} s\n")
    return int(any(part.status != 0 for part in parts))


if __name__ == "__main__":
    sys.exit(main())
