"""What the everyday benches share: kinds of commands, load on the machine, restartable results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ENSIGN = Path(sys.executable).parent / "ensign"
_REFUSED = 2
RESULTS = Path(__file__).parent / "results"

_C = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static unsigned long rounds;
static void *work(void *unused) {
    volatile unsigned long x = 1;
    for (unsigned long i = 0; i < rounds; i++) x = x * 6364136223846793005UL + i;
    return unused;
}
int main(int argc, char **argv) {
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    long sleep_ms = argc > 3 ? atol(argv[3]) : 0;
    pthread_t each[64];
    rounds = strtoul(argv[1], 0, 10);
    for (int i = 0; i < threads; i++) pthread_create(&each[i], 0, work, 0);
    for (int i = 0; i < threads; i++) pthread_join(each[i], 0);
    struct timespec pause = {sleep_ms / 1000, sleep_ms % 1000 * 1000000};
    nanosleep(&pause, 0);
    return 0;
}
"""

_SERVER = """
import socketserver, sys
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            total = 0
            for i in range(int(sys.argv[2])):
                total += i & 7
            self.wfile.write(b"%d\\n" % total)
class Server(socketserver.TCPServer):
    allow_reuse_address = True
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""

_LOAD = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s, s.makefile("rwb") as f:
    for _ in range(int(sys.argv[2])):
        f.write(b"x\\n"); f.flush(); f.readline()
"""

_SQL = (
    "with recursive n(i) as (select 1 union all select i+1 from n where i<{}) "
    "select sum(i*i % 7) from n"
)

_JAVA = """
public class Work {
    public static void main(String[] a) {
        long n = Long.parseLong(a[0]), x = 1;
        for (long i = 0; i < n; i++) x = x * 6364136223846793005L + i;
        System.out.println(x);
    }
}
"""

_GO = """
package main
import ("bufio"; "fmt"; "net"; "os"; "strconv")
func main() {
    n, _ := strconv.ParseUint(os.Args[2], 10, 64)
    l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
    if err != nil { panic(err) }
    for {
        c, err := l.Accept()
        if err != nil { return }
        go func() {
            r := bufio.NewReader(c)
            for {
                if _, err := r.ReadString('\\n'); err != nil { return }
                x := uint64(1)
                for i := uint64(0); i < n; i++ { x = x*6364136223846793005 + i }
                fmt.Fprintln(c, x)
            }
        }()
    }
}
"""


@dataclass(frozen=True)
class Kind:
    """A kind of command: how much work it gets (1.05 is 5 % more), and options of `compare`."""

    name: str
    command: Callable[[float], str]
    options: tuple[str, ...] = ()


@dataclass
class Material:
    """Programs and inputs in a folder; what the machine lacks is named in `missing`."""

    folder: Path
    missing: dict[str, str] = field(default_factory=dict)

    def file(self, name: str, text: str) -> Path:
        """A file with that text."""
        path = self.folder / name
        path.write_text(text)
        return path

    def compiled(self) -> str:
        """`PROGRAM rounds [threads [sleep in ms]]`."""
        path = self.folder / "work"
        if not path.exists():
            source = self.file("work.c", _C)
            subprocess.run(["cc", "-O2", "-pthread", "-o", path, source], check=True)
        return str(path)

    def has(self, kind: str, *programs: str) -> bool:
        """Whether all of them are there; else the kind is left out, and said so."""
        lacking = [program for program in programs if shutil.which(program) is None]
        if lacking:
            self.missing[kind] = f"{', '.join(lacking)} not installed"
        return not lacking

    def text(self, megabytes: float = 3) -> Path:
        """Lines of invented words."""
        from material import text  # noqa: PLC0415

        path = self.folder / f"text-{megabytes:g}"
        if not path.exists():
            path.write_bytes(text(round(megabytes * 1e6)))
        return path

    def more_text(self, megabytes: float) -> Callable[[float], Path]:
        """The same text, longer by a factor."""
        return lambda factor: self.text(round(megabytes * factor, 4))


def python_loop(rounds: int) -> Callable[[float], str]:
    """An interpreter whose hash seed makes each execution differ."""
    code = "sum(hash(str(i)) & 7 for i in range({}))"
    return lambda factor: f"/usr/bin/python3 -S -c '{code.format(round(rounds * factor))}'"


def server_kind(name: str, argv: str, material: Material, rounds: int) -> Kind:
    """A server whose requests cost so many rounds, under a load of 400 requests."""
    load = material.file("load.py", _LOAD)
    options = ("--load", f"python3 {load} {{port}} 400", "--operations", "400")
    return Kind(name, lambda factor: f"{argv} {{port}} {round(rounds * factor)}", options)


def everyday_kinds(material: Material) -> Iterator[Kind]:
    """Twelve kinds of commands, or fewer where the machine lacks a program."""
    work = material.compiled()
    text = material.more_text(3)
    yield Kind("python", python_loop(400_000))
    if material.has("java", "java", "javac"):
        yield java_kind(material, 300_000_000)
    yield Kind("pipe", lambda f: f"sort {text(f)} | uniq -c | wc -l", ("--shell",))
    yield Kind("gzip", lambda f: f"gzip -6 -c {text(f)}")
    yield Kind("grep", lambda f: f"grep -c -E 'a.*e.*i.*o' {text(f)}")
    yield Kind("sort", lambda f: f"sort {text(f)}")
    if material.has("sqlite3", "sqlite3"):
        yield Kind("sqlite3", lambda f: f"sqlite3 :memory: '{_SQL.format(round(400_000 * f))}'")
    yield Kind("awk", lambda f: f"awk '{{ n += NF }} END {{ print n }}' {text(f)}")
    yield Kind("3 ms", lambda f: f"{work} {round(1_500_000 * f)}")
    yield Kind("threads", lambda f: f"{work} {round(60_000_000 * f)} 2")
    yield Kind("sleeping", lambda f: f"{work} {round(2_000_000 * f)} 1 60")
    server = material.file("server.py", _SERVER)
    yield server_kind("server", f"python3 {server}", material, 3000)


def java_kind(material: Material, rounds: int) -> Kind:
    """A class that computes."""
    subprocess.run(["javac", "-d", material.folder, material.file("Work.java", _JAVA)], check=True)
    return Kind("java", lambda f: f"java -cp {material.folder} Work {round(rounds * f)}")


def planted_kinds(material: Material) -> Iterator[Kind]:
    """Programs of which one gets 5 % more work."""
    work = material.compiled()
    text = material.more_text(3)
    yield Kind("python", python_loop(400_000))
    if material.has("java", "java", "javac"):
        yield java_kind(material, 600_000_000)
    yield Kind("pipe", lambda f: f"cat {text(f)} | gzip -6 -c | wc -c", ("--shell",))
    if material.has("go server", "go"):
        source = material.file("server.go", _GO)
        built = material.folder / "go-server"
        env = {**os.environ, "GO111MODULE": "off", "GOCACHE": str(material.folder / "go-cache")}
        subprocess.run(["go", "build", "-o", built, source], check=True, env=env)
        yield server_kind("go server", str(built), material, 100_000)
    else:
        server = material.file("server.py", _SERVER)
        yield server_kind("python server (no go)", f"python3 {server}", material, 3000)
    for seconds in (3, 10):
        rounds = round(_rounds_per_s(work) * seconds)
        yield Kind(f"{seconds} s", partial(_rounds, work, rounds))


def _rounds(work: str, rounds: int, factor: float) -> str:
    return f"{work} {round(rounds * factor)}"


def _rounds_per_s(work: str) -> float:
    """How fast the work goes here, so that a program takes about as long as its name says."""
    rounds = 200_000_000
    start = time.monotonic()
    subprocess.run([work, str(rounds)], check=True)
    return rounds / (time.monotonic() - start)


@dataclass(frozen=True)
class Said:
    """One call of `compare`: its export (empty where it was refused), words, status, seconds."""

    result: dict[str, object]
    words: str
    status: int
    seconds: float


def compare(a: str, b: str, options: Sequence[str]) -> Said:
    """`ensign compare A B` with options; its words on standard error, or else its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        argv = [str(ENSIGN), "compare", a, b, "--name", "a", "--name", "b", "--race-same", *options]
        start = time.monotonic()
        done = subprocess.run(
            [*argv, "--export-json", str(path)], capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - start
        result = json.loads(path.read_text()) if path.exists() else {}
    if not result and done.returncode != _REFUSED:
        raise RuntimeError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr[-2000:]}")
    words = done.stderr.strip() or " ".join(done.stdout.split("\n\n")[0].split())
    return Said(result, words, done.returncode, seconds)


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """So many processes that do nothing but use a CPU; ended by their ids."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@dataclass
class Results:
    """Rows in one file, written after each; what is there already is not done again."""

    path: Path
    rows: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def opened(cls, name: str, *, fresh: bool) -> Results:
        """Those of an earlier run go on, unless they are to be made afresh."""
        path = RESULTS / f"{name}.json"
        found = cls(path)
        if path.exists() and not fresh:
            found.rows = json.loads(path.read_text())["rows"]
        return found

    def has(self, **keys: object) -> bool:
        """Whether there is a row with these values."""
        return any(all(row.get(k) == v for k, v in keys.items()) for row in self.rows)

    def add(self, **row: object) -> None:
        """Keeps a row, and says it."""
        self.rows.append(row)
        RESULTS.mkdir(exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"rows": self.rows}, indent=1) + "\n")
        part.replace(self.path)
        said = ", ".join(f"{k} {v}" for k, v in row.items() if k not in ("command", "words"))
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()

    def note_missing(self, missing: dict[str, str]) -> None:
        """Kinds that were left out are rows, too."""
        for kind, why in missing.items():
            if not self.has(kind=kind, left_out=why):
                self.add(kind=kind, left_out=why)


def row_of(said: Said) -> dict[str, object]:
    """The columns that all benches keep of a comparison."""
    if not said.result:
        return {
            "refused": True,
            "status": said.status,
            "words": said.words,
            "seconds": said.seconds,
        }
    comparisons: list[dict[str, object]] = said.result["comparisons"]  # type: ignore[assignment]
    (first,) = comparisons
    about: dict[str, object] = said.result["experiment"]  # type: ignore[assignment]
    columns = ("ratio", "low", "high", "direction", "withheld", "correlation", "executions")
    kept = ("mode", "metric", "used_s", "budget_s", "stopped")
    codes = sorted({each["code"] for each in said.result["findings"]})  # type: ignore[attr-defined]
    return {
        **{name: first[name] for name in columns},
        **{name: about[name] for name in kept},
        "precision": about["precision"]["asked"],  # type: ignore[index]
        "findings": codes,
        "status": said.status,
        "seconds": round(said.seconds, 3),
        "words": said.words,
    }
