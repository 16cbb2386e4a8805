"""The meter's parsers, by libFuzzer: built in build/fuzz/target, where a C++ compiler is.

    python -m fuzz.meter SECONDS [TARGET...]

Faults are in build/fuzz/meter-TARGET-…; the exit status is 1 where there are any.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

_OUT = Path("build/fuzz").absolute()
_METER = Path(__file__).parents[2] / "meter"
_TRIPLE = f"{platform.machine()}-unknown-linux-gnu"
_FLAGS = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
    "-Ccodegen-units=1",
)
_OPTIONS = (
    "-timeout=2",
    "-rss_limit_mb=512",
    "-max_len=65536",
    "-verbosity=0",
    "-print_final_stats=1",
)
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: (\d+)")


def built() -> Path:
    """The program that has all targets, with coverage."""
    argv = ["cargo", "build", "--quiet", "--locked", "--release", "--package", "ensign-fuzz"]
    # A target that is named keeps the flags from what runs while building.
    argv += ["--features", "libfuzzer", "--target", _TRIPLE]
    env = {**os.environ, "RUSTFLAGS": " ".join(_FLAGS), "CARGO_TARGET_DIR": str(_OUT / "target")}
    subprocess.run(argv, cwd=_METER, env=env, check=True)
    return _OUT / "target" / _TRIPLE / "release" / "ensign-fuzz"


def fuzzed(program: Path, name: str, seconds: int) -> bool:
    """Whether nothing was found."""
    corpus = _OUT / f"meter-{name}.corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    argv = [str(program), str(corpus), str(_METER / "fuzz" / "corpus" / name), *_OPTIONS]
    argv += [f"-max_total_time={seconds}", f"-artifact_prefix={_OUT}/meter-{name}-"]
    env = {**os.environ, "FUZZ_TARGET": name}
    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, errors="replace", check=False
    )
    count = _EXECUTIONS.search(done.stderr)
    said = {
        "target": f"meter {name}",
        "executions": int(count[1]) if count else 0,
        "faults": [] if done.returncode == 0 else [done.stderr[-1500:]],
    }
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    return done.returncode == 0


def main() -> int:
    """Each target in turn."""
    names = sys.argv[2:] or sorted(path.name for path in (_METER / "fuzz" / "corpus").iterdir())
    program = built()
    each_s = max(int(sys.argv[1]) // len(names), 10)
    return int(sum(not fuzzed(program, name, each_s) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
