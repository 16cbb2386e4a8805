"""How large the house is, by room, in lines of files that git knows: `make size`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

HOUSE = Path(__file__).parents[1]
_TESTS = re.compile(r"(?m)^#\[cfg\(test\)\]\nmod tests \{")


def rooms() -> tuple[Counter[str], Counter[str]]:
    """Lines and files of each room; what a file of the meter has of tests does not count."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    argv = ("git", "ls-files", "src/*.py", "meter/*.rs")
    said = subprocess.run(argv, cwd=HOUSE, capture_output=True, text=True, check=True).stdout
    for name in said.splitlines():
        room = room_of(PurePosixPath(name))
        text = (HOUSE / name).read_text()
        product = _TESTS.split(text)[0] if name.startswith("meter/") else text
        lines[room] += product.count("\n")
        files[room] += 1
    return lines, files


def room_of(path: PurePosixPath) -> str:
    """A package of ensign, a plugin, the meter's product code, or its tests."""
    if path.parts[0] == "meter":
        return "meter/tests" if "tests" in path.parts else "meter"
    package, *inside = path.relative_to("src").parts
    if package != "ensign":
        return f"plugin {package}"
    return f"ensign/{inside[0]}" if inside[1:] else "ensign"


def main() -> int:
    """Print the rooms, the largest first, and the sum of ensign's."""
    lines, files = rooms()
    for room, count in lines.most_common():
        print(f"{room:20} {count:7,} lines {files[room]:5} files")
    own = [room for room in lines if room.startswith("ensign")]
    total, count = (sum(each[room] for room in own) for each in (lines, files))
    plugins = sum(count for room, count in lines.items() if room.startswith("plugin"))
    print(f"size: src/ensign {total:,} lines in {count} files, and {plugins:,} lines of plugins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
