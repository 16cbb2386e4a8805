"""Starts one of the runs of `ensign-meter` under strace, which injects a failure into it.

Only the meter's own processes are traced, up to where one of them executes another program. Which
run: the `nth` of the command. strace counts calls in each of these processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

_STRACE = ("strace", "-D", "-f", "-b", "execve", "-qq", "-e", "signal=none")


def install(asked: dict[str, Any]) -> None:
    """Wraps what starts the meter, in this process, for good.

    `asked`: `nth` (0: every run), `options` of strace, `folder` for what it writes.
    """
    lock = threading.Lock()
    count = 0

    class Started(subprocess.Popen[Any]):
        def __init__(self, args: Any, **named: Any) -> None:
            nonlocal count
            if isinstance(args, (list, tuple)) and os.path.basename(args[0]) == "ensign-meter":  # noqa: PTH119
                with lock:
                    count += 1
                    number = count
                if asked["nth"] in (0, number):
                    log = Path(asked["folder"]) / f"{number:03d}-{args[1]}"
                    args = [*_STRACE, *asked["options"], "-o", str(log), *args]
            super().__init__(args, **named)

    subprocess.Popen = Started  # type: ignore[misc, assignment]


def calls(folder: Path) -> list[tuple[int, str, dict[str, int]]]:
    """What was traced: number and verb of each run, and the most calls of one process by name."""
    found = []
    for path in sorted(folder.iterdir()):
        number, _, verb = path.name.partition("-")
        by_process: dict[tuple[str, str], int] = {}
        for line in path.read_text(errors="replace").splitlines():
            pid, _, rest = line.partition(" ")
            name = rest.strip().partition("(")[0]
            if name.isidentifier():
                by_process[pid, name] = by_process.get((pid, name), 0) + 1
        most: dict[str, int] = {}
        for (_, name), times in by_process.items():
            most[name] = max(most.get(name, 0), times)
        found.append((int(number), verb, most))
    return found


def injected(folder: Path) -> str:
    """The first call that was made to fail, as strace shows it; empty where none was."""
    for path in sorted(folder.iterdir()):
        for line in path.read_text(errors="replace").splitlines():
            if "(INJECTED)" in line:
                return f"{path.name}: {line.partition(' ')[2].strip()[:200]}"
    return ""


def as_text(asked: dict[str, Any]) -> str:
    """For a line of results."""
    return json.dumps(asked, sort_keys=True)
