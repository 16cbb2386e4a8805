"""Gives targets their whole corpus, and then so many damaged inputs, the same each time.

    python -m fuzz.check MUTATIONS TARGET...

In a process of its own, for its memory is limited. Prints a line for each fault; the exit status is
1 where there is any.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from fuzz.attempt import Fault, Target, attempt, limit_memory
from fuzz.mutate import mutated
from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
# A busy machine, and others' coverage, cost time that no input is to blame for.
_CPU_S = 4.0


def corpus_of(target: Target) -> dict[str, bytes]:
    """The inputs of a target by their files' names."""
    folder = CORPUS / target.inputs
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def faults_of(target: Target, mutations: int, folder: Path) -> dict[str, str]:
    """Where the corpus or any of its mutations is not handled: faults by their keys."""
    inputs = corpus_of(target)
    seeds = list(inputs.values())
    found: dict[str, str] = {}

    def tell(name: str, fault: Fault | None) -> None:
        if fault is not None:
            found.setdefault(fault.key, f"{target.name}: {name}: {fault.key}\n{fault.text}")

    for name, data in inputs.items():
        tell(name, attempt(target, data, folder, _CPU_S))
    for number in range(mutations):
        data = mutated(seeds[number % len(seeds)], target.kind, seeds, number)
        tell(f"mutation {number}", attempt(target, data, folder, _CPU_S))
    return found


def main() -> int:
    """Check the targets that are named."""
    mutations, names = int(sys.argv[1]), sys.argv[2:]
    limit_memory()
    found: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            found += faults_of(TARGETS[name], mutations, Path(folder)).values()
    sys.stdout.write("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
