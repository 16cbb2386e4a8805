"""`make fuzz`: every target in turn, or those that are named, one process at a time.

    python -m fuzz.run SECONDS [TARGET...]

SECONDS is the time of all together. Faults are in build/fuzz/TARGET, and the exit status is 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fuzz.targets import TARGETS

_OUT = Path("build/fuzz")
_LEAST_S = 10
_SHRINKING_S = 600


def campaign(name: str, seconds: int) -> dict[str, object]:
    """What came out of one target."""
    command = [sys.executable, "-m", "fuzz.campaign", name, str(seconds), str(_OUT)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=seconds + _SHRINKING_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"target": name, "executions": 0, "faults": ["does not end"]}
    for line in done.stdout.splitlines():
        if line.startswith(b'{"target"'):
            said: dict[str, object] = json.loads(line)
            return said
    last = done.stderr.decode(errors="replace")[-600:]
    return {"target": name, "executions": 0, "faults": [f"ended ({done.returncode}): {last}"]}


def main() -> int:
    """Run them, and tell."""
    seconds, names = int(sys.argv[1]), sys.argv[2:] or list(TARGETS)
    _OUT.mkdir(parents=True, exist_ok=True)
    faulty = 0
    for name in names:
        said = campaign(name, max(seconds // len(names), _LEAST_S))
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        faulty += bool(said["faults"])
    return int(bool(faulty))


if __name__ == "__main__":
    sys.exit(main())
