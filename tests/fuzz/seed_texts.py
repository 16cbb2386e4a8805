"""The first inputs that are texts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from end_to_end.small_study import BATCH, SERVER
from races import execution

SUITE = """\
name: memtier_benchmark-a
dbconfig:
  configuration-parameters:
    save: '""'
  check: {keyspacelen: 10}
  preload_tool:
    tool: memtier_benchmark
    arguments: '"--data-size" "100" --command "SET __key__ __data__" --key-maximum 10 -n 10'
  init_commands:
  - '"SADD" "a" "b"'
  - [HSET, h, 1, 2]
  init_lua: return 1
tested-groups: [string]
tested-commands: [set]
redis-topologies: [oss-standalone, oss-standalone-08-io-threads]
clientconfig:
  tool: memtier_benchmark
  arguments: >
    --pipeline 2 --data-size-range=10-20 --ratio 1:10 --key-pattern G:G --key-median 5
    --key-minimum 1 --key-maximum 100 -c 2 -t 2 --hide-histogram --test-time 10
    --command="SETEX __key__ 10 __data__" --command-ratio 3
priority: 3
"""
STUDY = """\
name = "all"
layouts = "natural"
question = "which?"

[source]
kind = "archive"
url = "https://example.org/x-1.0.tar.gz"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
strip = 1

[build]
commands = [["make", "-j{jobs}", "CC={cc}", "CFLAGS={cflags}"]]
artifact = "x"
env = { A = "b" }

[axes]
compiler = ["gcc-12", "clang-19"]
optimization = ["-O2", "-O3"]
lto = ["off", "thin"]
pgo = ["off", "on"]

[[exclude]]
compiler = "gcc-*"
lto = "thin"

[baseline]
optimization = "-O2"

[training]
requests = 1000

[race]
budget = "2h"
margin = "1%"
rounds = 5

[check]
commands = [["./test"]]

[server]
command = ["{artifact}", "--port", "{port}"]

[[workloads]]
name = "get"
operations = 1000
[workloads.drive]
connections = 2
pipeline = 4
data = { size = 100 }
[[workloads.drive.commands]]
argv = ["GET", "{key}"]
keys = { first = 0, last = 99 }
"""
CLUSTER = """\
partition = "bench"
time_limit = "8h"
builds = { jobs = 4, cpus = 16, memory = "8GiB" }
[hosts.milan]
constraint = "milan&ib"
count = 3
share = 0.6
[hosts.rapids]
nodes = ["r07", "r08"]
share = 0.4
"""
TASK_FILES = (
    {"job": "7", "phase": "racing", "text": "round 2", "done": 3, "total": 9, "left_s": 1.5},
    {"job": "7", "end": "again", "asked": "0f", "why": "it was told to stop"},
    {"hosts": [{"name": "milan-1", "kind": "milan", "node": "n1"}], "shares": {"milan": 0.6}},
)
DRIVE = """\
connections = 2
pipeline = 4
operations = 1000
init = [["FLUSHALL"]]
data = { sizes = [10, 20] }
scripts = { one = "return 1" }
[[commands]]
argv = ["SET", "k:{key}", "{data}"]
share = 3
reply = "status"
keys = { prefix = "a", first = 0, last = 99, pattern = "gaussian", deviation = 3.0 }
[[commands]]
transaction = [["INCR", "x"], ["EVALSHA", "{script:one}", "0"]]
"""
APT = """\
Types: deb deb-src
URIs: http://example.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/x.gpg

Package: x
Version: 5:7.0.15-1~deb12u7
Checksums-Sha256:
 0000 123 x_7.0.15.orig.tar.gz
 1111 45 x_7.0.15-1.debian.tar.xz

deb [signed-by=K arch=amd64] http://example.org/debian bookworm main contrib
"""
PROFILE = """\
Total functions: 12
Functions shown: 5
a.gcda:    01000000:   3:FUNCTION ident=1, lineno_checksum=2
a.gcda:    01a10000:  12:COUNTERS arcs 3 counts
a.gcda:                   0: 1 0 25
BOLT-INFO: 3 out of 20 functions in the binary (15.0%) have non-empty execution profile
x.c:1:2: warning: 'x' [-Wmissing-profile]
1 main 0 1 other 0 0 17
"""
SAID = """\
make: Entering directory '/src'
gcc -O2 -c -o a.o a.c && ccache g++ -O3 "x y.cc" | cat > /dev/null
cd sub; clang-19 -flto=thin -o x a.o libx.a(b.o)
make: Leaving directory '/src'
cc1: error: unrecognized argument to -flto= option: 'x'
x.c:1: warning: profile count data file not found [-Wmissing-profile]
libx.a[a.o]: main T 0000 0010
libx.a[a.o]: other U
/src/libx.a(a.o) 0x10 a.o
GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2
"""
KERNEL = """\
cpu  10 0 20 3000 5 0 1 2 0 0
0-3,8
processor : 0
vendor_id : GenuineIntel
model name : Invented
flags : fpu sse4_2 avx2

MemTotal:       16384 kB
SwapTotal:      1 kB
1 (a (b) c) S 0 1 1 0 -1 4 1 1 1 1 7 8 0 0 20 0 1 0 5 6 7
"""
FOLLOWED = {
    "schema": 1, "complete": True, "exit": 0, "signal": None, "not_judged": ["no-filter"],
    "programs": [{"path": "/bin/x", "executable": "/bin/x"}],
    "mapped": [{"path": "/bin/x", "device": "8:1", "inode": 5, "deleted": False,
                "other_root": False}],
    "jit": False, "cpu_ns": 1000, "written": [{"path": "/srv/a", "ways": ["created"]}],
    "cpu_clock_reads": 0, "children_clock_reads": 0, "cpu_timers": 0, "cpu_limits_reached": 0,
    "processes": 1, "threads": 1,
}  # fmt: skip
CALL = {
    "schema": 2, "tool": "cc", "program": "/usr/bin/gcc-12", "argv": ["gcc", "-c", "a.c"],
    "ran": ["gcc", "-c", "-O2", "a.c"], "cwd": "/src", "started_unix_ns": 1, "wall_ns": 2,
    "exit": 0, "signal": None,
    "inputs": [{"path": "/src/x.a", "kind": "archive", "sha256": "0", "size_bytes": 3,
                "members": [{"name": "a.o", "sha256": "1"}]}],
    "outputs": [{"path": "/src/a.o", "sha256": "2", "size_bytes": 4}],
    "line": {"compiles": True, "links": False, "output": "a.o", "sources": ["a.c"], "files": [1],
             "output_words": [], "folders": [],
             "inputs": [{"text": "x.a", "static": False, "whole": False, "grouped": False}]},
}  # fmt: skip
LOCK = {"schema": 1, "request": {"kind": "archive"}, "resolved": {"a": "b"}, "tree_sha256": "0"}
LEFTOVER = [{"name": "a.o", "kind": "object", "used": True}]
PROBE = {"meter": "0.1.0", "freezer": "cgroup", "obstacle": None, "counters": ["cycles"]}
REGISTERS = {"registers": {"1.0.ecx": 1 << 28, "7.1.edx": 1 << 19, "24.0.ebx": 2, "xcr0": 7}}
COMMANDS = [
    {"directory": "/src", "command": "gcc -O2 -c -o a.o a.c", "file": "a.c"},
    {"directory": "/src", "arguments": ["clang-19", "-c", "b.c"], "file": "b.c"},
]


BENCHMARKS: tuple[object, ...] = (
    {"context": {"library_build_type": "release"}, "benchmarks": [
        {"name": "BM_a/8", "run_name": "BM_a/8", "run_type": "iteration", "repetitions": 2,
         "repetition_index": 0, "iterations": 9, "real_time": 3.5, "cpu_time": 3.25,
         "time_unit": "ns"},
        {"name": "BM_a/8_mean", "run_name": "BM_a/8", "run_type": "aggregate",
         "aggregate_name": "mean", "real_time": 3.5, "cpu_time": 3.25, "time_unit": "us"},
        {"name": "BM_b", "run_name": "BM_b", "error_occurred": True, "error_message": "no"},
    ]},
    {"version": "1.0", "metadata": {"name": "telco", "unit": "second"}, "benchmarks": [
        {"runs": [{"warmups": [[1, 0.5]], "metadata": {"pid": 1}}, {"values": [0.25, 0.26]}]},
    ]},
    {"kind": "ctestInfo", "version": {"major": 1, "minor": 0}, "tests": [
        {"name": "T/a", "command": ["/src/build/a", "{x}"], "properties": [
            {"name": "ENVIRONMENT", "value": ["A=b"]}, {"name": "TIMEOUT", "value": 3.0},
            {"name": "WORKING_DIRECTORY", "value": "/src/build"}]},
    ]},
    [{"name": "m", "cmd": ["/src/build/m"], "env": {"A": "b"}, "workdir": None, "timeout": 30}],
)  # fmt: skip


def texts() -> Iterator[tuple[str, str, bytes]]:
    """Target, name and bytes of each."""
    written = {
        "study": (BATCH, SERVER, STUDY), "drive-file": (DRIVE,), "cluster": (CLUSTER,),
        "suite": (SUITE,), "apt": (APT,),
        "profile": (PROFILE,), "said": (SAID,), "kernel": (KERNEL,),
    }  # fmt: skip
    for target, each in written.items():
        for number, text in enumerate(each, 1):
            yield target, f"seed-{number}", text.encode()
    documents = {
        "lock": LOCK, "leftovers": LEFTOVER, "compile-commands": COMMANDS, "followed": FOLLOWED,
        "probed": PROBE, "registers": REGISTERS,
    }  # fmt: skip
    for target, document in documents.items():
        yield target, "seed-1", json.dumps(document).encode()
    for number, said in enumerate(TASK_FILES, 1):
        yield "task-files", f"seed-{number}", json.dumps(said).encode()
    for number, report in enumerate(BENCHMARKS, 1):
        yield "benchmarks", f"seed-{number}", json.dumps(report).encode()
    records = [
        {"type": "start", "schema": 1, "freezer": "signal", "mode": "interleaved"},
        *execution(0, {"1": 10, "twin": 12}),
        {"type": "warning", "code": "overshoot", "variant": "1", "text": "late", "execution": 0,
         "ended": ["x"]},
        {"type": "failure", "variant": "1", "code": "crashed", "text": "x", "signal": 11},
        {"type": "outcome", "role": "program", "variant": "1", "exit": 0},
        {"type": "error", "code": "failed", "variant": "1", "text": "no"},
        {"type": "end", "status": "complete"},
    ]  # fmt: skip
    yield "records", "seed-1", b"\n".join(json.dumps(each).encode() for each in records)
    yield "recorded", "seed-1", b"\n".join([json.dumps(CALL).encode()] * 2)
